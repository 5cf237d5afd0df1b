#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "report/histogram.h"
#include "report/octaves.h"
#include "report/report.h"

enum {
	ROWS = 40,		/* octaves drawn; those below share one row */
	BARS_MIN = 10
};

struct histogram {
	struct report *p;
	const struct shard *shard;
	struct octaves o;
};

static int
histogram_group(void *arg, const struct schema_tensor *t, const float *x,
    size_t n, struct err *e)
{
	struct histogram *h = arg;

	(void)t;
	(void)e;
	octaves_add(&h->o, x, n);
	return 0;
}

/* ---- drawn ---- */

/* A bar of v out of top, in cells of eighths, or in #. */
static void
histogram_bar(const struct report *p, uint64_t v, uint64_t top, int cells)
{
	static const char *const part[] = {
		"", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
		"\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"
	};
	double share = top != 0 ? (double)v / (double)top : 0;
	int n = (int)(share * 8 * cells + 0.5);

	if (v != 0)
		(void)fputc(' ', p->f);
	if (n == 0 && v != 0)
		n = 1;			/* few is not none */
	if (!p->utf8)
		n = (n + 7) / 8 * 8;
	for (; n >= 8; n -= 8)
		(void)fputs(p->utf8 ? "\xe2\x96\x88" : "#", p->f);
	(void)fprintf(p->f, "%s\n", part[n]);
}

static void
histogram_row(const struct histogram *h, const char *label, uint64_t v,
    uint64_t all, uint64_t top)
{
	const struct report *p = h->p;
	int used = 2 + 9 + 1 + p->wnum + 1 + 8 + 1, cells = p->width - used;

	(void)fprintf(p->f, "  %9s %*llu %7.3f%%", label, p->wnum,
	    (unsigned long long)v, 100 * (double)v / (double)all);
	if (top == 0)
		(void)fputc('\n', p->f);
	else
		histogram_bar(p, v, top, cells > BARS_MIN ? cells : BARS_MIN);
}

static void
histogram_rows(const struct histogram *h, uint64_t all)
{
	int hi, lo, end, i;
	uint64_t top = 0, below = 0;
	char label[16];

	octaves_ends(&h->o, &lo, &hi);
	end = hi - lo >= ROWS ? hi - ROWS + 1 : lo;
	for (i = lo; i < end; i++)
		below += h->o.n[i];
	top = below;
	for (i = end; i <= hi; i++)
		top = h->o.n[i] > top ? h->o.n[i] : top;
	for (i = hi; i >= end; i--) {
		(void)snprintf(label, sizeof(label), "2^%d", i + OCTAVES_LOWEST);
		histogram_row(h, label, h->o.n[i], all, top);
	}
	if (below != 0) {
		(void)snprintf(label, sizeof(label), "<2^%d", end + OCTAVES_LOWEST);
		histogram_row(h, label, below, all, top);
	}
	histogram_row(h, "zero", h->o.zero, all, 0);
	if (h->o.nan != 0)
		histogram_row(h, "nan", h->o.nan, all, 0);
	if (h->o.inf != 0)
		histogram_row(h, "inf", h->o.inf, all, 0);
}

static void
histogram_draw(const struct histogram *h, const char *tensor, uint64_t all)
{
	const struct report *p = h->p;

	report_heading(p, h->shard);
	if (tensor != NULL)
		(void)fprintf(p->f, ", tensor '%s'", tensor);
	(void)fprintf(p->f, ": %llu values\n", (unsigned long long)all);
	if (all != 0)
		histogram_rows(h, all);
}

/* ---- written ---- */

static void
histogram_json(const struct histogram *h, const char *tensor, uint64_t all)
{
	struct emit *j = &h->p->json;
	int i;

	report_object(h->p, h->shard);
	if (tensor != NULL)
		emit_string(j, "tensor", tensor);
	emit_u64(j, "values", all);
	emit_u64(j, "zero", h->o.zero);
	emit_u64(j, "nan", h->o.nan);
	emit_u64(j, "inf", h->o.inf);
	emit_open(j, "octaves", '{');
	for (i = 0; i < OCTAVES; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "%d", i + OCTAVES_LOWEST);
		if (h->o.n[i] != 0)
			emit_u64(j, key, h->o.n[i]);
	}
	emit_end(j);
}

/* y: what the values so far were of; absent ones are zeros. */
static int
histogram_done(struct histogram *h, const char *tensor, const struct tally *y,
    struct err *e)
{
	h->o.zero += y->elements - y->sent;
	if (h->p->as_json)
		histogram_json(h, tensor, y->elements);
	else
		histogram_draw(h, tensor, y->elements);
	memset(&h->o, 0, sizeof(h->o));
	return report_flush(h->p, e);
}

static int
histogram_tensor(void *arg, const struct schema_tensor *t,
    const struct tally *y, struct err *e)
{
	return histogram_done(arg, t->name, y, e);
}

int
histogram_stream(struct report *p, struct reader *r, struct err *e)
{
	struct histogram h = { .p = p };
	struct walk w = { .glob = p->glob, .group = histogram_group,
	    .tensor = p->glob != NULL ? histogram_tensor : NULL, .arg = &h };
	int k;

	while ((k = report_next(p, r, e)) > 0) {
		h.shard = reader_shard(r);
		report_columns(p, reader_schema(r));
		if ((k = walk_shard(&w, r, e)) < 0 || (p->glob == NULL &&
		    (k = histogram_done(&h, NULL, &w.total, e)) < 0))
			break;
	}
	walk_release(&w);
	return report_fail(p, k, e);
}
