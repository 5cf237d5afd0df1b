/*
 * ace-sign: signs every shard of a stream with a device's key, or lets only
 * those through that are signed with a key of their device.
 */
#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage.h"
#include "stage/stage_program.h"
#include "stage/stage_sign.h"

enum { OPT_CHECK = CLI_LONG };
static const struct cli_opt options[] = {
	{ 'k', "key", "FILE", "sign with the Ed25519 key in FILE, PEM" },
	{ OPT_CHECK, "check", "FILE",
	    "let only pass what a key in FILE signed: NAME KEY lines" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_sign_opts sign;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'k':
		o->sign.key = val;
		return 0;
	case OPT_CHECK:
		o->sign.ring = val;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
which(const struct opts *o, struct err *e)
{
	if ((o->sign.key != NULL) != (o->sign.ring != NULL))
		return 0;
	return err_set(e, ERR_USAGE, "either --key or --check");
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-sign",
		.usage = "-k FILE | --check FILE [FILE]",
		.about = "Signs the shards of a stream, or lets only those "
		    "pass that are signed.",
		.examples = "ace-sign -k edge1.pem edge1.aceg >signed.aceg\n"
		    "ace-sign --check ring signed.aceg | "
		    "ace-recv --spool spool >receipts\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .sign = { .cli = &c } };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = which(&o, &e)) == 0 &&
	    (r = filter_one(&c, argc, argv, &path, &e)) == 0 &&
	    (r = stage_sign_new(&s, &o.sign, &e)) == 0)
		r = stage_program(&o.f, s, STAGE_READS, path, &e);
	stage_free(s);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
