#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "format/frame.h"
#include "format/values.h"
#include "pipe/filter.h"
#include "pipe/source.h"
#include "stage/stage_cut.h"

struct stage_cut {
	const struct stage_cut_opts *o;
	struct writer *w;
	uint64_t shards;		/* written */
	uint64_t tensors;		/* of their schemas, that are meant */
	float *x;			/* f32[cap], of a group */
	size_t cap;
};

/* All of it, as it is. */
static int
stage_cut_whole(struct stage_cut *x, struct reader *r, struct err *e)
{
	int k;

	(void)reader_skim(r, 0);
	if ((k = writer_history(x->w, reader_provenance(r), e)) == 0)
		k = filter_copy(r, x->w, e);
	(void)reader_skim(r, 1);
	return k;
}

/* The groups of the chosen tensors; their bodies as they are, but they are
 * decoded, for the sums at the shard's end. */
static int
stage_cut_data(struct stage_cut *x, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	const struct record *rec;
	struct schema_span span;
	size_t i, n, len;
	int k = 0;

	rec = reader_records(r, &n);
	for (i = 0; i < n && k == 0; i++) {
		schema_span(sc, rec[i].group, &span);
		if (!pick_tensor(x->o->tensor, sc->t[span.tensor].name))
			continue;
		if ((k = reader_fetch(r, e)) < 0 || (k = values_decode(r,
		    &rec[i], x->x, x->cap, &len, e)) < 0)
			break;
		k = writer_record(x->w, rec[i].group, rec[i].codec,
		    rec[i].param, rec[i].body, rec[i].len, x->x, len, e);
	}
	return k;
}

static int
stage_cut_tensors(struct stage_cut *x, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	size_t i;
	int k;

	for (i = 0; i < sc->n; i++)
		x->tensors += pick_tensor(x->o->tensor, sc->t[i].name) ? 1 : 0;
	if (x->cap < sc->group_size) {
		alloc_free(x->x);
		x->cap = 0;
		if ((x->x = alloc_get(sc->group_size, sizeof(*x->x),
		    e)) == NULL)
			return -ERR_SYS;
		x->cap = sc->group_size;
	}
	if ((k = filter_shard(r, x->w, NULL, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND)
			return writer_send(x->w, NULL, e);
		if (k == READER_DATA)
			k = stage_cut_data(x, r, e);
		else if (k == READER_NOTE &&
		    frame_safe_to_copy(reader_frame(r)->type))
			k = writer_pass(x->w, r, e);
		if (k < 0)
			break;
	}
	return k;
}

static int
stage_cut_file(struct stage_cut *x, struct io *io, struct err *e)
{
	const struct stage_cut_opts *o = x->o;
	struct reader *r;
	int k;

	io_watch(io, filter_piped(o->f));
	if ((k = reader_open(&r, io, &o->f->in, e)) < 0)
		return k;
	(void)reader_skim(r, 1);
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		if (!pick_wants(&o->pick, reader_shard(r)))
			k = pick_pass(r, e);
		else if (o->tensor != NULL)
			k = stage_cut_tensors(x, r, e);
		else
			k = stage_cut_whole(x, r, e);
		x->shards += pick_wants(&o->pick, reader_shard(r)) ? 1 : 0;
		if (k < 0)
			break;
	}
	k = reader_blame(r, k, e);
	reader_free(r);
	return k;
}

static int
stage_cut_operand(struct stage_cut *x, const char *path, struct err *e)
{
	struct source *s;
	struct io *io;
	int k = source_open(&s, path, e);

	if (k < 0)
		return k;
	while ((k = source_next(s, &io, e)) > 0)
		if ((k = stage_cut_file(x, io, e)) < 0)
			break;
	source_free(s);
	return k;
}

int
stage_cut_run(void *opts, char **path, size_t n, struct err *e)
{
	const struct stage_cut_opts *o = opts;
	struct stage_cut x = { .o = o };
	size_t i = 0;
	int r = filter_out(o->f, &x.w, e);

	if (r == 0)
		do
			r = stage_cut_operand(&x, n != 0 ? path[i] : NULL, e);
		while (++i < n && r == 0);
	if (r == 0 && x.shards == 0)
		r = err_set(e, ERR_DATA, "mismatch: no such shard (ace-inspect "
		    "--brief lists them)");
	if (r == 0 && o->tensor != NULL && x.tensors == 0)
		r = err_set(e, ERR_DATA, "mismatch: no tensor '%s' in these "
		    "shards", o->tensor);
	if (x.w != NULL)
		r = filter_end(x.w, r, e);
	writer_free(x.w);
	alloc_free(x.x);
	return r;
}
