#include "base/err.h"
#include "pipe/program.h"
#include "stage/stage_out.h"
#include "stage/stage_program.h"

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
