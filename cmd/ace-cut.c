/*
 * ace-cut: the chosen shards, or the chosen tensors of them, of files, folders
 * and archives, as one stream.
 */
#include "pipe/program.h"
#include "pipe/source.h"
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

	if (key == OPT_TENSOR) {
		o->tensor = val;
		return 0;
	}
	return pick_set(&o->pick, key, val, e);
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-cut",
			.usage = "[--step A-B] [--device GLOB] [--kind KIND] "
			    "[--tensor GLOB] [FILE...]",
			.about = "Writes the chosen shards and tensors as one stream.",
			.examples = "ace-cut --step 0-7 --device edge1 spool "
			    ">edge1.aceg\n"
			    "ace-cut --tensor embed edge1.aceg | ace-inspect\n",
			.opt = options
		},
		.open = source_io,
		.set = set,
		.run = stage_cut_run
	};
	struct stage_cut_opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
