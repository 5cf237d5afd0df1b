#include "base/alloc.h"
#include "base/err.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "stage/stage_out.h"

struct stage_out {
	struct stage s;
	struct writer *w;
};

static struct writer *
stage_out_writer(const struct stage *s)
{
	return ((const struct stage_out *)s)->w;
}

static int
stage_out_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct writer *w = stage_out_writer(s);
	int r = writer_history(w, sh->provenance, e);

	return r < 0 ? r : writer_shard(w, sh->shard, sh->schema, e);
}

static int
stage_out_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	struct writer *w = stage_out_writer(s);
	int r;

	if (d->whole == NULL)
		return writer_dense(w, d->rec->group, d->x, d->nx, e);
	r = writer_pass(w, d->whole, e);
	return r < 0 || !d->cut ? r : writer_flush(w, e);
}

static int
stage_out_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	return n->whole != NULL ?
	    writer_pass(stage_out_writer(s), n->whole, e) :
	    writer_note(stage_out_writer(s), n->type, n->p, n->n, e);
}

static int
stage_out_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	return writer_send(stage_out_writer(s), sums, e);
}

static int
stage_out_finish(struct stage *s, struct err *e)
{
	return filter_end(stage_out_writer(s), 0, e);
}

static void
stage_out_abort(struct stage *s)
{
	writer_abort(stage_out_writer(s));
}

static void
stage_out_free(struct stage *s)
{
	writer_free(stage_out_writer(s));
	alloc_free(s);
}

int
stage_out_new(struct stage **out, struct writer *w, struct err *e)
{
	struct stage_out *o = alloc_get(1, sizeof(*o), e);

	*out = NULL;
	if (o == NULL) {
		writer_free(w);
		return -ERR_SYS;
	}
	o->w = w;
	o->s.begin = stage_out_begin;
	o->s.data = stage_out_data;
	o->s.note = stage_out_note;
	o->s.end = stage_out_end;
	o->s.finish = stage_out_finish;
	o->s.abort = stage_out_abort;
	o->s.free = stage_out_free;
	*out = &o->s;
	return 0;
}
