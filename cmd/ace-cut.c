/*
 * ace-cut: the chosen shards, or the chosen tensors of them, of files, folders
 * and archives, as one stream.
 */
#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_cut.h"

enum { OPT_TENSOR = CLI_LONG };

static const struct cli_opt options[] = {
	PICK_OPTS,
	{ OPT_TENSOR, "tensor", "GLOB",
	    "only tensors whose name matches; the others are not sent" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct stage_cut_opts *o = arg;
	int r;

	if (key == OPT_TENSOR) {
		o->tensor = val;
		return 0;
	}
	if ((r = pick_set(&o->pick, key, val, e)) == 0)
		r = filter_set(o->f, key, val, e);
	return r < 0 ? r : 0;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-cut",
		.usage = "[--step A-B] [--device GLOB] [--kind KIND] "
		    "[--tensor GLOB] [FILE...]",
		.about = "Writes the chosen shards and tensors as one stream.",
		.examples = "ace-cut --step 0-7 --device edge1 spool "
		    ">edge1.aceg\n"
		    "ace-cut --tensor embed edge1.aceg | ace-inspect\n",
		.opt = options,
		.loops = kern_name
	};
	struct filter f;
	struct stage_cut_opts o = { .f = &f, .pick = PICK_INIT };
	struct err e = ERR_INIT;
	int r;

	filter_init(&f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = stage_cut_run(&o, argv + c.first, (size_t)(argc - c.first),
		    &e);
	filter_release(&f);
	return cli_exit(&c, r, &e);
}
