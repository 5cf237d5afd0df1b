/*
 * Receipts as bytes, the shard that a receipt is for, and the names of verdicts.
 */
#include "../test.h"
#include "base/alloc.h"
#include "base/err.h"
#include "format/receipt.h"

TEST(reasons)
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
	/* one more byte would leave no room for the terminator */
	good = buf_put(&b, "x", 1, NULL) == 0 &&
	    receipt_decode(&q, b.p, b.n, NULL) == -ERR_DATA;
	ok(good, "a longer one is corrupt");
	ok(receipt_decode(&q, b.p, 79, NULL) == -ERR_DATA &&
	    receipt_decode(&q, b.p, 80, NULL) == 0, "80 bytes are the least");
	b.p[80] = '\033';
	ok(receipt_decode(&q, b.p, 81, NULL) == -ERR_DATA,
	    "a reason that controls a terminal is corrupt");
	buf_release(&b);
}

TEST(of_what)
{
	struct receipt r;
	struct shard s;

	shard_init(&s);
	memset(&r, 0, sizeof(r));
	s.step = r.step = 5;
	memset(s.run, 1, sizeof(s.run));
	memset(r.run, 1, sizeof(r.run));
	memset(s.device, 2, sizeof(s.device));
	memset(r.device, 2, sizeof(r.device));
	ok(receipt_is_for(&r, &s), "a receipt for this shard");
	r.step++;
	ok(!receipt_is_for(&r, &s), "another step is another shard");
	r.step--;
	r.run[15]++;
	ok(!receipt_is_for(&r, &s), "so is a shard of another run");
	r.run[15]--;
	r.device[15]++;
	ok(!receipt_is_for(&r, &s), "and of another device");
}

TEST(verdicts)
{
	static const char *const name[] = { "accepted", "duplicate", "late",
	    "invalid", "equivocation", "fenced", "?" };
	struct receipt r;
	int good = 1, taken = 1, refused = 1;
	unsigned i;

	for (i = 0; i <= RECEIPT_NVERDICT; i++) {
		r.verdict = i;
		good &= strcmp(receipt_verdict_name(i), name[i]) == 0;
		taken &= receipt_is_accepted(&r) == (i < 2);
		refused &= receipt_is_refused(&r) == (i > 2 && i < 6);
	}
	ok(good && taken, "two of six verdicts mean that the shard was accepted");
	ok(refused, "three verdicts mean that it was refused");
}
