/*
 * ace-policy: decides how hard to compress (equation 5 of ACE-Sync) and how
 * often to synchronise (equation 9), and writes it as an annotation into every shard.
 */
#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_policy.h"
#include "stage/stage_program.h"

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "take the link's rate from DIR, keep the "
	    "interval there" },
	STAGE_POLICY_OPTS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_policy_opts policy;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r = stage_policy_set(&o->policy, key, val, e);

	if (r == 0)
		r = filter_set(&o->f, key, val, e);
	return r < 0 ? r : 0;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-policy",
		.usage = "[-S DIR] [options] [FILE]",
		.about = "Says in the stream how hard to compress and how often "
		    "to synchronise.",
		.examples = "ace-policy --bandwidth 2Mbit edge1.aceg | "
		    "ace-select --policy |\n"
		    "        ace-compress >coded.aceg\n"
		    "ace-aggregate edge1.aceg edge2.aceg |\n"
		    "        ace-policy --target-divergence 0.01 "
		    "--model-norm 100 >mean.aceg\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .policy = STAGE_POLICY_INIT };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	o.policy.cli = &c;
	o.policy.in = &o.f.in;
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0 &&
	    (r = stage_policy_new(&s, &o.policy, &e)) == 0)
		r = stage_program(&o.f, s, STAGE_IGNORES, path, &e);
	stage_free(s);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
