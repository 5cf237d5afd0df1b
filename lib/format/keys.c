#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "format/reader.h"
#include "format/writer.h"

/* Sorted by name. tests/cli/keys.bats compares the table with ace-stream(5). */
const struct keys_row keys_table[] = {
	{ KEYS_BANDWIDTH, KEYS_REAL, 0, KEYS_RATE_MOST },
	{ KEYS_BUDGET, KEYS_WHOLE, 0, 9e18 },
	{ KEYS_COMPUTE, KEYS_REAL, 0, 1e15 },
	{ SHARD_KEY_COMPUTE, KEYS_REAL, 0, 1e15 },
	{ KEYS_CUTS, KEYS_LIST, 1, 1048576 },
	{ KEYS_CUTS_SECONDS, KEYS_REAL, 0, 1e9 },
	{ KEYS_DELAY, KEYS_WHOLE, 0, KEYS_DELAY_MOST },
	{ KEYS_DIVERGENCE, KEYS_REAL, 0, 1e300 },
	{ KEYS_FORCE, KEYS_WHOLE, 0, 1 },
	{ KEYS_INTERVAL, KEYS_WHOLE, 1, KEYS_INTERVAL_MOST },
	{ KEYS_KC, KEYS_REAL, 0, 1e9 },
	{ KEYS_LATENCY, KEYS_REAL, 0, 1e15 },
	{ SHARD_KEY_NORM, KEYS_REAL, 0, 1e300 },
	{ KEYS_RATIO, KEYS_REAL, 1e-6, 1e12 },
	{ NULL, KEYS_WHOLE, 0, 0 }
};

/* Return 0 if s is a list of cuts, numbers of at most `most', else -1. The numbers decrease to
 * 1, because the last layer is sent first. */
static int
keys_list(const char *s, double most)
{
	unsigned long long x, last = (unsigned long long)most + 1;
	char *end;

	for (;; s = end + 1) {
		if (*s < '0' || *s > '9')
			return -1;
		x = strtoull(s, &end, 10);	/* a number too large becomes ULLONG_MAX */
		if (x < 1 || x >= last)
			return -1;
		last = x;
		if (*end != ',')
			return *end == '\0' && x == 1 ? 0 : -1;
	}
}

/* Return the row of a key, or the last row, whose name is NULL. */
static const struct keys_row *
keys_row(const char *key)
{
	const struct keys_row *k = keys_table;

	if (strncmp(key, KEYS_INTERVAL_OF, strlen(KEYS_INTERVAL_OF)) == 0)
		key = KEYS_INTERVAL;
	while (k->name != NULL && strcmp(k->name, key) != 0)
		k++;
	return k;
}

/* Check that s is a valid value of key, which has a row. Return 1 or -ERR_DATA. whose: the
 * key's owner, for the message, or NULL. */
static int
keys_one(const char *key, const char *s, const char *whose, struct err *e)
{
	const struct keys_row *k = keys_row(key);
	static const char *const type[] = { "a whole number",
	    "a number", "a list falling to 1, such as 7,3,1, with numbers" };
	uint64_t u;
	double x;
	int r = k->type == KEYS_LIST ? keys_list(s, k->hi) :
	    k->type == KEYS_REAL ? num_strtod(&x, s, k->lo, k->hi) :
	    num_u64(&u, s, (uint64_t)k->lo, (uint64_t)k->hi, "", NULL);

	if (r == 0)
		return 1;
	return err_set(e, ERR_DATA, "corrupt: key %s%s%.200s: '%.40s' is not "
	    "%s from %.10g to %.10g", key, whose != NULL ? " of " : "",
	    whose != NULL ? whose : "", s, type[k->type], k->lo, k->hi);
}

/* Set *s to the value of a key and check it against the key's row. Return 1, 0 if the key is
 * absent, or -ERR_DATA. */
static int
keys_find(const struct text_kv *kv, const char *key, const char **s,
    const char *whose, struct err *e)
{
	if ((*s = text_get(kv, key)) == NULL)
		return 0;
	return keys_row(key)->name != NULL ? keys_one(key, *s, whose, e) :
	    err_set(e, ERR_DATA, "unsupported: key %s is unknown", key);
}

int
keys_whole(const struct text_kv *kv, const char *key, uint64_t *v,
    const char *whose, struct err *e)
{
	const char *s;
	int r = keys_find(kv, key, &s, whose, e);

	if (r > 0)
		*v = strtoull(s, NULL, 10);
	return r;
}

int
keys_real(const struct text_kv *kv, const char *key, double *v,
    const char *whose, struct err *e)
{
	const char *s;
	int r = keys_find(kv, key, &s, whose, e);

	if (r > 0)
		*v = num_read(s, NULL);
	return r;
}

int
keys_check(const struct text_kv *kv, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < kv->n && r >= 0; i++)
		if (keys_row(kv->p[i].key)->name != NULL)
			r = keys_one(kv->p[i].key, kv->p[i].value, NULL, e);
	return r < 0 ? r : 0;
}

/* The keys of all frames of a shard together must not exceed the limit of one frame, so
 * that they need little memory. */
int
keys_read(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e)
{
	struct text_kv said = TEXT_KV_INIT;
	int k;

	if ((k = text_get_lines(&said, p, n, e)) == 0 &&
	    (k = keys_check(&said, e)) == 0 &&
	    (k = text_add(kv, &said, e)) == 0 && kv->bytes > TEXT_MAX_KV) {
		text_release(kv);
		k = err_set(e, ERR_DATA, "limit: the policy is larger than 64 KiB");
	}
	text_release(&said);
	return k;
}

int
keys_add(struct text_kv *kv, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	int k = f->type != FRAME_POLI ? 0 : keys_read(kv, f->raw, f->raw_len, e);

	return k < 0 ? reader_place(r, k, e) : k;
}

int
keys_put(struct writer *w, const struct text_kv *kv, struct err *e)
{
	struct buf b = BUF_INIT;
	int r = text_put_lines(kv, &b, e);

	if (r == 0 && b.n > TEXT_MAX_KV)	/* readers would refuse the frame */
		r = err_set(e, ERR_DATA, "limit: the policy is larger than 64 KiB");
	if (r == 0)
		r = writer_note(w, FRAME_POLI, b.p, b.n, e);
	buf_release(&b);
	return r;
}
