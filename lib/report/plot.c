#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "report/plot.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/walk.h"

enum { OCTAVES = 277, OCTAVES_LOWEST = -149 };	/* 2^-149 to 2^127 */

/* Values counted by the octave of their magnitude, from one power of two up to the
 * next. */
struct octaves {
	uint64_t zero, nan, inf;
	uint64_t n[OCTAVES];	/* n[k]: from 2^(k + OCTAVES_LOWEST) up to but
				 * not including twice that */
};

enum {
	PLOT_ROWS = 64,		/* of shards; more share a row */
	PLOT_OCTAVES = 40,	/* drawn; those below share one row */
	PLOT_TENSORS = 400	/* drawn; the others share one row */
};

struct plot {
	struct report *p;
	unsigned char id[16];		/* of the model */
	struct octaves o;
	struct tally *tensor;		/* [tensors] of all shards */
	char (*name)[SVG_NAME + 1];
	size_t n, at;
	struct tally shard[PLOT_ROWS];
	size_t shards, each;		/* shards seen; in a row */
	struct tally total;
	struct svg svg;
};

/* ---- gathering ---- */

static void
plot_octaves_add(struct octaves *o, const float *x, size_t n)
{
	uint32_t m;
	size_t i;

	for (i = 0; i < n; i++) {
		m = bytes_u32(x[i]) & 0x7fffffff;
		if (m >= 0x00800000 && m < 0x7f800000)
			o->n[(int)(m >> 23) - 127 - OCTAVES_LOWEST]++;
		else if (m == 0)
			o->zero++;
		else if (m < 0x00800000)	/* subnormal: m * 2^-149 */
			o->n[31 - __builtin_clz(m)]++;
		else if (m == 0x7f800000)
			o->inf++;
		else
			o->nan++;
	}
}

static int
plot_group(void *arg, const struct schema_tensor *t, const float *x, size_t n,
    struct err *e)
{
	struct plot *q = arg;

	(void)t;
	(void)e;
	plot_octaves_add(&q->o, x, n);
	return 0;
}

static int
plot_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct plot *q = arg;

	(void)e;
	if (q->at < q->n) {
		svg_name(q->name[q->at], t->name);
		walk_add(&q->tensor[q->at], y);
	}
	q->at++;
	q->o.zero += y->elements - y->sent;
	return 0;
}

static int
plot_model(struct plot *q, const struct schema *sc, struct err *e)
{
	if (q->tensor == NULL) {
		memcpy(q->id, sc->id, sizeof(q->id));
		q->n = sc->n < PLOT_TENSORS ? sc->n : PLOT_TENSORS;
		q->tensor = alloc_get(q->n, sizeof(*q->tensor), e);
		q->name = alloc_get(q->n, sizeof(*q->name), e);
		return q->tensor != NULL && q->name != NULL ? 0 : -ERR_SYS;
	}
	if (memcmp(q->id, sc->id, sizeof(q->id)) != 0)
		return err_set(e, ERR_DATA, "mismatch: shards of several "
		    "models in one picture");
	return 0;
}

/* A row for each shard; when there are no more, for two, four, ... */
static void
plot_shard(struct plot *q, const struct tally *y)
{
	size_t i;

	if (q->shards == PLOT_ROWS * q->each) {
		for (i = 0; i < PLOT_ROWS / 2; i++) {
			q->shard[i] = q->shard[2 * i];
			walk_add(&q->shard[i], &q->shard[2 * i + 1]);
		}
		memset(&q->shard[i], 0, (PLOT_ROWS - i) * sizeof(*q->shard));
		q->each *= 2;
	}
	walk_add(&q->shard[q->shards++ / q->each], y);
	walk_add(&q->total, y);
}

/* ---- drawing ---- */

static int
plot_count(struct plot *q, const char *label, uint64_t v, uint64_t top,
    uint64_t all, struct err *e)
{
	char value[32];

	(void)snprintf(value, sizeof(value), "%.3f %%", 100 * (double)v /
	    (double)(all > 0 ? all : 1));
	return svg_bar(&q->svg, label, (double)v, (double)top, value, e);
}

/* The lowest and the highest octave that is not empty; hi is -1 when all are. */
static void
plot_octaves_ends(const struct octaves *o, int *lo, int *hi)
{
	*hi = OCTAVES - 1;
	*lo = 0;
	while (*hi >= 0 && o->n[*hi] == 0)
		(*hi)--;
	while (*lo < *hi && o->n[*lo] == 0)
		(*lo)++;
}

static int
plot_octaves(struct plot *q, struct err *e)
{
	const struct octaves *o = &q->o;
	uint64_t top, below = 0, all = q->total.elements;
	char label[24];
	int lo, hi, end, i, r;

	plot_octaves_ends(o, &lo, &hi);
	end = hi - lo >= PLOT_OCTAVES ? hi - PLOT_OCTAVES + 1 : lo;
	for (i = lo; i < end; i++)
		below += o->n[i];
	top = below;
	for (i = end; i <= hi; i++)
		top = o->n[i] > top ? o->n[i] : top;
	r = svg_title(&q->svg, "magnitudes by octave", e);
	for (i = hi; i >= end && r == 0; i--) {
		(void)snprintf(label, sizeof(label), "2^%d",
		    i + OCTAVES_LOWEST);
		r = plot_count(q, label, o->n[i], top, all, e);
	}
	(void)snprintf(label, sizeof(label), "&lt;2^%d", end + OCTAVES_LOWEST);
	if (r == 0 && below > 0)
		r = plot_count(q, label, below, top, all, e);
	if (r == 0)
		r = plot_count(q, "zero", o->zero, 0, all, e);
	if (r == 0 && o->nan > 0)
		r = plot_count(q, "nan", o->nan, 0, all, e);
	return r == 0 && o->inf > 0 ?
	    plot_count(q, "inf", o->inf, 0, all, e) : r;
}

static int
plot_bits(struct plot *q, const char *label, const struct tally *y, double top,
    struct err *e)
{
	char value[600], codecs[512];

	(void)snprintf(value, sizeof(value), "%.4f  %.60s", walk_bits(y),
	    report_codecs(y, codecs));
	return svg_bar(&q->svg, label, walk_bits(y), top, value, e);
}

static int
plot_tensors(struct plot *q, struct err *e)
{
	size_t i, n = q->at < q->n ? q->at : q->n;
	char more[40];
	double top = 0;
	int r;

	for (i = 0; i < n; i++)
		top = walk_bits(&q->tensor[i]) > top ?
		    walk_bits(&q->tensor[i]) : top;
	r = svg_title(&q->svg, "bits a value, by tensor", e);
	for (i = 0; i < n && r == 0; i++)
		r = plot_bits(q, q->name[i], &q->tensor[i], top, e);
	if (r == 0 && q->at > q->n) {
		(void)snprintf(more, sizeof(more), "and %zu more",
		    q->at - q->n);
		r = svg_label(&q->svg, more, e);
	}
	return r == 0 ? plot_bits(q, "all", &q->total, top, e) : r;
}

static int
plot_shards(struct plot *q, struct err *e)
{
	size_t rows = (q->shards + q->each - 1) / q->each, i, last;
	char label[64];
	double top = 0;
	int r;

	for (i = 0; i < rows; i++)
		top = walk_bits(&q->shard[i]) > top ?
		    walk_bits(&q->shard[i]) : top;
	r = svg_title(&q->svg, "bits a value, by shard", e);
	for (i = 0; i < rows && r == 0; i++) {
		last = (i + 1) * q->each < q->shards ? (i + 1) * q->each :
		    q->shards;
		(void)snprintf(label, sizeof(label), q->each > 1 ?
		    "%zu to %zu" : "%zu", i * q->each + 1, last);
		r = plot_bits(q, label, &q->shard[i], top, e);
	}
	return r;
}

static int
plot_write(struct plot *q, struct io *out, struct err *e)
{
	int r;

	if ((r = plot_octaves(q, e)) < 0 || (r = plot_tensors(q, e)) < 0 ||
	    (q->shards > 1 && (r = plot_shards(q, e)) < 0))
		return r;
	return svg_write(&q->svg, out, e);
}

int
plot_stream(struct report *p, struct reader *r, struct io *out, struct err *e)
{
	struct plot *q = alloc_get(1, sizeof(*q), e);
	struct walk w = { .glob = p->glob, .group = plot_group,
	    .tensor = plot_tensor, .arg = q };
	int k = -ERR_SYS;

	if (q == NULL)
		return k;
	q->p = p;
	q->each = 1;
	while ((k = report_next(p, r, e)) > 0) {
		q->at = 0;
		if ((k = plot_model(q, reader_schema(r), e)) < 0 ||
		    (k = walk_shard(&w, r, e)) < 0)
			break;
		plot_shard(q, &w.total);
	}
	if (k == 0)
		k = plot_write(q, out, e);
	walk_release(&w);
	alloc_free(q->tensor);
	alloc_free(q->name);
	svg_release(&q->svg);
	alloc_free(q);
	return k;
}
