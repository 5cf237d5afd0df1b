/*
 * ace-inspect: what is in shard streams, as text or JSON: a listing,
 * statistics, a verdict, a comparison; and what is whole in
 * a damaged file, saved.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "kern/kern.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "pipe/source.h"
#include "report/inspect.h"
#include "report/report.h"

struct opts {
	struct inspect_opts look;
	struct report p;
	struct pick pick;
};

/* --stats and --diff go together, and --plot and --course, no other two. */
static int
mode_is(struct opts *o, int mode, struct err *e)
{
	int *now = &o->look.mode;

	if (mode == INSPECT_STATS)
		o->p.stats = 1;
	if (*now == INSPECT_NONE || *now == mode ||
	    (*now == INSPECT_STATS && mode == INSPECT_DIFF) ||
	    (*now == INSPECT_PLOT && mode == INSPECT_COURSE))
		*now = mode;
	else if (!(*now == INSPECT_DIFF && mode == INSPECT_STATS) &&
	    !(*now == INSPECT_COURSE && mode == INSPECT_PLOT))
		return err_set(e, ERR_USAGE, "one of --list, --brief, --tsv, "
		    "--diffable, --course, --stats, --verify, --diff, "
		    "--plot, --recover, --conservation");
	return 0;
}

static int
set_mode(void *arg, const struct opt *row, const char *val, struct err *e)
{
	(void)val;
	return mode_is(arg, row->value, e);
}

/* The forms of INSPECT_BRIEF are options of their own. */
static int
set_form(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct opts *o = arg;
	const enum brief_form form = (enum brief_form)row->value;

	(void)val;
	if (o->look.brief.form != BRIEF_TEXT && o->look.brief.form != form)
		return err_set(e, ERR_USAGE, "one of --tsv, --diffable");
	o->look.brief.form = form;
	return mode_is(o, INSPECT_BRIEF, e);
}

static int
set_follow(void *arg, const struct opt *row, const char *val, struct err *e)
{
	(void)row, (void)val;
	return mode_is(arg, INSPECT_BRIEF, e);
}

#define MODE(m) OPT_CALL(set_mode), .value = (m)
static const struct opt options[] = {
	{ 0, "list", NULL, "shards and tensors, undecoded (default for few)",
	    MODE(INSPECT_LIST) },
	{ 0, "brief", NULL, "a line a shard (default for many)",
	    MODE(INSPECT_BRIEF) },
	{ 0, "tsv", NULL, "a line a shard, all columns, with tabs",
	    OPT_CALL(set_form), .value = BRIEF_TSV },
	{ 0, "diffable", NULL, "lines without what differs between equal runs",
	    OPT_CALL(set_form), .value = BRIEF_DIFFABLE },
	{ 0, "follow", NULL,
	    "a line a shard, also of those that come to the folder",
	    OPT_FLAG(struct opts, look.follow), .set = set_follow },
	{ 0, "course", NULL, "bytes, codecs, bandwidth over the steps of runs",
	    MODE(INSPECT_COURSE) },
	{ 0, "stats", NULL, "statistics of the values", MODE(INSPECT_STATS) },
	{ 0, "verify", NULL, "decode all, hold it against the sums",
	    MODE(INSPECT_VERIFY) },
	{ 0, "diff", "OTHER", "compare with the stream in OTHER",
	    OPT_PATH(struct opts, look.other, OPT_READ),
	    .set = set_mode, .value = INSPECT_DIFF },
	{ 0, "plot", "FILE.svg",
	    "a picture of magnitudes and bits, or with --course of that",
	    OPT_PATH(struct opts, look.picture, OPT_WRITE),
	    .set = set_mode, .value = INSPECT_PLOT },
	{ 0, "recover", NULL,
	    "write the whole shards of a damaged FILE as a stream",
	    MODE(INSPECT_RECOVER) },
	{ 0, "conservation", NULL, "do inputs FILE, state and spool balance?",
	    MODE(INSPECT_CONSERVE) },
	{ 'S', "state", "DIR", "with --conservation: the device's",
	    OPT_PATH(struct opts, look.state, OPT_DIR) },
	{ 0, "spool", "DIR", "with --conservation: the receiver's",
	    OPT_PATH(struct opts, look.spool, OPT_DIR) },
	{ 0, "json", NULL, "JSON, one document a line",
	    OPT_FLAG(struct opts, p.as_json) },
	OPT_PART(pick_opts, struct opts, pick),
	{ 0, "tensor", "GLOB", "only tensors whose name matches",
	    OPT_TEXT(struct opts, p.glob) },
	{ 0, "tolerance", "NMSE", "with --diff: up to it is no difference",
	    OPT_F64(struct opts, p.tolerance, 0, 1e300) },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

/* Checks that the options given may be used together. */
static int
check(const struct inspect_opts *o, size_t n, char **path, struct err *e)
{
	if (n > 1 && (o->mode == INSPECT_DIFF || o->mode == INSPECT_RECOVER ||
	    o->mode == INSPECT_PLOT))
		return err_set(e, ERR_USAGE, "%s takes one FILE, not also '%s'",
		    o->mode == INSPECT_DIFF ? "--diff" :
		    o->mode == INSPECT_PLOT ? "--plot" : "--recover", path[1]);
	if (o->mode == INSPECT_DIFF && strcmp(o->other, "-") == 0 &&
	    (n == 0 || strcmp(path[0], "-") == 0))
		return err_set(e, ERR_USAGE, "both streams from standard input");
	if (o->mode != INSPECT_CONSERVE &&
	    (o->state != NULL || o->spool != NULL))
		return err_set(e, ERR_USAGE, "-S and --spool go with "
		    "--conservation");
	if (o->follow && n != 1)
		return err_set(e, ERR_USAGE, "--follow goes with one folder");
	if (o->mode != INSPECT_RECOVER && (o->f->output != NULL ||
	    o->f->force || o->f->no_provenance || o->f->omit_schema))
		return err_set(e, ERR_USAGE, "-o, --force, --no-provenance, "
		    "--omit-schema go with --recover");
	return 0;
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *x = arg;
	struct inspect_opts *o = &x->look;
	const char *first = n == 1 ? path[0] : NULL;
	struct report *p = &x->p;
	int r = check(o, n, path, e);

	if (r < 0)
		return r;
	if ((p->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	p->cli = o->f->cli;
	p->verbose = o->f->cli->verbose;
	p->quiet = o->f->cli->quiet;
	inspect_screen(p);
	if (o->mode == INSPECT_RECOVER)
		return inspect_recover(o, first, e);
	if (o->mode == INSPECT_CONSERVE)
		return inspect_conserved(o, p, path, n, e);
	p->pick = pick_given(&x->pick) ? &x->pick : NULL;
	if (o->mode == INSPECT_COURSE)
		return inspect_course(o, p, path, n, e);
	if (o->mode == INSPECT_BRIEF && p->as_json)
		o->brief.form = BRIEF_JSON;
	return inspect_all(o, p, path, n, e);
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-inspect",
			.usage = "[--list|--brief|--tsv|--diffable|--course|\n    --stats|--verify|--diff OTHER|"
			    "--plot FILE.svg|\n    "
			    "--recover|--conservation -S DIR --spool DIR] [--json] "
			    "[FILE...]",
			.about = "Tells what is in gradient-shard streams.",
			.examples = "ace-inspect edge1.aceg\n"
			    "ace-inspect --verify edge1.aceg edge2.aceg\n",
			.opt = options
		},
		.open = source_io,
		.run = run
	};
	struct opts o = { .look = { .f = &p.f }, .pick = PICK_INIT };

	report_init(&o.p, stdout, NULL);
	return program_main(&p, argc, argv, &o);
}
