/*
 * ace-compress: codes every group as the plan says, within its budget.  With a
 * state it keeps what was lost (error feedback) and the coded shard itself, in
 * one commit, before the first byte of the shard leaves:
 *
 *   acc = e + g        C = code(acc)        e' = acc - dec(C)
 */
#include "base/cli.h"
#include "base/err.h"
#include "device/pending.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_compress.h"

enum { OPT_RESEND = CLI_LONG };
static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the residual and the coded shard in DIR" },
	STAGE_COMPRESS_OPTS,
	{ OPT_RESEND, "resend", NULL,
	    "send what has no receipt once more, read nothing" },
	FILTER_OPT_SYNC,
	FILTER_OPT_THREADS,
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
	struct opts *o = arg;
	int r;

	if (key == OPT_RESEND) {
		o->resend = 1;
		return 0;
	}
	if ((r = stage_compress_set(&o->compress, key, val, e)) == 0)
		r = filter_set(&o->f, key, val, e);
	return r < 0 ? r : 0;
}

static int
run(struct opts *o, struct stage *s, const char *path, struct err *e)
{
	struct reader *in = NULL;
	struct writer *w;
	int r;

	r = o->resend ? filter_out(&o->f, &w, e) :
	    filter_both(&o->f, &in, &w, path, e);
	if (r < 0)
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
		.usage = "[-S DIR [--error-feedback HOW] [--sync WHEN]] [-c CODEC] "
		    "[FILE]",
		.about = "Codes a shard stream group by group as planned; with "
		    "-S keeps what was lost for the next step.",
		.examples = "ace-compress -c q4 edge1.aceg >coded.aceg\n"
		    "ace-score edge1.aceg | ace-select -b 20k | "
		    "ace-compress -S state >coded.aceg\n",
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
	o.compress.threads = o.f.threads;
	if (o.resend && o.compress.fb.window == 0)
		o.compress.fb.window = PENDING_MAX;	/* believe it: there is
							 * no receipt */
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
