/*
 * ace-select: chooses a codec for every group and writes the choice as an
 * annotation behind the values, which pass unchanged.
 */
#include "base/err.h"
#include "base/io.h"
#include "pipe/program.h"
#include "stage/stage_select.h"
#include "stage/stage_text.h"

struct opts {
	struct filter *f;
	struct stage_select_opts select;
	int text;
};

static const struct opt options[] = {
	OPT_PART(stage_select_rows, struct opts, select),
	{ 0, "text", NULL, "write the plan as text, not the stream",
	    OPT_FLAG(struct opts, text) },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

/* All of path, and the stream or its plans as text. */
static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct stage *s = NULL;
	struct reader *in = NULL;
	struct io *to;
	int r = stage_select.make(&s, &o->select, o->f, e);

	(void)n;
	if (r == 0 && !o->text)
		r = stage_program_pass(o->f, s, stage_select.values, *path,
		    e);
	else if (r == 0 && (r = filter_in(o->f, &in, *path, e)) == 0 &&
	    (r = io_create(&to, o->f->output, 1, e)) == 0 &&
	    (r = stage_text_new(&s->next, to, e)) == 0)
		r = stage_run(in, s, NULL, e);
	reader_free(in);
	stage_free(s);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-select",
			.usage = "-b SIZE | --bits N | --policy | -p SHARE | "
			    "--plan FILE [--levels LIST]\n    [--text] [FILE]",
			.about = "Chooses a codec for every group of a shard stream.",
			.examples = "ace-score edge1.aceg | ace-select -b 20k | "
			    "ace-compress >coded.aceg\n"
			    "ace-score edge1.aceg | ace-select -b 20k --text\n",
			.opt = options,
			.one = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f };
	int status = program_main(&p, argc, argv, &o);

	stage_select_release(&o.select);
	return status;
}
