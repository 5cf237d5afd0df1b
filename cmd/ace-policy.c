/*
 * ace-policy: decides how much to compress (equation 5 of ACE-Sync, or DeCo-SGD) and, if asked,
 * how often to synchronise (equation 9), and writes each into the shards as an annotation.
 */
#include "stage/stage_policy.h"

static const struct opt options[] = {
	OPT_ROWS(stage_policy_rows),
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	const struct cli c = {
		.prog = "ace-policy",
		.usage = "[-S DIR] [options] [FILE]",
		.about = "Writes into the stream how hard to compress and how often to "
		    "synchronise.",
		.examples = "ace-policy --bandwidth 2Mbit edge1.aceg | "
		    "ace-select --policy |\n"
		    "        ace-compress >coded.aceg\n"
		    "ace-aggregate edge1.aceg edge2.aceg |\n"
		    "        ace-policy --target-divergence 0.01 "
		    "--model-norm 100 >mean.aceg\n",
		.opt = options
	};
	struct stage_policy_opts o = STAGE_POLICY_INIT;

	return stage_program(&stage_policy, &o, &c, argc, argv);
}
