/*
 * What a device believes of the receipts for what it sent.
 */
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "device/pending.h"

static struct receipts q;
static struct pending p;
static struct shard sh;

/* A receipt for a step, of bytes whose digest is all `byte'. */
static void
told(uint64_t step, int byte, unsigned verdict)
{
	struct receipt r;

	memset(&r, 0, sizeof(r));
	memcpy(r.run, sh.run, SHARD_ID);
	memcpy(r.device, sh.device, SHARD_ID);
	r.step = step;
	r.verdict = verdict;
	memset(r.digest, byte, SHARD_DIGEST);
	receipts_add(&q, &r);
}

static void
begin(void)
{
	size_t i;

	memset(&q, 0, sizeof(q));
	memset(&p, 0, sizeof(p));
	for (i = 0; i < 3; i++) {
		p.p[i].step = 5 + i;
		memset(p.p[i].digest, (int)(10 + i), SHARD_DIGEST);
	}
	p.n = 3;
}

static int
judged(void)
{
	pending_judge(&p, &q, &sh);
	return 1;
}

int
main(void)
{
	struct err e = ERR_INIT;

	shard_init(&sh);
	if (shard_set_run(&sh, "run", &e) < 0 ||
	    shard_set_device(&sh, "edge1", &e) < 0)
		return 1;
	begin();
	told(5, 10, RECEIPT_ACCEPTED);
	told(6, 11, RECEIPT_LATE);
	ok(judged() &&
	    p.p[0].fate == PENDING_ACCEPTED && p.p[1].fate == PENDING_REJECTED &&
	    p.p[2].fate == PENDING_OPEN && pending_count(&p) == 1,
	    "accepted, late, and nothing yet");
	begin();
	told(5, 10, RECEIPT_DUPLICATE);
	ok(judged() &&
	    p.p[0].fate == PENDING_ACCEPTED, "a duplicate was accepted before");
	begin();
	told(5, 99, RECEIPT_ACCEPTED);
	ok(judged() && p.p[0].fate == PENDING_OPEN,
	    "a receipt for other bytes decides nothing");
	told(5, 10, RECEIPT_LATE);
	ok(judged() && p.p[0].fate == PENDING_REJECTED,
	    "nor does it stand in the way of the right one");
	begin();
	told(5, 10, RECEIPT_ACCEPTED);
	told(5, 10, RECEIPT_LATE);
	ok(judged() &&
	    p.p[0].fate == PENDING_ACCEPTED, "accepted is final");
	begin();
	told(5, 10, RECEIPT_LATE);
	told(5, 10, RECEIPT_ACCEPTED);
	ok(judged() &&
	    p.p[0].fate == PENDING_ACCEPTED, "a newer verdict replaces an older");
	shard_release(&sh);
	return done_testing();
}
