/*
 * ace-score: adds the statistics and the importance of every group as annotations.  The
 * values pass unchanged.
 */
#include "stage/stage_score.h"

static const struct opt options[] = {
	OPT_ROWS(stage_score_rows),
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	const struct cli c = {
		.prog = "ace-score",
		.usage = "[-S DIR] [--form NAME] [FILE]",
		.about = "Adds the statistics and the importance of every "
		    "group to a shard stream.",
		.examples = "ace-score edge1.aceg | ace-select -b 20k | "
		    "ace-compress >coded.aceg\n"
		    "ace-score -S state edge1.aceg >scored.aceg\n",
		.opt = options
	};
	struct stage_score_opts o = { 0 };

	return stage_program(&stage_score, &o, &c, argc, argv);
}
