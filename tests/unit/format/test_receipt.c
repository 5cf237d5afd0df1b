/*
 * Receipts as bytes, and as what a device believes.
 */
#include <string.h>

#include "../tap.h"
#include "base/alloc.h"
#include "base/err.h"
#include "format/receipt.h"

static void
reasons(void)
{
	struct receipt r, q;
	struct buf b = { 0 };
	int good = 1;
	size_t n;

	for (n = 0; n < RECEIPT_REASON; n++) {
		memset(&r, 0, sizeof(r));
		memset(r.reason, 'x', n);
		r.step = n;
		r.verdict = RECEIPT_INVALID;
		b.n = 0;
		memset(&q, 0xff, sizeof(q));
		good &= receipt_encode(&r, &b, NULL) == 0 &&
		    receipt_decode(&q, b.p, b.n, NULL) == 0 &&
		    memcmp(&r, &q, sizeof(r)) == 0;
	}
	ok(good, "a reason of 0 to %d bytes, there and back", RECEIPT_REASON - 1);
	/* one byte more would leave no room for its end */
	good = buf_put(&b, "x", 1, NULL) == 0 &&
	    receipt_decode(&q, b.p, b.n, NULL) == -ERR_DATA;
	ok(good, "a longer one is corrupt");
	ok(receipt_decode(&q, b.p, 79, NULL) == -ERR_DATA &&
	    receipt_decode(&q, b.p, 80, NULL) == 0, "80 bytes are the least");
	buf_release(&b);
}

int
main(void)
{
	reasons();
	return done_testing();
}
