#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "format/keys.h"
#include "format/text.h"
#include "pipe/pick.h"
#include "pipe/source.h"
#include "report/course.h"
#include "report/course_draw.h"
#include "report/report.h"

/* The point of a step, made where it belongs: steps mostly come in order. */
static struct course_point *
course_point(struct course_run *c, uint64_t step, struct err *e)
{
	size_t i = c->n;

	while (i > 0 && c->at[i - 1].step >= step)
		i--;
	if (i < c->n && c->at[i].step == step)
		return &c->at[i];
	if (alloc_grow(&c->at, &c->cap, c->n + 1, sizeof(*c->at), e) < 0)
		return NULL;
	memmove(&c->at[i + 1], &c->at[i], (c->n - i) * sizeof(*c->at));
	c->n++;
	memset(&c->at[i], 0, sizeof(c->at[i]));
	c->at[i].step = step;
	return &c->at[i];
}

static int
course_note(void *arg, const struct reader *r, struct err *e)
{
	return keys_add(arg, r, e);
}

/* The shards that devices send and the residuals that they keep; what was made
 * of them, sums and means, would count their bytes again. */
static int
course_counts(const struct report *p, const struct shard *s)
{
	return (p->pick != NULL && p->pick->kind >= 0) ||
	    s->kind == SHARD_GRADIENT || s->kind == SHARD_DELTA ||
	    s->kind == SHARD_RESIDUAL;
}

static int
course_add(struct course_run *c, const struct reader *r, const struct walk *w,
    const struct text_kv *kv, struct err *e)
{
	const struct shard *s = reader_shard(r);
	struct course_point *x = course_point(c, s->step, e);
	double v = 0;
	uint64_t n = 0;
	int k, i;

	if (x == NULL)
		return -ERR_SYS;
	if (s->kind == SHARD_RESIDUAL) {
		x->residual += sqrt(reader_end_of_shard(r)->sums.sumsq);
		x->residuals++;
		return 0;
	}
	x->shards++;
	x->bytes += w->framed;
	for (i = 0; i < CODEC_MAX; i++)
		x->coded[i] += w->total.coded[i];
	if ((k = keys_real(kv, KEYS_BANDWIDTH, &v, "the policy", e)) < 0)
		return k;
	x->bandwidth += k > 0 ? v : 0;
	x->bandwidths += k > 0;
	if ((k = keys_whole(kv, KEYS_INTERVAL, &n, "the policy", e)) < 0)
		return k;
	x->interval += k > 0 ? (double)n : 0;
	x->intervals += k > 0;
	return 0;
}

static int
course_file(struct report *p, struct course_run *c, struct io *io,
    const struct reader_opts *o, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct walk w = { .note = course_note, .arg = &kv };
	struct report_in in;
	int k = report_take(&in, io, o, e);

	if (k == 0)
		(void)reader_skim(in.r, 1);
	while (k == 0 && (k = report_next(p, in.r, e)) > 0) {
		if (!course_counts(p, reader_shard(in.r))) {
			k = pick_pass(in.r, e);
			continue;
		}
		text_release(&kv);
		kv = (struct text_kv)TEXT_KV_INIT;
		if ((k = walk_shard(&w, in.r, e)) >= 0)
			k = course_add(c, in.r, &w, &kv, e);
		k = k > 0 ? 0 : k;
	}
	if (k < 0)
		(void)err_file(e, k, in.r != NULL ? reader_name(in.r) :
		    c->name);
	walk_release(&w);
	text_release(&kv);
	report_close(&in);
	return k;
}

static int
course_read(struct report *p, struct course_run *c, const char *path,
    const struct reader_opts *o, struct err *e)
{
	struct source *s;
	struct io *io;
	int k = source_open(&s, path, e);

	c->name = path != NULL ? path : "-";
	if (k < 0)
		return k;
	while ((k = source_next(s, &io, e)) > 0)
		if ((k = course_file(p, c, io, o, e)) < 0)
			break;
	source_free(s);
	if (k == 0 && c->n == 0)
		k = err_set(e, ERR_DATA, "mismatch: '%s' has no shard of a "
		    "device to draw", c->name);
	return k;
}

int
course_draw(struct report *p, struct io *out, char **path, size_t n,
    const struct reader_opts *o, struct err *e)
{
	struct course_run c[COURSE_RUNS];
	const size_t runs = n != 0 ? n : 1;
	size_t i;
	int k = 0, was = p->quiet;

	if (runs > COURSE_RUNS)
		return err_set(e, ERR_USAGE, "%zu runs, at most %d can be drawn "
		    "together", runs, COURSE_RUNS);
	memset(c, 0, sizeof(c));
	p->quiet = 1;		/* no receipts */
	for (i = 0; i < runs && k == 0; i++)
		k = course_read(p, &c[i], n != 0 ? path[i] : NULL, o, e);
	p->quiet = was;
	if (k == 0 && out != NULL)
		k = course_draw_svg(out, c, runs, e);
	else if (k == 0)
		course_draw_text(p, c, runs);
	for (i = 0; i < runs; i++)
		alloc_free(c[i].at);
	return k < 0 ? k : report_flush(p, e);
}
