/*
 * ace-cut: the chosen shards, or the chosen tensors of them, of files, folders
 * and archives, as one stream.
 */
#include "pipe/program.h"
#include "pipe/source.h"
#include "stage/stage_cut.h"

static const struct opt options[] = {
	OPT_PART(pick_opts, struct stage_cut_opts, pick),
	{ 0, "tensor", "GLOB",
	    "only tensors whose name matches; the others are not sent",
	    OPT_TEXT(struct stage_cut_opts, tensor) },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

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
		.run = stage_cut_run
	};
	struct stage_cut_opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
