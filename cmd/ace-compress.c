/*
 * ace-compress: codes every group as the plan says, within its budget.  With a state it keeps
 * the coding error (error feedback) and the coded shard itself, in one commit, before the end
 * of the shard is sent (stage/stage_compress.h).
 */
#include <unistd.h>

#include "base/err.h"
#include "device/pending.h"
#include "pipe/event.h"
#include "pipe/program.h"
#include "stage/stage_compress.h"

struct opts {
	struct filter *f;
	struct stage_compress_opts compress;
	int resend;
};

static const struct opt options[] = {
	OPT_PART(stage_compress_rows, struct opts, compress),
	{ 0, "resend", NULL, "send shards without a receipt once more; read no "
	    "input",
	    OPT_FLAG(struct opts, resend), .with = "state" },
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	FILTER_OPT_THREADS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct stage *s;
	struct writer *w;
	int r;

	if (o->resend && (n > 0 || o->compress.have_codec))
		return err_set(e, ERR_USAGE, "--resend reads no input and codes "
		    "nothing: leave out FILE and -c");
	/* a mistyped name must not count as an empty state */
	if (o->resend && access(o->compress.dir, F_OK) < 0)
		return err_sys(e, "'%s'", o->compress.dir);
	if (o->resend && o->compress.fb.window == 0)
		o->compress.fb.window = PENDING_MAX;	/* 0: sent shards may count as delivered */
	r = stage_new(&s, &stage_compress, &o->compress, o->f, e);
	if (r == 0 && !o->resend)
		r = stage_pass(o->f, s, NULL, *path, e);
	else if (r == 0 && (r = filter_out(o->f, &w, e)) == 0) {
		stage_compress_to(s, w);
		r = stage_finish(s, e);
	}
	stage_free(s);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-compress",
			.usage = "[-S DIR [--error-feedback HOW] [--sync WHEN]] [-c CODEC] "
			    "[FILE]",
			.about = "Codes a shard stream group by group as planned; with "
			    "-S keeps what was lost for the next step.",
			.examples = "ace-compress -c q8 edge1.aceg >coded.aceg\n"
			    "ace-score edge1.aceg | ace-select -b 20k | "
			    "ace-compress -S state >coded.aceg\n",
			.opt = options,
			.one = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f, .compress = STAGE_COMPRESS_INIT };

	return program_main(&p, argc, argv, &o);
}
