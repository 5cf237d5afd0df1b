/*
 * ace-expand: makes any shard stream dense; with a state it adds the residual of error
 * feedback, g~ = g + gamma * e (ACE-Sync, equation 7).
 */
#include "pipe/event.h"
#include "stage/stage_expand.h"

static const struct opt options[] = {
	OPT_ROWS(stage_expand_rows),
	{ 0, "feedback", "DIR", "tell ace-score -S DIR how useful each group was",
	    OPT_PATH(struct stage_expand_opts, feedback, OPT_DIR) },
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	FILTER_OPT_THREADS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	const struct cli c = {
		.prog = "ace-expand",
		.usage = "[-S DIR [--gamma G] [--wait TIME]] [--cache DIR] "
		    "[--feedback DIR] [FILE]",
		.about = "Decodes a shard stream to dense; with -S adds the "
		    "residual of error feedback.",
		.examples = "ace-expand coded.aceg | ace-export -o "
		    "grad.safetensors\n"
		    "ace-expand -S state edge1.aceg | ace-compress "
		    "-S state -c q8 >coded.aceg\n",
		.opt = options
	};
	struct stage_expand_opts o = { 0 };

	return stage_program(&stage_expand, &o, &c, argc, argv);
}
