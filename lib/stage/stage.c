#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/values.h"
#include "format/writer.h"
#include "kern/kern.h"
#include "pipe/program.h"
#include "stage/stage.h"

/* Before the first shard of at least this many values, call alloc_expect. */
enum { STAGE_MANY = 1 << 16 };

int
stage_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	while (s->kind->begin == NULL)
		s = s->next;
	return s->kind->begin(s, sh, e);
}

int
stage_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	while (s->kind->data == NULL)
		s = s->next;
	return s->kind->data(s, d, e);
}

int
stage_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	while (s->kind->note == NULL)
		s = s->next;
	return s->kind->note(s, n, e);
}

int
stage_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	while (s->kind->end == NULL)
		s = s->next;
	return s->kind->end(s, sums, e);
}

int
stage_finish(struct stage *s, struct err *e)
{
	while (s->kind->finish == NULL)
		s = s->next;
	return s->kind->finish(s, e);
}

const char *
stage_name(const struct stage_shard *sh, char buf[160])
{
	(void)snprintf(buf, 160, "shard '%.100s/%llu'", shard_device(sh->shard),
	    (unsigned long long)sh->shard->step);
	return buf;
}

static void
stage_abort(struct stage *s, struct err *e)
{
	for (; s != NULL; s = s->next)
		if (s->kind->abort != NULL)
			s->kind->abort(s, e);
}

void
stage_free(struct stage *s)
{
	struct stage *next;

	for (; s != NULL; s = next) {
		next = s->next;
		if (s->kind->free != NULL)
			s->kind->free(s);
		alloc_free(s);
	}
}

int
stage_new(struct stage **out, const struct stage_kind *k, void *o,
    const struct filter *f, struct err *e)
{
	int r = k->check != NULL ? k->check(o, e) : 0;

	if ((*out = r < 0 ? NULL : alloc_get(1, k->size, e)) == NULL)
		return r < 0 ? r : -ERR_SYS;
	(*out)->kind = k;
	(*out)->values = k->values;
	if (k->make != NULL && (r = k->make(*out, o, f, e)) < 0) {
		stage_free(*out);
		*out = NULL;
	}
	return r;
}

/* ---- data and annotations made by a stage ---- */

int
stage_make(struct stage *s, uint32_t type, const unsigned char *p, size_t n,
    struct err *e)
{
	struct stage_note note = { type, p, n, NULL };

	return stage_note(s, &note, e);
}

int
stage_values(struct stage *s, uint32_t g, const float *x, size_t n,
    const struct kern_stat *stat, int cut, struct err *e)
{
	struct record rec = { g, CODEC_F32, 0, (const unsigned char *)x, 4 * n };
	struct stage_data d = { .rec = &rec, .n = 1, .x = x, .nx = n,
	    .stat = stat, .cut = cut };

	return stage_data(s, &d, e);
}

int
stage_read(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, struct stage_seen *v, struct err *e)
{
	if (d->x == NULL)
		return values_view(in, &d->rec[i], buf, cap, &v->x, &v->n,
		    &v->stat, e);
	v->x = d->x;
	v->n = d->nx;
	v->stat = *d->stat;
	return 0;
}

int
stage_finite(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, struct stage_seen *v, struct err *e)
{
	const int r = stage_read(d, i, in, buf, cap, v, e);

	return r < 0 || v->stat.nonfinite == 0 ? r : values_refuse(in, d->rec[i].group,
	    kern_first_nonfinite(v->x, v->n), e);
}

/* Set *all to the lines of in's provenance, followed by `lines' if not NULL. */
static int
stage_provenance(struct buf *b, const struct reader *in, const char *lines,
    const char **all, struct err *e)
{
	int r;

	*all = reader_provenance(in);
	if (lines == NULL)
		return 0;
	b->n = 0;
	if ((r = buf_put(b, *all, strlen(*all), e)) == 0)
		r = buf_put(b, lines, strlen(lines) + 1, e);
	*all = (const char *)b->p;
	return r;
}

int
stage_run(struct reader *in, struct stage *s, struct writer *w,
    const char *lines, struct err *e)
{
	const struct chain_frame *f = reader_frame(in);
	struct buf provenance = BUF_INIT;
	int r, expected = 0;

	while ((r = reader_next(in, e)) > 0) {
		struct stage_shard sh = { reader_shard(in), reader_schema(in),
		    in, NULL };
		struct stage_data d = { .whole = in,
		    .cut = (f->flags & FRAME_CUT) != 0 };
		struct stage_note n = { f->type, f->raw, f->raw_len, in };

		if (r == READER_SHARD && !expected &&
		    sh.schema->total >= STAGE_MANY) {
			alloc_expect();
			expected = 1;
		}
		if (r == READER_SHARD && (r = stage_provenance(&provenance, in,
		    lines, &sh.provenance, e)) == 0) {
			r = stage_begin(s, &sh, e);
		} else if (r == READER_DATA) {
			d.rec = reader_records(in, &d.n);
			r = stage_data(s, &d, e);
		} else if (r == READER_NOTE && sh.shard != NULL) {
			r = stage_note(s, &n, e);
		} else if (r == READER_SEND) {
			r = stage_end(s, &reader_end_of_shard(in)->sums, e);
		} else if (r == READER_RCPT && w != NULL) {
			r = writer_pass_receipt(w, in, e);
		}
		if (r < 0)
			break;
	}
	if (r == 0)
		r = stage_finish(s, e);
	if (r < 0)
		stage_abort(s, e);
	buf_release(&provenance);
	return r;
}

/* ---- the last stage of most chains, which passes its input to a writer ---- */

struct stage_out {
	struct stage s;
	struct writer *w;
};

static struct writer *
stage_out_writer(const struct stage *s)
{
	return ((const struct stage_out *)s)->w;
}

static int
stage_out_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct writer *w = stage_out_writer(s);
	int r = writer_history(w, sh->provenance, e);

	return r < 0 ? r : writer_shard(w, sh->shard, sh->schema, e);
}

static int
stage_out_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	struct writer *w = stage_out_writer(s);
	int r;

	r = d->whole != NULL ? writer_pass(w, d->whole, e) :
	    writer_seen(w, d->rec->group, d->x, d->nx, NULL, e);
	return r < 0 || !d->cut ? r : writer_flush(w, e);
}

static int
stage_out_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	return n->whole != NULL ? writer_pass(stage_out_writer(s), n->whole, e) :
	    writer_note(stage_out_writer(s), n->type, n->p, n->n, e);
}

static int
stage_out_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	return writer_send(stage_out_writer(s), sums, e);
}

static int
stage_out_finish(struct stage *s, struct err *e)
{
	return filter_end(stage_out_writer(s), 0, e);
}

static void
stage_out_abort(struct stage *s, struct err *e)
{
	filter_abort(stage_out_writer(s), e);
}

static void
stage_out_free(struct stage *s)
{
	writer_free(stage_out_writer(s));
}

static void
stage_out_to(struct stage *s, struct writer *w)
{
	((struct stage_out *)s)->w = w;
}

static const struct stage_kind stage_out = {
	.size = sizeof(struct stage_out),
	.values = STAGE_IGNORES,
	.begin = stage_out_begin,
	.data = stage_out_data,
	.note = stage_out_note,
	.end = stage_out_end,
	.finish = stage_out_finish,
	.abort = stage_out_abort,
	.free = stage_out_free,
	.to = stage_out_to
};

int
stage_pass(struct filter *f, struct stage *s, const char *lines,
    const char *path, struct err *e)
{
	enum stage_values v = s->values;
	struct stage *last = s;
	struct reader *in = NULL;
	struct writer *w;
	int r = 0;

	for (; last->next != NULL; last = last->next)
		if (last->next->values < v)
			v = last->next->values;
	if (last->kind->to == NULL) {
		r = stage_new(&last->next, &stage_out, NULL, f, e);
		last = last->next;
	}
	if (r == 0 && (r = filter_both(f, &in, &w, path, e)) == 0) {
		last->kind->to(last, w);
		if (v != STAGE_CHANGES)
			writer_splice(w, in, v == STAGE_IGNORES);
		r = stage_run(in, s, w, lines, e);
	}
	reader_free(in);
	return r;
}

struct stage_program {
	struct program p;
	const struct stage_kind *kind;
	void *o;
};

static int
stage_program_run(void *arg, char **path, size_t n, struct err *e)
{
	struct stage_program *x = arg;
	struct stage *s;
	int r = stage_new(&s, x->kind, x->o, &x->p.f, e);

	if (r == 0)
		r = stage_pass(&x->p.f, s, NULL, *path, e);
	stage_free(s);
	return r;
}

int
stage_program(const struct stage_kind *k, void *o, const struct cli *c,
    int argc, char **argv)
{
	struct stage_program x = { .p = { .cli = *c, .run = stage_program_run },
	    .kind = k, .o = o };

	x.p.cli.one = 1;
	x.p.cli.own = o;
	return program_main(&x.p, argc, argv, &x);
}
