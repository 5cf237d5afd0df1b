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
#include "base/wait.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/source.h"
#include "report/conserve.h"
#include "report/course.h"
#include "report/diff.h"
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

/* A file, already open; io is freed. */
static int
inspect_file(struct inspect_opts *o, struct report *p, struct io *io,
    struct err *e)
{
	struct report_in in;
	int r = report_take(&in, io, &o->f->in, e);

	p->shard = 0;
	if (r < 0)
		return r;
	switch (o->mode) {
	case INSPECT_STATS:
		r = stats_stream(p, in.r, e);
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
	case INSPECT_BRIEF:
		r = brief_stream(p, &o->brief, in.r, e);
		break;
	default:
		r = list_stream(p, in.r, e);
	}
	report_close(&in);
	return r;
}

/* ---- operands ---- */

enum { INSPECT_MANY = 8 };	/* shards that are still shown at length */

/* Counts shards in a file that can seek, up to more than many. */
static void
inspect_count(const struct inspect_opts *o, const struct report *p,
    struct io *io, int *n)
{
	struct reader *r;
	int k;

	if (reader_open(&r, io, &o->f->in, NULL) < 0)
		return;
	(void)reader_skim(r, 1);
	while (*n <= INSPECT_MANY && (k = reader_next(r, NULL)) > 0)
		if (k == READER_SHARD && (p->pick == NULL ||
		    pick_wants(p->pick, reader_shard(r))))
			++*n;
	reader_free(r);
}

static int
inspect_is_many(const struct inspect_opts *o, const struct report *p,
    char **path, size_t n)
{
	struct source *s;
	struct io *io;
	size_t i;
	int found = 0;

	if (p->verbose)
		return 0;	/* who wants to know more is shown all */
	for (i = 0; i < n && found <= INSPECT_MANY; i++) {
		if (strcmp(path[i], "-") == 0 ||
		    source_open(&s, path[i], NULL) < 0)
			continue;
		while (found <= INSPECT_MANY && source_next(s, &io, NULL) > 0) {
			if (source_many(s) || io_can_seek(io))
				inspect_count(o, p, io, &found);
			else
				io_free(io);
		}
		source_free(s);
	}
	return found > INSPECT_MANY;
}

/* Says what went wrong with a file, and remembers the worst. */
static void
inspect_say(const struct inspect_opts *o, struct err *own, int r,
    const char *name, int *worst)
{
	if (r >= 0)
		return;
	*worst = r < *worst ? r : *worst;
	(void)err_file(own, r, name);
	if (own->code != ERR_OK && !own->quiet)
		(void)fprintf(stderr, "%s: %s\n", o->f->cli->prog, ERR_MSG(own));
}

/* All files of an operand, and with --follow those that come. */
static int
inspect_source(struct inspect_opts *o, struct report *p, struct source *s,
    int *worst, struct err *e)
{
	struct wait w = wait_begin(-1, STDOUT_FILENO);
	struct err own;
	struct io *io;
	int k, r;

	for (;;) {
		own = (struct err)ERR_INIT;
		while ((k = source_next(s, &io, &own)) > 0) {
			if (source_many(s))
				p->file = source_name(s);
			r = inspect_file(o, p, io, &own);
			inspect_say(o, &own, r, source_name(s), worst);
			if (ferror(p->f))
				return r;
			own = (struct err)ERR_INIT;
		}
		inspect_say(o, &own, k, source_name(s), worst);
		if (!o->follow || (r = report_flush(p, e)) < 0)
			return o->follow ? r : 0;
		while ((k = source_again(s, e)) == 0)
			if ((r = wait_more(&w, e)) < 0)
				return r;
		if (k < 0)
			return k;
		w = wait_begin(-1, STDOUT_FILENO);
	}
}

/* A single operand that is one file, or that the mode takes for one: its error
 * is the answer.  1 it is neither; s is to be read file by file. */
static int
inspect_single(struct inspect_opts *o, struct report *p, struct source *s,
    const char *path, struct err *e)
{
	struct io *io;
	int r;

	if (!source_many(s) && !o->follow)
		r = source_next(s, &io, e);
	else if (o->mode == INSPECT_DIFF || o->mode == INSPECT_PLOT)
		r = source_io(&io, path, e);
	else
		return 1;
	return r < 0 ? r : inspect_file(o, p, io, e);
}

int
inspect_all(struct inspect_opts *o, struct report *p, char **path, size_t n,
    struct err *e)
{
	const char *name;
	struct source *s;
	struct err own;
	int r, worst = 0;
	size_t i = 0;

	if (o->mode == INSPECT_NONE && !p->as_json && inspect_is_many(o, p, path, n))
		o->mode = INSPECT_BRIEF;
	do {
		own = (struct err)ERR_INIT;
		name = n != 0 ? path[i] : NULL;
		r = source_open(&s, name, &own);
		if (n < 2 && r == 0 &&
		    (r = inspect_single(o, p, s, name, &own)) <= 0) {
			source_free(s);
			(void)err_move(e, &own);
			return r;
		}
		if (n < 2 && r < 0)
			return err_move(e, &own);
		p->file = name;
		if (r >= 0) {
			r = inspect_source(o, p, s, &worst, &own);
			source_free(s);
		}
		inspect_say(o, &own, r, name, &worst);
	} while (++i < n && !ferror(p->f));
	e->quiet = 1;		/* all was said */
	return worst;
}

int
inspect_course(const struct inspect_opts *o, struct report *p, char **path,
    size_t n, struct err *e)
{
	struct io *out = NULL;
	int r = o->picture != NULL ? io_create(&out, o->picture, 1, e) : 0;

	if (r == 0 && (r = course_draw(p, out, path, n, &o->f->in, e)) == 0 &&
	    out != NULL)
		r = io_commit(out, IO_SYNC_NONE, e);
	io_free(out);
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
		cli_say(o->f->cli, 0, "%llu shards saved", (unsigned long long)x.saved);
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
