/*
 * Which receipts a device accepts for the shards it sent.
 */
#include "../tap.h"
#include "base/err.h"
#include "device/pending.h"

static struct receipts q;
static struct pending p;
static struct shard sh;

/* Make a receipt for a step, with a digest whose bytes are all `byte'. */
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

/* Only a receipt with this shard's digest counts for it. */
TEST(test_whose)
{
	struct shard other = { .step = 5 };
	unsigned char digest[SHARD_DIGEST];
	struct err e = ERR_INIT;
	size_t n;

	memset(digest, 10, sizeof(digest));
	begin();
	told(5, 10, RECEIPT_ACCEPTED);
	sh.step = 5;
	ok(receipts_find(&q, &sh, digest) == &q.r[0], "the receipt is found");
	sh.step = 6;
	ok(receipts_find(&q, &sh, digest) == NULL, "of another step none is");
	shard_init(&other);
	other.step = 5;
	ok(shard_set_run(&other, "run", &e) == 0 &&
	    shard_set_device(&other, "edge2", &e) == 0 &&
	    receipts_find(&q, &other, digest) == NULL,
	    "nor of another device");
	ok(shard_set_run(&other, "run2", &e) == 0 &&
	    shard_set_device(&other, "edge1", &e) == 0 &&
	    receipts_find(&q, &other, digest) == NULL, "nor of another run");
	/* receipts of other devices with the same digest do not count */
	told(6, 10, RECEIPT_LATE);
	n = q.n;
	q.r[n] = q.r[0];
	memcpy(q.r[n].device, "another device..", SHARD_ID);
	receipts_add(&q, &q.r[n]);
	q.r[q.n] = q.r[0];
	memcpy(q.r[q.n].run, "another run.....", SHARD_ID);
	receipts_add(&q, &q.r[q.n]);
	ok(n == 2 && q.n == 4, "a step, a device and a run have their own");
	shard_release(&other);
}

/* The newest receipts are kept in order. */
TEST(test_many)
{
	uint64_t i;

	begin();
	for (i = 0; i < RECEIPTS_MAX; i++)
		told(100 + i, 1, RECEIPT_LATE);
	ok(q.n == RECEIPTS_MAX && q.r[0].step == 100, "%d are kept",
	    RECEIPTS_MAX);
	told(99, 1, RECEIPT_LATE);
	told(98, 1, RECEIPT_LATE);
	for (i = 2; i < RECEIPTS_MAX && q.r[i - 2].step == 100 + i; i++)
		;
	ok(q.n == RECEIPTS_MAX && i == RECEIPTS_MAX &&
	    q.r[i - 2].step == 99 && q.r[i - 1].step == 98,
	    "then the oldest go");
}

/* Which shards are sent again, and which receipt is requested. */
TEST(test_owed)
{
	begin();
	ok(!pending_owed(&p, 5) && pending_owed(&p, 6),
	    "steps before another one are owed, it itself is not");
	told(5, 10, RECEIPT_ACCEPTED);
	(void)judged();
	ok(!pending_owed(&p, 6) && pending_owed(&p, 7),
	    "nor is what has its receipt");
	ok(pending_find(&p, 6) == &p.p[1] && pending_find(&p, 8) == NULL,
	    "each by its step");
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
	run_tests();
	shard_release(&sh);
	return done_testing();
}
