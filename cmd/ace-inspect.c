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
	OPT_JSON, OPT_TENSOR, OPT_TOLERANCE, OPT_SPOOL
};

static const struct cli_opt options[] = {
	{ OPT_LIST, "list", NULL, "shards and tensors, undecoded (default)" },
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
		return err_set(e, ERR_USAGE, "one of --list, --stats, "
		    "--histogram, --verify, --diff, --plot, --recover, "
		    "--conservation");
	return 0;
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
	case OPT_JSON:
		o->p.as_json = 1;
		return 0;
	case OPT_TENSOR:
		o->p.glob = val;
		return 0;
	case OPT_TOLERANCE:
		return num_f64(&o->p.tolerance, val, 0, 1e300, "--tolerance", e);
	default:
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
	if (o->mode != INSPECT_RECOVER && (o->f->output != NULL ||
	    o->f->force || o->f->no_provenance || o->f->omit_schema))
		return err_set(e, ERR_USAGE, "-o, --force, --no-provenance, "
		    "--omit-schema go with --recover");
	return 0;
}

/* Every file; each that fails says so, the worst status is the answer. */
static int
all(const struct inspect_opts *o, struct report *p, int n, char **path,
    struct err *e)
{
	struct err own;
	int i, r, worst = 0;

	for (i = 0; i < n; i++) {
		own = (struct err)ERR_INIT;
		p->shard = 0;
		p->file = path[i];
		if ((r = inspect_one(o, p, path[i], &own)) == 0)
			continue;
		worst = r < worst ? r : worst;
		(void)err_file(&own, r, path[i]);
		if (own.code != ERR_OK && !own.quiet)
			(void)fprintf(stderr, "%s: %s\n", o->cli->prog,
			    ERR_MSG(&own));
		if (ferror(p->f))
			break;
	}
	e->quiet = 1;		/* all was said */
	return worst;
}

static int
run(struct opts *x, int n, char **path, struct err *e)
{
	const struct inspect_opts *o = &x->look;
	const char *first = n == 1 ? path[0] : NULL;
	struct report *p = &x->p;
	int r = check(o, n, path, e);

	if (r < 0)
		return r;
	if ((p->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	p->verbose = o->cli->verbose;
	p->quiet = o->cli->quiet;
	inspect_screen(p);
	if (o->mode == INSPECT_RECOVER)
		return inspect_recover(o, first, e);
	if (o->mode == INSPECT_CONSERVE)
		return inspect_conserved(o, p, path, (size_t)n, e);
	return n > 1 ? all(o, p, n, path, e) : inspect_one(o, p, first, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-inspect",
		.usage = "[--list|--stats|--histogram|--verify|--diff OTHER|"
		    "--plot FILE.svg|\n    "
		    "--recover|--conservation -S DIR --spool DIR] [--json] "
		    "[FILE...]",
		.about = "Tells what is in gradient-shard streams.",
		.examples = "ace-inspect edge1.aceg\n"
		    "ace-inspect --verify edge1.aceg edge2.aceg\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .look = { .f = &o.f, .cli = &c } };
	struct err e = ERR_INIT;
	int r;

	report_init(&o.p, stdout, NULL);
	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = run(&o, argc - c.first, argv + c.first, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
