#include "base/alloc.h"
#include "base/err.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "pipe/program.h"
#include "stage/stage.h"
#include "stage/stage_program.h"

/* ---- the last stage of most chains: writes what it is given to a writer ---- */

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

/* w stays the caller's until stage_free, which frees it; also when this fails. */
static int
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

/* ---- the program ---- */

struct stage_program {
	struct program p;
	const struct stage_kind *kind;
	void *o;
};

int
stage_program_pass(struct filter *f, struct stage *s, enum stage_values v,
    const char *path, struct err *e)
{
	struct reader *in = NULL;
	struct writer *w;
	int r;

	if ((r = filter_both(f, &in, &w, path, e)) == 0 &&
	    (r = stage_out_new(&s->next, w, e)) == 0) {
		filter_loose(in, w, v == STAGE_CHANGES);
		if (v != STAGE_CHANGES)
			writer_share(w, in, v == STAGE_IGNORES);
		r = stage_run(in, s, NULL, e);
	}
	reader_free(in);
	return r;
}

static int
stage_program_run(void *arg, char **path, size_t n, struct err *e)
{
	struct stage_program *x = arg;
	struct stage *s = NULL;
	int r = x->kind->make(&s, x->o, &x->p.f, e);

	(void)n;
	if (r == 0)
		r = stage_program_pass(&x->p.f, s, x->kind->values, *path, e);
	stage_free(s);
	return r;
}

int
stage_program(const struct stage_kind *k, void *o, const struct cli *c,
    int argc, char **argv)
{
	struct stage_program x = { .p = { .cli = *c, .run = stage_program_run },
	    .kind = k, .o = o };

	x.p.cli.one = 1;
	x.p.cli.own = o;
	return program_main(&x.p, argc, argv, &x);
}
