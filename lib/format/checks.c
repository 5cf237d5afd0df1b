#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/array.h"
#include "format/checks.h"
#include "format/keys.h"
#include "format/note.h"
#include "format/reader.h"

/* Numbers that are none, or are beyond f32, are statistics of nothing. */
static int
checks_stat(const struct note *n, uint32_t i, struct err *e)
{
	struct stat_group s;

	note_stat(n, i, &s);
	if (s.nonzero <= s.n && isfinite(s.sumsq) && isfinite(s.sumabs) &&
	    isfinite(s.sum) && isfinite(s.max_abs) && s.sumsq >= 0 &&
	    s.sumabs >= 0 && s.max_abs >= 0)
		return 0;
	return err_set(e, ERR_DATA, "corrupt: statistics of group %lu",
	    (unsigned long)(n->first + i));
}

/* One of the annotations that speak of groups; the reader sees that they rise. */
static int
checks_groups(const struct reader *r, uint32_t entry, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct note n;
	uint32_t i;
	int k = note_get(&n, f->raw, f->raw_len, entry,
	    reader_schema(r)->ngroups, e);

	for (i = 0; i < n.n && k == 0; i++) {
		if (entry == NOTE_STAT)
			k = checks_stat(&n, i, e);
		else if (entry == NOTE_SCORE && isnan(note_score(&n, i)))
			k = err_set(e, ERR_DATA, "corrupt: score of group %lu",
			    (unsigned long)(n.first + i));
	}
	return k;
}

/* A shard names as many contributors as it says it has, and no more. */
static int
checks_names(struct checks *c, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct array_names l = ARRAY_NAMES_INIT;
	int k = array_get_names(&l, f->raw, f->raw_len, e);

	c->names += l.n;
	array_release(&l);
	if (k == 0 && c->names > reader_shard(r)->contributors)
		k = err_set(e, ERR_DATA, "corrupt: %llu names of %lu "
		    "contributors", (unsigned long long)c->names,
		    (unsigned long)reader_shard(r)->contributors);
	return k;
}

static int
checks_times(const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const size_t n = reader_schema(r)->n;
	double *v = alloc_get(n + 1, sizeof(*v), e);
	int k = v != NULL ? array_get_times(f->raw, f->raw_len, n, v, e) :
	    -ERR_SYS;

	alloc_free(v);
	return k;
}

static int
checks_lines(const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct text_kv kv = TEXT_KV_INIT;
	int k = f->type == FRAME_POLI ?
	    keys_read(&kv, f->raw, f->raw_len, e) :
	    text_get_lines(&kv, f->raw, f->raw_len, e);

	text_release(&kv);
	return k;
}

static int
checks_sign(const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct bytes b = BYTES(f->raw, f->raw_len);
	const uint32_t scheme = bytes_next32(&b);
	const int zero = bytes_zero(&b, 4);

	if (!b.bad && scheme != 1)
		return err_set(e, ERR_DATA, "unsupported: signature scheme %lu",
		    (unsigned long)scheme);
	return zero && !b.bad && f->raw_len == 104 ? 0 :
	    err_set(e, ERR_DATA, "corrupt: a signature");
}

static int
checks_one(struct checks *c, const struct reader *r, struct err *e)
{
	switch (reader_frame(r)->type) {
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
	case FRAME_LINK:
	case FRAME_TEXT:
		return checks_lines(r, e);
	case FRAME_SIGN:
		c->sign = 1;
		return checks_sign(r, e);
	default:
		return 0;
	}
}

int
checks_data(const struct checks *c, const struct reader *r, struct err *e)
{
	return !c->sign ? 0 : reader_place(r, err_set(e, ERR_DATA, "corrupt: "
	    "something follows the signature"), e);
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
