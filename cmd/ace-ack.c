/*
 * ace-ack: takes the receipts out of a return stream and records them in the
 * state.  The rest of the stream (the aggregate) is passed on.
 */
#include "pipe/program.h"
#include "stage/stage_ack.h"

static const struct opt options[] = {
	{ 'S', "state", "DIR", "the device's state (needed)",
	    OPT_PATH(struct stage_ack_opts, dir, OPT_DIR) },
	{ 0, "fence", NULL,
	    "the state was restored: take what ace-recv --fence says",
	    OPT_FLAG(struct stage_ack_opts, fence) },
	FILTER_OPT_SYNC,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-ack",
			.usage = "-S DIR [--fence] [--sync WHEN] [FILE]",
			.about = "Takes delivery receipts out of a return stream and "
			    "into the device's state; passes the rest on.",
			.examples = "ace-compress -S state -c q8 edge1.aceg | "
			    "ace-recv --spool spool |\n"
			    "        ace-ack -S state >rest.aceg\n"
			    "ace-compress -S state --resend | ace-recv "
			    "--spool spool | ace-ack -S state\n",
			.opt = options,
			.one = 1
		},
		.run = stage_ack_run
	};
	struct stage_ack_opts o = { .f = &p.f };

	return program_main(&p, argc, argv, &o);
}
