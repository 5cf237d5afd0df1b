/*
 * ace-inspect: what is in shard streams, as text or JSON: a listing,
 * statistics, histograms, a verdict, a comparison; and what is whole in
 * a damaged file, saved.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/source.h"
#include "pipe/pick.h"
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
	{ OPT_COURSE, "course", "DRAWN",
	    "bytes, codecs, bandwidth over the steps; text or gnuplot" },
	{ OPT_STATS, "stats", NULL, "statistics of the values" },
	{ OPT_HISTOGRAM, "histogram", NULL, "draw the magnitudes by octave" },
	{ OPT_VERIFY, "verify", NULL, "decode all, hold it against the sums" },
	{ OPT_DIFF, "diff", "OTHER", "compare with the stream in OTHER" },
	{ OPT_PLOT, "plot", "FILE.svg", "magnitudes and bits as a picture" },
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
	struct filter f;
	struct inspect_opts look;
	struct report p;
	struct pick pick;
};

/* --stats and --diff go together, no other two. */
static int
set_mode(struct opts *o, int mode, struct err *e)
{
	int *now = &o->look.mode;

	if (mode == INSPECT_STATS)
		o->p.stats = 1;
	if (*now == INSPECT_NONE || *now == mode ||
	    (*now == INSPECT_STATS && mode == INSPECT_DIFF))
		*now = mode;
	else if (!(*now == INSPECT_DIFF && mode == INSPECT_STATS))
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
set_course(struct opts *o, const char *val, struct err *e)
{
	static const char *const hows[] = { "text", "gnuplot", NULL };
	int r, how;

	if ((r = num_choice(&how, val, hows, "--course", e)) < 0)
		return r;
	o->look.course = (enum course_how)how;
	return set_mode(o, INSPECT_COURSE, e);
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

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
	case OPT_COURSE:
		return set_course(o, val, e);
	case OPT_JSON:
		o->p.as_json = 1;
		return 0;
	case OPT_TENSOR:
		o->p.glob = val;
		return 0;
	case OPT_TOLERANCE:
		return num_f64(&o->p.tolerance, val, 0, 1e300, "--tolerance", e);
	default:
		if ((r = pick_set(&o->pick, key, val, e)) == 0)
			r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* Checks that the options given may be used together. */
static int
check(const struct inspect_opts *o, int n, char **path, struct err *e)
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
run(struct opts *x, int n, char **path, struct err *e)
{
	struct inspect_opts *o = &x->look;
	const char *first = n == 1 ? path[0] : NULL;
	struct report *p = &x->p;
	int r = check(o, n, path, e);

	if (r < 0)
		return r;
	if ((p->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	p->cli = o->cli;
	p->verbose = o->cli->verbose;
	p->quiet = o->cli->quiet;
	inspect_screen(p);
	if (o->mode == INSPECT_RECOVER)
		return inspect_recover(o, first, e);
	if (o->mode == INSPECT_CONSERVE)
		return inspect_conserved(o, p, path, (size_t)n, e);
	p->pick = x->pick.given ? &x->pick : NULL;
	if (o->mode == INSPECT_COURSE)
		return course_draw(p, o->course, path, (size_t)n, &o->f->in, e);
	if (o->mode == INSPECT_BRIEF && p->as_json)
		o->brief.form = BRIEF_JSON;
	return inspect_all(o, p, path, (size_t)n, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-inspect",
		.usage = "[--list|--brief|--tsv|--diffable|--course DRAWN|\n    --stats|--histogram|--verify|--diff OTHER|"
		    "--plot FILE.svg|\n    "
		    "--recover|--conservation -S DIR --spool DIR] [--json] "
		    "[FILE...]",
		.about = "Tells what is in gradient-shard streams.",
		.examples = "ace-inspect edge1.aceg\n"
		    "ace-inspect --verify edge1.aceg edge2.aceg\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .look = { .f = &o.f, .cli = &c },
	    .pick = PICK_INIT };
	struct err e = ERR_INIT;
	int r;

	report_init(&o.p, stdout, NULL);
	filter_init(&o.f, c.prog, argc, argv);
	o.f.open = source_io;
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = run(&o, argc - c.first, argv + c.first, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
