/*
 * ace-inspect: what is in shard streams, as text or JSON: a listing,
 * statistics, histograms, a verdict, a comparison; and what is whole in
 * a damaged file, saved.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "kern/kern.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "pipe/source.h"
#include "report/inspect.h"
#include "report/report.h"

enum {
	OPT_LIST = CLI_LONG + INSPECT_LIST,
	OPT_STATS = CLI_LONG + INSPECT_STATS,
	OPT_HISTOGRAM = CLI_LONG + INSPECT_HISTOGRAM,
	OPT_VERIFY = CLI_LONG + INSPECT_VERIFY,
	OPT_DIFF = CLI_LONG + INSPECT_DIFF,
	OPT_PLOT = CLI_LONG + INSPECT_PLOT,
	OPT_RECOVER = CLI_LONG + INSPECT_RECOVER,
	OPT_CONSERVE = CLI_LONG + INSPECT_CONSERVE,
	OPT_BRIEF = CLI_LONG + INSPECT_BRIEF,
	OPT_COURSE = CLI_LONG + INSPECT_COURSE,
	OPT_JSON, OPT_TENSOR, OPT_TOLERANCE, OPT_SPOOL, OPT_TSV, OPT_DIFFABLE,
	OPT_FOLLOW
};

static const struct cli_opt options[] = {
	{ OPT_LIST, "list", NULL,
	    "shards and tensors, undecoded (default for few)" },
	{ OPT_BRIEF, "brief", NULL, "a line a shard (default for many)" },
	{ OPT_TSV, "tsv", NULL, "a line a shard, all columns, with tabs" },
	{ OPT_DIFFABLE, "diffable", NULL,
	    "lines without what differs between equal runs" },
	{ OPT_FOLLOW, "follow", NULL,
	    "a line a shard, also of those that come to the folder" },
	{ OPT_COURSE, "course", NULL,
	    "bytes, codecs, bandwidth over the steps of runs" },
	{ OPT_STATS, "stats", NULL, "statistics of the values" },
	{ OPT_HISTOGRAM, "histogram", NULL, "draw the magnitudes by octave" },
	{ OPT_VERIFY, "verify", NULL, "decode all, hold it against the sums" },
	{ OPT_DIFF, "diff", "OTHER", "compare with the stream in OTHER" },
	{ OPT_PLOT, "plot", "FILE.svg",
	    "a picture of magnitudes and bits, or with --course of that" },
	{ OPT_RECOVER, "recover", NULL,
	    "write the whole shards of a damaged FILE as a stream" },
	{ OPT_CONSERVE, "conservation", NULL,
	    "do inputs FILE, state and spool balance?" },
	{ 'S', "state", "DIR", "with --conservation: the device's" },
	{ OPT_SPOOL, "spool", "DIR", "with --conservation: the receiver's" },
	{ OPT_JSON, "json", NULL, "JSON, one document a line" },
	PICK_OPTS,
	{ OPT_TENSOR, "tensor", "GLOB", "only tensors whose name matches" },
	{ OPT_TOLERANCE, "tolerance", "NMSE",
	    "with --diff: up to it is no difference" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct inspect_opts look;
	struct report p;
	struct pick pick;
};

/* --stats and --diff go together, and --plot and --course, no other two. */
static int
set_mode(struct opts *o, int mode, struct err *e)
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
		    "--diffable, --course, --stats, --histogram, --verify, "
		    "--diff, --plot, --recover, --conservation");
	return 0;
}

/* The forms of INSPECT_BRIEF are options of their own. */
static int
set_form(struct opts *o, enum brief_form form, struct err *e)
{
	if (o->look.brief.form != BRIEF_TEXT && o->look.brief.form != form)
		return err_set(e, ERR_USAGE, "one of --tsv, --diffable");
	o->look.brief.form = form;
	return set_mode(o, INSPECT_BRIEF, e);
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;

	switch (key) {
	case OPT_DIFF:
	case OPT_PLOT:
		*(key == OPT_DIFF ? &o->look.other : &o->look.picture) = val;
		/* FALLTHROUGH */
	case OPT_LIST:
	case OPT_BRIEF:
	case OPT_STATS:
	case OPT_HISTOGRAM:
	case OPT_VERIFY:
	case OPT_RECOVER:
	case OPT_CONSERVE:
	case OPT_COURSE:
		return set_mode(o, key - CLI_LONG, e);
	case 'S':
		o->look.state = val;
		return 0;
	case OPT_SPOOL:
		o->look.spool = val;
		return 0;
	case OPT_TSV:
		return set_form(o, BRIEF_TSV, e);
	case OPT_DIFFABLE:
		return set_form(o, BRIEF_DIFFABLE, e);
	case OPT_FOLLOW:
		o->look.follow = 1;
		return set_mode(o, INSPECT_BRIEF, e);
	case OPT_JSON:
		o->p.as_json = 1;
		return 0;
	case OPT_TENSOR:
		o->p.glob = val;
		return 0;
	case OPT_TOLERANCE:
		return num_f64(&o->p.tolerance, val, 0, 1e300, "--tolerance", e);
	default:
		return pick_set(&o->pick, key, val, e);
	}
}

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
	p->pick = x->pick.given ? &x->pick : NULL;
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
			.usage = "[--list|--brief|--tsv|--diffable|--course|\n    --stats|--histogram|--verify|--diff OTHER|"
			    "--plot FILE.svg|\n    "
			    "--recover|--conservation -S DIR --spool DIR] [--json] "
			    "[FILE...]",
			.about = "Tells what is in gradient-shard streams.",
			.examples = "ace-inspect edge1.aceg\n"
			    "ace-inspect --verify edge1.aceg edge2.aceg\n",
			.opt = options
		},
		.open = source_io,
		.set = set,
		.run = run
	};
	struct opts o = { .look = { .f = &p.f }, .pick = PICK_INIT };

	report_init(&o.p, stdout, NULL);
	return program_main(&p, argc, argv, &o);
}
