#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/num.h"
#include "format/annotation.h"
#include "format/array.h"
#include "format/checks.h"
#include "format/keys.h"
#include "format/reader.h"

/* Check that a key, if present, is `none' or a digest in lower-case hexadecimal. */
static int
checks_stamp(const struct shard *s, const char *key, struct err *e)
{
	const char *v = text_get(&s->kv, key);
	size_t n = v != NULL ? strspn(v, "0123456789abcdef") : 0;

	if (v == NULL || strcmp(v, "none") == 0 ||
	    (n == 2 * SHARD_DIGEST && v[n] == '\0'))
		return 0;
	return err_set(e, ERR_DATA, "corrupt: key %s: '%.40s' is neither 'none' nor %d "
	    "lower-case hexadecimal digits", key, v, 2 * SHARD_DIGEST);
}

/* Check that a shard has flag PREDICTED and keys predict and history, all with valid values,
 * or none of them. */
static int
checks_difference(const struct shard *s, struct err *e)
{
	const char *how = text_get(&s->kv, SHARD_KEY_PREDICT);
	const char *of = text_get(&s->kv, SHARD_KEY_HISTORY);
	const int is = (s->flags & SHARD_PREDICTED) != 0;
	double rho;

	if (is != (how != NULL) || is != (of != NULL))
		return err_set(e, ERR_DATA, "corrupt: the shard has only some of flag "
		    "PREDICTED, key predict and key history: expected all or none");
	if (how == NULL || strcmp(how, SHARD_PREDICT_PATCH) == 0 ||
	    (strncmp(how, "cache:", 6) == 0 &&
	    num_strtod(&rho, how + 6, 0, 1) == 0))
		return checks_stamp(s, SHARD_KEY_HISTORY, e);
	return err_set(e, ERR_DATA, "corrupt: key %s: '%.40s' is neither "
	    SHARD_PREDICT_PATCH " nor cache:R with R from 0 to 1",
	    SHARD_KEY_PREDICT, how);
}

int
checks_shard(const struct shard *s, struct err *e)
{
	double v;
	int k;

	if (s->contributors == 0)
		return err_set(e, ERR_DATA, "corrupt: the shard states 0 contributors, "
		    "expected 1 or more");
	if ((k = keys_real(&s->kv, SHARD_KEY_COMPUTE, &v, NULL, e)) < 0 ||
	    (k = keys_real(&s->kv, SHARD_KEY_NORM, &v, NULL, e)) < 0 ||
	    (k = checks_stamp(s, SHARD_KEY_STAMP, e)) < 0)
		return k;
	return checks_difference(s, e);
}

/* Check an annotation about groups; entry: NOTE_STAT, NOTE_SCORE or NOTE_PLAN. The reader
 * checks that the ranges of annotations of one type rise. */
static int
checks_groups(const struct reader *r, uint32_t entry, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct stat_group s;
	struct note n;
	uint32_t i;
	int k = note_get(&n, f->raw, f->raw_len, entry, reader_schema(r)->ngroups, e);

	for (i = 0; i < n.n && k == 0; i++) {
		if (entry == NOTE_STAT)
			k = note_stat(&n, i, reader_schema(r), &s, e);
		else if (entry == NOTE_SCORE && isnan(note_score(&n, i)))
			k = err_set(e, ERR_DATA, "corrupt: the score of group %lu, in "
			    "tensor '%.160s', is not a number", (unsigned long)(n.first + i),
			    schema_name(reader_schema(r), n.first + i));
	}
	return k;
}

/* Check that a shard does not name more contributors than it states, and that the names rise
 * from frame to frame, so that each is listed once. */
static int
checks_names(struct checks *c, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct array_names l = ARRAY_NAMES_INIT;
	int k = array_get_names(&l, f->raw, f->raw_len, e);

	if (k == 0 && l.n != 0) {
		if (strcmp(c->last, l.p[0]) >= 0)
			k = err_set(e, ERR_DATA, "corrupt: '%.80s' follows '%.80s' in the "
			    "list of contributors: expected rising names", l.p[0], c->last);
		memcpy(c->last, l.p[l.n - 1], strlen(l.p[l.n - 1]) + 1);
	}
	c->names += l.n;
	array_release(&l);
	if (k == 0 && c->names > reader_shard(r)->contributors)
		k = err_set(e, ERR_DATA, "corrupt: the list names %llu or more "
		    "contributors, but the shard states %lu", (unsigned long long)c->names,
		    (unsigned long)reader_shard(r)->contributors);
	return k;
}

static int
checks_times(const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const size_t n = reader_schema(r)->n;
	double *v = alloc_get(n + 1, sizeof(*v), e);
	int k = v != NULL ? array_get_times(f->raw, f->raw_len, n, v, e) : -ERR_SYS;

	alloc_free(v);
	return k;
}

int
checks_sign(const unsigned char *p, size_t n, struct err *e)
{
	if (n != CHECKS_SIGN || bytes_le32(p + 4) != 0)
		return err_set(e, ERR_DATA, "corrupt: the signature has %zu bytes%s, "
		    "expected %d with zeros in bytes 4 to 7", n, n == CHECKS_SIGN ?
		    ", of which bytes 4 to 7 are not zero" : "", CHECKS_SIGN);
	return bytes_le32(p) == 1 ? 0 : err_set(e, ERR_DATA, "unsupported: signature "
	    "scheme %lu is unknown, expected 1", (unsigned long)bytes_le32(p));
}

/* Return 1 if p[len] is empty or has exactly n varints, one per record; otherwise 0. */
static int
checks_changed(const unsigned char *p, size_t len, uint64_t n)
{
	struct bytes b = BYTES(p, len);

	for (; len > 0 && n > 0 && !b.bad; n--)
		(void)bytes_varint(&b);
	return !b.bad && b.at == len;
}

/* Check frame mODL, which a model patch has once, after its records: the hash of the old
 * model (zeros if the patch needs none) and of the new one, and a checksum per record. With
 * an old model, a count of changed words per record may follow. */
static int
checks_model(struct checks *c, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const struct shard *s = reader_shard(r);
	struct bytes b = BYTES(f->raw, f->raw_len);
	const uint64_t n = reader_so_far(r), sums = 40 + 8 * n;
	const int whole = bytes_zero(&b, 16);

	if (s->kind != SHARD_MODEL || c->model++ != 0 || f->raw_len < sums ||
	    bytes_le64(f->raw + 32) != n ||
	    whole != ((s->flags & SHARD_PREDICTED) == 0) ||
	    !checks_changed(f->raw + sums, (size_t)(f->raw_len - sums),
	    whole ? 0 : n))
		return err_set(e, ERR_DATA, "corrupt: frame mODL, which names the models of a "
		    "patch, occurs twice, or disagrees with the shard's kind, flags or records");
	return 0;
}

static int
checks_one(struct checks *c, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);

	switch (f->type) {
	case FRAME_STAT:
		return checks_groups(r, NOTE_STAT, e);
	case FRAME_SCOR:
		return checks_groups(r, NOTE_SCORE, e);
	case FRAME_PLAN:
		return checks_groups(r, NOTE_PLAN, e);
	case FRAME_MEMB:
		return checks_names(c, r, e);
	case FRAME_TIME:
		return checks_times(r, e);
	case FRAME_POLI:
		return keys_read(&c->policy, f->raw, f->raw_len, e);
	case FRAME_MODL:
		return checks_model(c, r, e);
	case FRAME_SIGN:
		c->sign = 1;
		return checks_sign(f->raw, f->raw_len, e);
	default:
		return 0;
	}
}

int
checks_data(const struct checks *c, const struct reader *r, struct err *e)
{
	return !c->sign ? 0 : reader_place(r, err_set(e, ERR_DATA, "corrupt: a frame "
	    "follows the signature"), e);
}

int
checks_note(struct checks *c, const struct reader *r, struct err *e)
{
	int k = checks_data(c, r, e);

	if (k < 0)
		return k;
	k = checks_one(c, r, e);
	return k == -ERR_DATA ? reader_place(r, k, e) : k;
}
