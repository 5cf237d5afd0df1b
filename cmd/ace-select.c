/*
 * ace-select: chooses a codec for every group and writes the choice as an
 * annotation behind the values, which pass unchanged.
 */
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_program.h"
#include "stage/stage_select.h"
#include "stage/stage_text.h"

enum { OPT_TEXT = CLI_LONG };
static const struct cli_opt options[] = {
	STAGE_SELECT_OPTS,
	{ OPT_TEXT, "text", NULL, "write the plan as text, not the stream" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_select_opts select;
	int text;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	if (key == OPT_TEXT) {
		o->text = 1;
		return 0;
	}
	if ((r = stage_select_set(&o->select, key, val, e)) == 0)
		r = filter_set(&o->f, key, val, e);
	return r < 0 ? r : 0;
}

/* All of path, and of its plans as text. */
static int
text(struct opts *o, struct stage *s, const char *path, struct err *e)
{
	struct reader *in = NULL;
	struct io *to;
	int r;

	if ((r = filter_in(&o->f, &in, path, e)) == 0 &&
	    (r = io_create(&to, o->f.output, 1, e)) == 0 &&
	    (r = stage_text_new(&s->next, to, e)) == 0)
		r = stage_run(in, s, NULL, e);
	reader_free(in);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-select",
		.usage = "-b SIZE | --bits N | --policy | -p SHARE | "
		    "--plan FILE [--levels LIST]\n    [--text] [FILE]",
		.about = "Chooses a codec for every group of a shard stream.",
		.examples = "ace-score edge1.aceg | ace-select -b 20k | "
		    "ace-compress >coded.aceg\n"
		    "ace-score edge1.aceg | ace-select -b 20k --text\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .select = STAGE_SELECT_INIT };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	o.select.cli = &c;
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0 &&
	    (r = stage_select_new(&s, &o.select, &e)) == 0)
		r = o.text ? text(&o, s, path, &e) :
		    stage_program(&o.f, s, STAGE_READS, path, &e);
	stage_free(s);
	stage_select_release(&o.select);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
