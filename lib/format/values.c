#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/values.h"
#include "kern/kern.h"

void
values_ctx(const struct schema *sc, const struct shard *s, uint32_t g,
    struct codec_ctx *ctx)
{
	struct schema_span span;

	schema_span(sc, g, &span);
	/* the ids are hashes already, so combining them is enough */
	ctx->seed = bytes_le64(s->run) ^ (bytes_le64(s->device) * 3);
	ctx->step = s->step;
	ctx->group = g;
	ctx->cols = span.cols != 0 ? span.cols : 1;
	ctx->offset = span.offset;
}

struct codec_plan
values_plan(const struct schema *sc, uint32_t g, struct codec_plan p)
{
	static const struct codec_plan exact = { CODEC_EXACT, 0, 0 };

	return codec_exact(p.codec) || !schema_exact_group(sc, g) ? p :
	    exact;
}

/* Return rec's body if it is an aligned f32 array in this machine's byte order, else NULL. */
static const float *
values_there(const struct record *rec, size_t n)
{
	const void *p = rec->body;

	return BYTES_LITTLE && rec->codec == CODEC_F32 && rec->param == 0 &&
	    rec->len == 4 * n && (uintptr_t)p % sizeof(float) == 0 ? p : NULL;
}

/* Set the error for a record that could not be decoded, with group, tensor and position. */
static int
values_bad(const struct reader *r, const struct record *rec, uint32_t tensor,
    int k, struct err *e)
{
	return reader_place(r, err_after(e, k, ", in group %lu of "
	    "tensor '%.80s'", (unsigned long)rec->group,
	    reader_schema(r)->t[tensor].name), e);
}

int
values_record(const struct record *rec, const struct codec_ctx *ctx, size_t n,
    float *buf, struct codec_list *l, const float **x, struct kern_stat *t,
    struct err *e)
{
	const struct kern *kern = kern_get(e);
	size_t i;
	int k = 0;

	if (kern == NULL)
		return -ERR_USAGE;
	if (l != NULL) {
		t->nonzero = 0;
		k = codec_decode_list(rec->codec, rec->param, ctx, rec->body, rec->len,
		    n, l, e);
		for (i = 0; k == 0 && i < l->k; i++)
			t->nonzero += l->x[i] < 0 || l->x[i] > 0;
		return k;
	}
	if ((*x = values_there(rec, n)) == NULL) {
		*x = buf;
		k = codec_decode(rec->codec, rec->param, ctx, rec->body, rec->len, buf,
		    n, e);
	}
	if (k == 0)
		kern->stat(*x, n, t);
	return k;
}

int
values_view(const struct reader *r, const struct record *rec, float *buf,
    size_t cap, const float **x, size_t *n, struct kern_stat *t, struct err *e)
{
	struct schema_span span;
	struct codec_ctx ctx;
	int k;

	schema_span(reader_schema(r), rec->group, &span);
	if (span.n > cap)
		return err_set(e, ERR_USAGE, "the buffer has room for %zu values, but the group "
		    "has %zu", cap, span.n);
	values_ctx(reader_schema(r), reader_shard(r), rec->group, &ctx);
	*n = span.n;
	if ((k = values_record(rec, &ctx, span.n, buf, NULL, x, t, e)) < 0)
		return values_bad(r, rec, span.tensor, k, e);
	reader_decoded(r, t->nonzero);
	return 0;
}

int
values_decode(const struct reader *r, const struct record *rec, float *x,
    size_t cap, size_t *n, struct err *e)
{
	struct kern_stat t;
	const float *at;
	int k = values_view(r, rec, x, cap, &at, n, &t, e);

	if (k == 0 && at != x)
		memcpy(x, at, *n * sizeof(*x));
	return k;
}

int
values_refuse(const struct reader *r, uint32_t g, size_t i, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	struct schema_span span;

	schema_span(sc, g, &span);
	return reader_place(r, err_set(e, ERR_REFUSED, "non-finite value in "
	    "tensor '%s' at index %llu: correct the training", sc->t[span.tensor].name,
	    (unsigned long long)(span.offset + i)), e);
}

int
values_overflow(const struct schema *sc, uint32_t g, size_t i, struct err *e)
{
	struct schema_span span;

	schema_span(sc, g, &span);
	return err_set(e, ERR_REFUSED, "limit: in tensor '%s' the value at index %llu and its "
	    "residual together exceed the range of f32, 3.4e38: send smaller values, or begin "
	    "without the residual (ace-ack -S DIR --restart N)", sc->t[span.tensor].name,
	    (unsigned long long)(span.offset + i));
}

int
values_bounded(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct err *e)
{
	const float most = VALUES_MOST;
	size_t at;

	if (k->max_bits(x, n) <= bytes_u32(most))
		return 0;
	if ((at = kern_first_nonfinite(x, n)) != n)
		return err_set(e, ERR_DATA, "non-finite value in tensor '%.80s' "
		    "at index %llu: %g", t->name, (unsigned long long)(first + at), (double)x[at]);
	for (at = 0; x[at] <= most && x[at] >= -most; at++)
		;
	return err_set(e, ERR_DATA, "limit: %g in tensor '%.60s' at index %llu is "
	    "above %g in magnitude", (double)x[at], t->name,
	    (unsigned long long)(first + at), (double)most);
}

int
values_whole(const struct shard *s, struct err *e)
{
	return (s->flags & SHARD_PREDICTED) == 0 ? 0 : err_set(e, ERR_DATA,
	    "mismatch: shard '%.80s/%llu' is a difference to a %s", shard_device(s),
	    (unsigned long long)s->step, shard_is_patch(s) ?
	    "model: apply it with ace-patch" :
	    "history: expand it first with ace-expand --cache DIR");
}

static int
values_room(struct values *v, struct err *e)
{
	const size_t want = reader_schema(v->r)->group_size;

	return alloc_grow(&v->buf, &v->cap, want, sizeof(float), e);
}

int
values_begin(struct values *v, struct reader *r, struct err *e)
{
	int k;

	v->r = r;
	v->list = NULL;
	v->at = v->nlist = 0;
	v->next = 0;
	v->ended = 0;
	if (!v->differences && (k = values_whole(reader_shard(r), e)) < 0)
		return k;
	return values_room(v, e);
}

/* Read until the next record or the end of the shard. */
static int
values_fill(struct values *v, struct err *e)
{
	int k;

	while (!v->ended && v->at == v->nlist) {
		if ((k = reader_next(v->r, e)) < 0)
			return k;
		if (k == READER_DATA) {
			v->list = reader_records(v->r, &v->nlist);
			v->at = 0;
		} else if (k == READER_SEND) {
			v->ended = 1;
		} else if (k == READER_NOTE && v->note != NULL &&
		    (k = v->note(v->arg, v->r, e)) < 0) {
			return k;
		}
	}
	return 0;
}

/* Like values_next, but do not decode: set neither v.x nor the values in v.buf. */
static int
values_skip(struct values *v, struct err *e)
{
	const struct schema *s = reader_schema(v->r);
	struct schema_span span;
	int k;

	if ((k = values_fill(v, e)) < 0)
		return k;
	if (v->next == s->ngroups)
		return 0;	/* only annotations follow the last group */
	schema_span(s, v->next, &span);
	v->group = v->next++;
	v->n = span.n;
	v->sent = !v->ended && v->list[v->at].group == v->group;
	v->rec = v->sent ? &v->list[v->at++] : NULL;
	return 1;
}

int
values_next(struct values *v, struct err *e)
{
	struct kern_stat t;
	size_t n;
	int k = values_skip(v, e);

	if (k <= 0)
		return k;
	if (!v->sent) {
		memset(v->buf, 0, v->n * sizeof(*v->buf));
		v->x = v->buf;
		return 1;
	}
	k = values_view(v->r, v->rec, v->buf, v->cap, &v->x, &n, &t, e);
	return k < 0 ? k : 1;
}

void
values_release(struct values *v)
{
	alloc_free(v->buf);
	*v = (struct values)VALUES_INIT;
}
