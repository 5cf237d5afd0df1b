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
#include "pipe/filter.h"
#include "report/conserve.h"
#include "report/diff.h"
#include "report/histogram.h"
#include "report/inspect.h"
#include "report/list.h"
#include "report/plot.h"
#include "report/recover.h"
#include "report/report.h"
#include "report/stats.h"
#include "report/verify.h"

/* $COLUMNS, or the terminal's own, or 80. */
static int
inspect_width(void)
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

/* Block characters are used only on a terminal in a UTF-8 locale. */
static int
inspect_utf8(void)
{
	int yes;

	if (!isatty(STDOUT_FILENO) || setlocale(LC_CTYPE, "") == NULL)
		return 0;
	yes = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	(void)setlocale(LC_CTYPE, "C");
	return yes;
}

void
inspect_screen(struct report *p)
{
	p->width = inspect_width();
	p->utf8 = inspect_utf8();
}

/* ---- one file ---- */

static int
inspect_diff(const struct inspect_opts *o, struct report *p, struct reader *x,
    struct err *e)
{
	struct report_in y;
	int r = report_open(&y, o->other, &o->f->in, e);

	if (r == 0)
		r = diff_streams(p, x, y.r, e);
	report_close(&y);
	return r;
}

static int
inspect_plot(const struct inspect_opts *o, struct report *p, struct reader *x,
    struct err *e)
{
	struct io *out = NULL;
	int r = io_create(&out, o->picture, 1, e);

	if (r == 0 && (r = plot_stream(p, x, out, e)) == 0)
		r = io_commit(out, IO_SYNC_NONE, e);
	io_free(out);
	return r;
}

int
inspect_one(const struct inspect_opts *o, struct report *p, const char *path,
    struct err *e)
{
	struct report_in in;
	int r = report_open(&in, path, &o->f->in, e);

	if (r < 0)
		return r;
	switch (o->mode) {
	case INSPECT_STATS:
		r = stats_stream(p, in.r, e);
		break;
	case INSPECT_HISTOGRAM:
		r = histogram_stream(p, in.r, e);
		break;
	case INSPECT_VERIFY:
		r = verify_file(p, &in, e);
		break;
	case INSPECT_DIFF:
		r = inspect_diff(o, p, in.r, e);
		break;
	case INSPECT_PLOT:
		r = inspect_plot(o, p, in.r, e);
		break;
	default:
		r = list_stream(p, in.r, e);
	}
	report_close(&in);
	return r;
}

/* ---- what is no look at a stream ---- */

/* Success means that nothing was damaged, and "no" that there was damage but
 * some shards were saved.  If none were, there is no output, and the damage is
 * the error. */
int
inspect_recover(const struct inspect_opts *o, const char *path, struct err *e)
{
	struct writer *w = NULL;
	struct report_in in;
	struct recover x;
	int r;

	if ((r = report_open(&in, path, &o->f->in, e)) == 0 &&
	    (r = filter_out(o->f, &w, e)) == 0 &&
	    (r = recover_stream(&x, in.r, w, e)) == 0) {
		if (x.saved == 0 && x.damages != 0)
			r = err_move(e, &x.first);
		r = filter_end(w, r, e);
	}
	if (r == 0)
		cli_say(o->cli, 0, "%llu shards saved", (unsigned long long)x.saved);
	if (r == 0 && x.damages != 0)
		r = err_set(e, ERR_NO, "damaged: %s", ERR_MSG(&x.first));
	writer_free(w);
	report_close(&in);
	return r;
}

static void
inspect_conserved_json(struct emit *j, const struct conserve *c, int k,
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
int
inspect_conserved(const struct inspect_opts *o, struct report *p, char **path,
    size_t n, struct err *e)
{
	const struct conserve_in in = { o->state, o->spool, path, n,
	    &o->f->in };
	struct conserve c;
	int k;

	if (o->state == NULL || o->spool == NULL)
		return err_set(e, ERR_USAGE, "--conservation of what? (-S DIR "
		    "--spool DIR FILE...)");
	k = conserve_check(&c, &in, e);
	if (p->as_json) {
		inspect_conserved_json(&p->json, &c, k, e);
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
