/* The shard header: each field as in ace-stream(5), names of the largest length, sums. */
#include "../test.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pack.h"
#include "format/shard.h"
#include "kern/kern.h"

static struct err e;

static void
sample(struct shard *s)
{
	shard_init(s);
	s->step = 3;
	s->base_version = 11;
	memset(s->base_model, 12, 16);
	memset(s->policy_id, 13, 16);
	s->samples = 14;
	s->created = 15;
	s->deadline = 16;
	memset(s->previous, 17, 16);
	s->incarnation = 18;
	s->weight = 2.5;
	s->kind = SHARD_MEAN;
	s->flags = 0x80000005;
	s->contributors = 7;
	memset(s->schema_id, 9, 16);
	(void)shard_set_run(s, "r", &e);
	(void)shard_set_device(s, "d", &e);
}

/* Return whether all sixteen bytes of p are c. */
static int
all(const unsigned char *p, unsigned char c)
{
	int i, good = 1;

	for (i = 0; i < 16; i++)
		good &= p[i] == c;
	return good;
}

TEST(test_layout)
{
	unsigned char id[16];
	struct buf b = BUF_INIT;
	struct shard s, t;

	sample(&s);
	ok(shard_encode(&s, &b, &e) == 0 && b.n == 88 + 88 + 19, "%zu bytes",
	    b.n);
	pack_hash128("r", 1, id);
	ok(memcmp(b.p, id, 16) == 0, "run");
	pack_hash128("d", 1, id);
	ok(memcmp(b.p + 16, id, 16) == 0, "device");
	ok(bytes_le64(b.p + 32) == 3 && all(b.p + 40, 9) &&
	    bytes_le64(b.p + 56) == 0x4004000000000000, "step, schema, weight");
	ok(bytes_le32(b.p + 64) == 3 && bytes_le32(b.p + 68) == 0x80000005 &&
	    bytes_le32(b.p + 72) == 7, "kind, flags, contributors");
	ok(bytes_le32(b.p + 76) == 255 && bytes_le32(b.p + 80) == 19 &&
	    bytes_le32(b.p + 84) == 0, "fields, bytes of key/values, zero");
	ok(bytes_le64(b.p + 88) == 11 && all(b.p + 96, 12) &&
	    all(b.p + 112, 13) && bytes_le64(b.p + 128) == 14 &&
	    bytes_le64(b.p + 136) == 15 && bytes_le64(b.p + 144) == 16 &&
	    all(b.p + 152, 17) && bytes_le64(b.p + 168) == 18,
	    "all fields in the order of their bits");
	shard_init(&t);
	ok(shard_decode(&t, b.p, b.n, &e) == 0 && t.base_version == 11 &&
	    all(t.base_model, 12) && all(t.policy_id, 13) && t.samples == 14 &&
	    t.created == 15 && t.deadline == 16 && all(t.previous, 17) &&
	    t.incarnation == 18, "and back: %s", ERR_MSG(&e));
	ok(t.step == 3 && t.weight == 2.5 && t.kind == SHARD_MEAN &&
	    t.flags == 0x80000005 && t.contributors == 7 &&
	    all(t.schema_id, 9) && strcmp(shard_run(&t), "r") == 0 &&
	    strcmp(shard_device(&t), "d") == 0, "with all else");
	b.n = 0;
	t.incarnation = UINT32_MAX;
	t.samples = 0;
	ok(shard_encode(&t, &b, &e) == 0 && bytes_le32(b.p + 76) == 0xf7 &&
	    shard_decode(&s, b.p, b.n, &e) == 0 && s.samples == 0 &&
	    s.incarnation == UINT32_MAX,
	    "what is 0 is left out, and the last incarnation is 2^32 - 1");
	buf_release(&b);
	shard_release(&s);
	shard_release(&t);
}

/* Write a stream whose only fault may be a device name of n bytes. */
static int
named(size_t n)
{
	char name[300];
	struct buf b = BUF_INIT;
	struct shard s, t;
	int r;

	shard_init(&s);
	shard_init(&t);
	memset(name, 'n', n);
	name[n] = '\0';
	err_clear(&e);
	pack_hash128(name, n, s.device);
	if ((r = text_set(&s.kv, SHARD_KEY_DEVICE, name, &e)) == 0 &&
	    (r = shard_encode(&s, &b, &e)) == 0)
		r = shard_decode(&t, b.p, b.n, &e);
	buf_release(&b);
	shard_release(&s);
	shard_release(&t);
	return r;
}

TEST(test_names)
{
	char name[257];
	struct shard s, t;

	shard_init(&s);
	shard_init(&t);
	memset(name, 'n', 256);
	name[256] = '\0';
	ok(shard_set_run(&s, name, &e) == -ERR_USAGE &&
	    strstr(ERR_MSG(&e), "run name 'nnn") != NULL,
	    "256 bytes are no name: %s", ERR_MSG(&e));
	name[255] = '\0';
	err_clear(&e);
	ok(shard_set_run(&s, name, &e) == 0 && strcmp(shard_run(&s), name) == 0,
	    "255 are one");
	ok(shard_set_run(&s, "a\tb", &e) == -ERR_USAGE, "a tab: %s",
	    ERR_MSG(&e));
	ok(named(255) == 0 && named(256) == -ERR_DATA && e.kind == ERR_CORRUPT,
	    "so it is for who reads: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(strcmp(shard_device(&s), "?") == 0, "no name, no device");
	ok(shard_set_device(&s, "d", &e) == 0 && shard_same(&t, &s, &e) == 0 &&
	    memcmp(t.run, s.run, 16) == 0 &&
	    memcmp(t.device, s.device, 16) == 0 &&
	    strcmp(shard_run(&t), name) == 0 &&
	    strcmp(shard_device(&t), "d") == 0, "another shard of the same");
	ok(shard_key(&t) == shard_key(&s), "and the same key");
	t.step = 1;
	ok(shard_key(&t) != shard_key(&s), "which another step has not");
	shard_release(&s);
	shard_release(&t);
}

TEST(test_end)
{
	struct shard_end s, t;
	unsigned char p[80];

	memset(&s, 0, sizeof(s));
	s.n_data = 1;
	s.n_records = 2;
	s.raw = 3;
	s.wire = 4;
	memset(s.digest, 5, 16);
	s.sums = (struct shard_sums){ 6, 7, 8.5, 9.5, 10.5f };
	s.status = SHARD_ABORTED;
	shard_end_encode(&s, p);
	ok(bytes_le32(p) == 1 && bytes_le32(p + 4) == 2 &&
	    bytes_le64(p + 8) == 6 && bytes_le64(p + 16) == 3 &&
	    bytes_le64(p + 24) == 4 && all(p + 32, 5),
	    "counts, bytes and the digest");
	ok(bytes_le64(p + 48) == 0x4021000000000000 &&
	    bytes_le64(p + 56) == 0x4023000000000000 &&
	    bytes_le32(p + 64) == 0x41280000 && bytes_le32(p + 68) == 1 &&
	    bytes_le64(p + 72) == 7, "sums, status, what was set to zero");
	ok(shard_end_decode(&t, p, sizeof(p), &e) == 0 && t.n_data == 1 &&
	    t.n_records == 2 && t.raw == 3 && t.wire == 4 &&
	    all(t.digest, 5) && t.sums.nonzero == 6 && t.sums.dropped == 7 &&
	    t.sums.sum == 8.5 && t.sums.sumsq == 9.5 &&
	    t.sums.max_abs == 10.5f && t.status == SHARD_ABORTED, "and back");
}

TEST(test_sums)
{
	static const float a[] = { 1, -4, 0, 2 }, b[] = { -3, 0 };
	struct shard_sums s = { 0, 0, 0, 0, 0 };

	shard_sums_add(&s, kern_get(&e), a, 4);
	shard_sums_add(&s, kern_get(&e), b, 2);
	ok(s.nonzero == 4 && s.sum == -4 && s.sumsq == 30 && s.max_abs == 4,
	    "two groups add up, and the largest magnitude stays");
}
