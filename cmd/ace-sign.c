/*
 * ace-sign: signs every shard of a stream with a device's key, or passes only shards that
 * are signed with a key of their device.
 */
#include "stage/stage_sign.h"

static const struct opt options[] = {
	OPT_ROWS(stage_sign_rows),
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	const struct cli c = {
		.prog = "ace-sign",
		.usage = "-k FILE | --check FILE [FILE]",
		.about = "Signs the shards of a stream, or lets only those "
		    "pass that are signed.",
		.examples = "ace-sign -k edge1.pem edge1.aceg >signed.aceg\n"
		    "ace-sign --check ring signed.aceg | "
		    "ace-recv --spool spool >receipts\n",
		.opt = options
	};
	struct stage_sign_opts o = { 0 };

	return stage_program(&stage_sign, &o, &c, argc, argv);
}
