/*
 * ace-compress: codes every group as the plan says, within its budget.  With a
 * state it keeps what was lost (error feedback) and the coded shard itself, in
 * one commit, before the first byte of the shard leaves:
 *
 *   acc = e + g        C = code(acc)        e' = acc - dec(C)
 */
#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "device/pending.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_compress.h"

enum { OPT_RESEND = CLI_LONG, OPT_ROLES };
static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the residual and the coded shard in DIR" },
	{ 'c', "codec", "CODEC", "code all groups so, whatever the plan says" },
	{ OPT_ROLES, "roles", "HOW",
	    "keep (default) norms and biases dense, or ignore that" },
	STAGE_COMPRESS_OPTS,
	{ OPT_RESEND, "resend", NULL,
	    "send what has no receipt once more, read nothing" },
	FILTER_OPT_SYNC,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_compress_opts compress;
	int resend;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const roles[] = { "keep", "ignore", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->compress.dir = val;
		return 0;
	case 'c':
		o->compress.have_codec = 1;
		return codec_parse(val, &o->compress.codec, e);
	case OPT_ROLES:
		return num_choice(&o->compress.no_roles, val, roles,
		    "--roles", e);
	case OPT_RESEND:
		o->resend = 1;
		if (o->compress.fb.window == 0)	/* there is no receipt: believe it */
			o->compress.fb.window = PENDING_MAX;
		return 0;
	default:
		if ((r = stage_compress_set(&o->compress, key, val, e)) == 0)
			r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
run(struct opts *o, struct stage *s, const char *path, struct err *e)
{
	struct reader *in = NULL;
	struct writer *w;
	int r;

	if ((!o->resend && (r = filter_in(&o->f, &in, path, e)) < 0) ||
	    (r = filter_out(&o->f, &w, e)) < 0)
		goto out;
	stage_compress_to(s, w);
	if (in != NULL)
		filter_loose(in, w, 1);
	r = o->resend ? stage_finish(s, e) : stage_run(in, s, NULL, e);
out:
	reader_free(in);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-compress",
		.usage = "[-S DIR [--feedback HOW] [--sync WHEN]] [-c CODEC] "
		    "[FILE]",
		.about = "Codes a shard stream group by group as planned; with "
		    "-S keeps what was lost for the next step.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .compress = STAGE_COMPRESS_INIT };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	o.compress.cli = &c;
	r = cli_parse(&c, argc, argv, set, &o, &e);
	o.compress.fb.piped = filter_piped(&o.f) >= 0;
	o.compress.fb.sync = o.f.sync;
	if (r == 0)
		r = filter_one(&c, argc, argv, &path, &e);
	if (r == 0 && o.resend && o.compress.dir == NULL)
		r = err_set(&e, ERR_USAGE, "whose shards? (-S DIR)");
	if (r == 0 && (r = stage_compress_new(&s, &o.compress, &e)) == 0)
		r = run(&o, s, path, &e);
	stage_free(s);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
