#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "report/brief.h"
#include "report/report.h"

enum { BRIEF_WIDE = 64 };	/* columns that the whole line wants */

/* What a line says. */
struct brief_row {
	struct report *p;
	const struct brief *b;
	const struct shard *shard;
	const struct shard_end *end;	/* NULL: it was not reached */
	uint64_t bytes;		/* of the frames; with --tensor, of the bodies */
	struct walk *w;
};

static double
brief_bits(const struct brief_row *x)
{
	return x->w->total.elements != 0 ? 8 * (double)x->bytes /
	    (double)x->w->total.elements : 0;
}

static double
brief_norm(const struct brief_row *x)
{
	return x->end != NULL ? sqrt(x->end->sums.sumsq) : 0;
}

/* "ecq 1200, f32 64": bytes of the bodies, the most first. */
static void
brief_codecs(FILE *f, const struct tally *y, const char *between)
{
	char name[16], done[CODEC_MAX] = { 0 };
	const char *sep = "";
	unsigned c, best;

	for (;;) {
		best = CODEC_MAX;
		for (c = 0; c < CODEC_MAX; c++)
			if (y->codec[c] != 0 && !done[c] &&
			    (best == CODEC_MAX || y->coded[c] > y->coded[best]))
				best = c;
		if (best == CODEC_MAX)
			break;
		done[best] = 1;
		(void)fprintf(f, "%s%s%s%llu", sep, report_codec(best, name),
		    between, (unsigned long long)y->coded[best]);
		sep = ",";
	}
	if (*sep == '\0')
		(void)fputc('-', f);
}

/* ---- text ---- */

static void
brief_heading(struct brief_row *x, struct brief *b)
{
	struct report *p = x->p;

	if (b->begun && strcmp(b->run, shard_run(x->shard)) == 0)
		return;
	(void)fprintf(p->f, "%srun ", b->begun ? "\n" : "");
	report_path(p, shard_run(x->shard));
	(void)snprintf(b->run, sizeof(b->run), "%s", shard_run(x->shard));
	(void)fprintf(p->f, "\n%7s %-10s ", "step", "device");
	if (p->width >= BRIEF_WIDE)
		(void)fprintf(p->f, "%-8s %10s %7s %9s  %s\n", "kind", "bytes",
		    "bits", "norm", "codecs");
	else
		(void)fprintf(p->f, "%10s %7s\n", "bytes", "bits");
	b->begun = 1;
}

static void
brief_text(struct brief_row *x, struct brief *b, const char *error)
{
	const struct shard *s = x->shard;
	struct report *p = x->p;
	const char *name = shard_device(s);
	int pad = 10 - report_chars(name);

	brief_heading(x, b);
	(void)fprintf(p->f, "%7llu ", (unsigned long long)s->step);
	report_path(p, name);
	(void)fprintf(p->f, "%*s ", pad > 0 ? pad : 0, "");
	if (p->width >= BRIEF_WIDE)
		(void)fprintf(p->f, "%-8s ", shard_kind_name(s->kind));
	(void)fprintf(p->f, "%10llu ", (unsigned long long)x->bytes);
	if (error != NULL) {
		(void)fputs("damaged\n", p->f);
		return;
	}
	(void)fprintf(p->f, "%7.3f", brief_bits(x));
	if (p->width >= BRIEF_WIDE) {
		(void)fprintf(p->f, " %9.4g  ", brief_norm(x));
		brief_codecs(p->f, &x->w->total, " ");
	}
	(void)fputc('\n', p->f);
}

/* ---- tabs ---- */

static void
brief_tsv(struct brief_row *x, struct brief *b, const char *error)
{
	const struct shard *s = x->shard;
	struct report *p = x->p;

	if (!b->begun)
		(void)fputs("file\trun\tstep\tdevice\tkind\tweight\tsamples\t"
		    "base\tcontributors\telements\tbytes\tbits\tnorm\tmax_abs\t"
		    "nonzero\tcodecs\terror\n", p->f);
	b->begun = 1;
	report_path(p, p->file != NULL ? p->file : "");
	(void)fputc('\t', p->f);
	report_path(p, shard_run(s));
	(void)fprintf(p->f, "\t%llu\t", (unsigned long long)s->step);
	report_path(p, shard_device(s));
	(void)fprintf(p->f, "\t%s\t%.9g\t%llu\t%llu\t%lu\t%llu\t%llu\t",
	    shard_kind_name(s->kind), s->weight,
	    (unsigned long long)s->samples, (unsigned long long)s->base_version,
	    (unsigned long)s->contributors,
	    (unsigned long long)x->w->total.elements,
	    (unsigned long long)x->bytes);
	if (x->end != NULL) {
		(void)fprintf(p->f, "%.6g\t%.9g\t%.9g\t%llu\t", brief_bits(x),
		    brief_norm(x), (double)x->end->sums.max_abs,
		    (unsigned long long)x->end->sums.nonzero);
		brief_codecs(p->f, &x->w->total, ":");
	} else {
		(void)fputs("\t\t\t\t", p->f);
	}
	(void)fputc('\t', p->f);
	report_path(p, error != NULL ? error : "");
	(void)fputc('\n', p->f);
}

/* ---- for diff(1) ---- */

static void
brief_place(struct report *p, const struct shard *s)
{
	(void)fprintf(p->f, "step %llu device ", (unsigned long long)s->step);
	report_path(p, shard_device(s));
}

static int
brief_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct brief_row *x = arg;
	struct report *p = x->p;

	(void)e;
	if (x->b->form != BRIEF_DIFFABLE || y->sent_groups == 0)
		return 0;
	brief_place(p, x->shard);
	(void)fputs(" tensor ", p->f);
	report_path(p, t->name);
	(void)fprintf(p->f, " groups %llu/%llu bytes ",
	    (unsigned long long)y->sent_groups, (unsigned long long)y->groups);
	brief_codecs(p->f, y, " ");
	(void)fputc('\n', p->f);
	return 0;
}

static void
brief_diffable(struct brief_row *x, const char *error)
{
	struct report *p = x->p;

	brief_place(p, x->shard);
	(void)fprintf(p->f, " %s ", shard_kind_name(x->shard->kind));
	if (error != NULL || x->end == NULL) {
		(void)fputs("damaged\n", p->f);
		return;
	}
	(void)fprintf(p->f, "weight %.9g nonzero %llu norm %.9g max %.9g "
	    "bytes ", x->shard->weight,
	    (unsigned long long)x->end->sums.nonzero, brief_norm(x),
	    (double)x->end->sums.max_abs);
	brief_codecs(p->f, &x->w->total, " ");
	(void)fputc('\n', p->f);
}

/* ---- JSON ---- */

static void
brief_json(struct brief_row *x, const char *error)
{
	const struct tally *y = &x->w->total;
	struct emit *j = &x->p->json;
	char name[16];
	unsigned c;

	report_object(x->p, x->shard);
	emit_u64(j, "elements", y->elements);
	emit_u64(j, "bytes", x->bytes);
	if (x->end != NULL) {
		emit_f64(j, "bits", brief_bits(x));
		emit_f64(j, "norm", brief_norm(x));
		emit_f32(j, "max_abs", x->end->sums.max_abs);
		emit_u64(j, "nonzero", x->end->sums.nonzero);
		emit_open(j, "codecs", '{');
		for (c = 0; c < CODEC_MAX; c++)
			if (y->codec[c] != 0)
				emit_u64(j, report_codec(c, name), y->coded[c]);
		emit_close(j);
	}
	if (error != NULL)
		emit_string(j, "error", error);
	emit_end(j);
}

/* ---- */

static void
brief_line(struct brief_row *x, struct brief *b, const char *error)
{
	switch (b->form) {
	case BRIEF_TSV:
		brief_tsv(x, b, error);
		break;
	case BRIEF_DIFFABLE:
		brief_diffable(x, error);
		break;
	case BRIEF_JSON:
		brief_json(x, error);
		break;
	default:
		brief_text(x, b, error);
	}
}

int
brief_stream(struct report *p, struct brief *b, struct reader *r,
    struct err *e)
{
	struct brief_row x = { .p = p, .b = b };
	struct walk w = { .glob = p->glob, .tensor = brief_tensor, .arg = &x };
	int k, was = p->quiet;

	x.w = &w;
	p->quiet = 1;		/* receipts are no shards */
	(void)reader_skim(r, 1);
	while ((k = report_next(p, r, e)) > 0) {
		x.shard = reader_shard(r);
		k = walk_shard(&w, r, e);
		x.end = k < 0 ? NULL : reader_end_of_shard(r);
		x.bytes = p->glob != NULL ? w.total.bytes : w.framed;
		brief_line(&x, b, k < 0 ? ERR_MSG(e) : NULL);
		if (k < 0 || (ferror(p->f) && (k = report_flush(p, e)) < 0))
			break;
	}
	p->quiet = was;
	walk_release(&w);
	return k;
}
