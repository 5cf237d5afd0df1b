/*
 * ace-inspect: what is in shard streams, as text or JSON: a listing,
 * statistics, histograms, a verdict, a comparison; and what is whole in
 * a damaged file, saved.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "report/conserve.h"
#include "report/diff.h"
#include "report/histogram.h"
#include "report/list.h"
#include "report/plot.h"
#include "report/recover.h"
#include "report/report.h"
#include "report/stats.h"
#include "report/verify.h"

enum {
	OPT_LIST = CLI_LONG, OPT_STATS, OPT_HISTOGRAM, OPT_VERIFY, OPT_DIFF,
	OPT_JSON, OPT_TENSOR, OPT_TOLERANCE, OPT_RECOVER, OPT_CONSERVE,
	OPT_SPOOL, OPT_PLOT
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
	int mode, stats, json;
	const char *other, *picture, *glob, *state, *spool;
	double tolerance;
};

/* --stats and --diff go together, no other two. */
static int
set_mode(struct opts *o, int key, struct err *e)
{
	if (key == OPT_STATS)
		o->stats = 1;
	if (o->mode == 0 || o->mode == key ||
	    (o->mode == OPT_STATS && key == OPT_DIFF))
		o->mode = key;
	else if (!(o->mode == OPT_DIFF && key == OPT_STATS))
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
		*(key == OPT_DIFF ? &o->other : &o->picture) = val;
		/* FALLTHROUGH */
	case OPT_LIST:
	case OPT_STATS:
	case OPT_HISTOGRAM:
	case OPT_VERIFY:
	case OPT_RECOVER:
	case OPT_CONSERVE:
		return set_mode(o, key, e);
	case 'S':
		o->state = val;
		return 0;
	case OPT_SPOOL:
		o->spool = val;
		return 0;
	case OPT_JSON:
		o->json = 1;
		return 0;
	case OPT_TENSOR:
		o->glob = val;
		return 0;
	case OPT_TOLERANCE:
		return num_f64(&o->tolerance, val, 0, 1e300, "--tolerance", e);
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* $COLUMNS, or the terminal's own, or 80. */
static int
width(void)
{
	const char *s = getenv("COLUMNS");
	struct winsize w;
	uint64_t v;

	if (s != NULL && num_u64(&v, s, 40, 1000, "COLUMNS", NULL) == 0)
		return (int)v;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40)
		return w.ws_col;
	return 80;
}

/* Blocks only where a person looks at them through UTF-8. */
static int
utf8(void)
{
	int yes;

	if (!isatty(STDOUT_FILENO) || setlocale(LC_CTYPE, "") == NULL)
		return 0;
	yes = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	(void)setlocale(LC_CTYPE, "C");
	return yes;
}

static int
diff(const struct opts *o, struct report *p, struct reader *x, struct err *e)
{
	struct report_in y;
	int r = report_open(&y, o->other, &o->f.in, e);

	if (r == 0)
		r = diff_streams(p, x, y.r, e);
	report_close(&y);
	return r;
}

static int
plot(const struct opts *o, struct report *p, struct reader *x, struct err *e)
{
	struct io *out = NULL;
	int r = io_create(&out, o->picture, 1, e);

	if (r == 0 && (r = plot_stream(p, x, out, e)) == 0)
		r = io_commit(out, IO_SYNC_NONE, e);
	io_free(out);
	return r;
}

/* Done when nothing was damaged, no when some shards were saved; with none
 * there is no output, and the damage is the error. */
static int
recover(const struct opts *o, const struct cli *c, const char *path,
    struct err *e)
{
	struct writer *w = NULL;
	struct report_in in;
	struct recover x;
	int r;

	if ((r = report_open(&in, path, &o->f.in, e)) == 0 &&
	    (r = filter_out(&o->f, &w, e)) == 0 &&
	    (r = recover_stream(&x, in.r, w, e)) == 0) {
		if (x.saved == 0 && x.damages != 0)
			r = err_move(e, &x.first);
		r = filter_end(w, r, e);
	}
	if (r == 0)
		cli_say(c, 0, "%llu shards saved", (unsigned long long)x.saved);
	if (r == 0 && x.damages != 0)
		r = err_set(e, ERR_NO, "damaged: %s", ERR_MSG(&x.first));
	writer_free(w);
	report_close(&in);
	return r;
}

static void
conserved_json(struct emit *j, const struct conserve *c, int k,
    const struct err *e)
{
	emit_open(j, NULL, '{');
	emit_string(j, "device", c->device);
	emit_bool(j, "ok", k == 0);
	emit_u64(j, "step", c->step);
	emit_u64(j, "inputs", c->steps);
	emit_u64(j, "accepted", c->accepted);
	emit_u64(j, "pending", c->pending);
	emit_u64(j, "elements", c->elements);
	emit_u64(j, "inexact", c->off);
	emit_u64(j, "violated", c->violated);
	emit_f64(j, "largest", c->worst);
	emit_u64(j, "status", (uint64_t)-k);
	if (k < 0)
		emit_string(j, "error", ERR_MSG(e));
	emit_end(j);
}

/* Nothing lost, nothing twice. */
static int
conserved(const struct opts *o, struct report *p, char **path, size_t n,
    struct err *e)
{
	const struct conserve_in in = { o->state, o->spool, path, n,
	    &o->f.in };
	struct conserve c;
	int k;

	if (o->state == NULL || o->spool == NULL)
		return err_set(e, ERR_USAGE, "--conservation of what? (-S DIR "
		    "--spool DIR FILE...)");
	k = conserve_check(&c, &in, e);
	if (p->as_json) {
		conserved_json(&p->json, &c, k, e);
	} else if (k == 0 && !p->quiet) {
		(void)fprintf(p->f, "%s: %s, %llu inputs up to step %llu, "
		    "%llu accepted, %llu pending", c.device, c.off == 0 ?
		    "exact" : "within the bound",
		    (unsigned long long)c.steps, (unsigned long long)c.step,
		    (unsigned long long)c.accepted,
		    (unsigned long long)c.pending);
		if (c.off != 0)
			(void)fprintf(p->f, ", off by at most %.3g", c.worst);
		(void)fputc('\n', p->f);
	}
	return k < 0 ? k : report_flush(p, e);
}

static int
one(const struct opts *o, struct report *p, const char *path, struct err *e)
{
	struct report_in in;
	int r = report_open(&in, path, &o->f.in, e);

	if (r < 0)
		return r;
	switch (o->mode) {
	case OPT_STATS:
		r = stats_stream(p, in.r, e);
		break;
	case OPT_HISTOGRAM:
		r = histogram_stream(p, in.r, e);
		break;
	case OPT_VERIFY:
		r = verify_file(p, &in, e);
		break;
	case OPT_DIFF:
		r = diff(o, p, in.r, e);
		break;
	case OPT_PLOT:
		r = plot(o, p, in.r, e);
		break;
	default:
		r = list_stream(p, in.r, e);
	}
	report_close(&in);
	return r;
}

/* What goes together. */
static int
check(const struct opts *o, int n, char **path, struct err *e)
{
	if (n > 1 && (o->mode == OPT_DIFF || o->mode == OPT_RECOVER ||
	    o->mode == OPT_PLOT))
		return err_set(e, ERR_USAGE, "%s takes one FILE, not also '%s'",
		    o->mode == OPT_DIFF ? "--diff" : o->mode == OPT_PLOT ?
		    "--plot" : "--recover", path[1]);
	if (o->mode == OPT_DIFF && strcmp(o->other, "-") == 0 &&
	    (n == 0 || strcmp(path[0], "-") == 0))
		return err_set(e, ERR_USAGE, "both streams from standard input");
	if (o->mode != OPT_CONSERVE && (o->state != NULL || o->spool != NULL))
		return err_set(e, ERR_USAGE, "-S and --spool go with "
		    "--conservation");
	if (o->mode != OPT_RECOVER && (o->f.output != NULL || o->f.force ||
	    o->f.no_provenance || o->f.omit_schema))
		return err_set(e, ERR_USAGE, "-o, --force, --no-provenance, "
		    "--omit-schema go with --recover");
	return 0;
}

/* Every file; each that fails says so, the worst status is the answer. */
static int
all(const struct opts *o, struct report *p, const struct cli *c, int n,
    char **path, struct err *e)
{
	struct err own;
	int i, r, worst = 0;

	for (i = 0; i < n; i++) {
		own = (struct err)ERR_INIT;
		p->shard = 0;
		p->file = path[i];
		if ((r = one(o, p, path[i], &own)) == 0)
			continue;
		worst = r < worst ? r : worst;
		(void)err_file(&own, r, path[i]);
		if (own.code != ERR_OK && !own.quiet)
			(void)fprintf(stderr, "%s: %s\n", c->prog,
			    ERR_MSG(&own));
		if (ferror(p->f))
			break;
	}
	e->quiet = 1;		/* all was said */
	return worst;
}

static int
run(const struct opts *o, const struct cli *c, int n, char **path,
    struct err *e)
{
	struct report p;
	int r = check(o, n, path, e);

	if (r < 0)
		return r;
	report_init(&p, stdout, kern_get(e));
	if (p.kern == NULL)
		return -ERR_USAGE;
	p.verbose = c->verbose;
	p.quiet = c->quiet;
	p.stats = o->stats;
	p.as_json = o->json;
	p.glob = o->glob;
	p.tolerance = o->tolerance;
	p.width = width();
	p.utf8 = utf8();
	if (o->mode == OPT_RECOVER)
		return recover(o, c, n == 1 ? path[0] : NULL, e);
	if (o->mode == OPT_CONSERVE)
		return conserved(o, &p, path, (size_t)n, e);
	if (n > 1)
		return all(o, &p, c, n, path, e);
	return one(o, &p, n == 1 ? path[0] : NULL, e);
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
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .tolerance = 0 };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = run(&o, &c, argc - c.first, argv + c.first, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
