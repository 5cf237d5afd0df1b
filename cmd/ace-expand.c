/*
 * ace-expand: any shard stream becomes dense; with a state the residual of
 * error feedback is added, g~ = g + gamma * e  (ACE-Sync, equation 7).
 */
#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_expand.h"
#include "stage/stage_program.h"

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "add the residual kept in DIR" },
	STAGE_EXPAND_OPTS,
	FILTER_OPT_SYNC,
	FILTER_OPT_THREADS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_expand_opts expand;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r = stage_expand_set(&o->expand, key, val, e);

	if (r == 0)
		r = filter_set(&o->f, key, val, e);
	return r < 0 ? r : 0;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-expand",
		.usage = "[-S DIR [--gamma G] [--wait TIME]] [--cache DIR] "
		    "[FILE]",
		.about = "Decodes a shard stream to dense; with -S adds the "
		    "residual of error feedback.",
		.examples = "ace-expand coded.aceg | ace-export -o "
		    "grad.safetensors\n"
		    "ace-expand -S state edge1.aceg | ace-compress "
		    "-S state -c q4 >coded.aceg\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .expand = STAGE_EXPAND_INIT };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	o.expand.reader = filter_piped(&o.f);
	o.expand.sync = o.f.sync;
	o.expand.threads = o.f.threads;
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0 &&
	    (r = stage_expand_new(&s, &o.expand, &e)) == 0)
		r = stage_program(&o.f, s, STAGE_CHANGES, path, &e);
	stage_free(s);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
