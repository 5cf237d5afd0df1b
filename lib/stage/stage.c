#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/values.h"
#include "stage/stage.h"

/* ---- to the next stage that cares ---- */

int
stage_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	while (s->begin == NULL)
		s = s->next;
	return s->begin(s, sh, e);
}

int
stage_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	while (s->data == NULL)
		s = s->next;
	return s->data(s, d, e);
}

int
stage_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	while (s->note == NULL)
		s = s->next;
	return s->note(s, n, e);
}

int
stage_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	while (s->end == NULL)
		s = s->next;
	return s->end(s, sums, e);
}

int
stage_finish(struct stage *s, struct err *e)
{
	while (s->finish == NULL)
		s = s->next;
	return s->finish(s, e);
}

static void
stage_abort(struct stage *s)
{
	for (; s != NULL; s = s->next)
		if (s->abort != NULL)
			s->abort(s);
}

void
stage_free(struct stage *s)
{
	struct stage *next;

	for (; s != NULL; s = next) {
		next = s->next;
		if (s->free != NULL)
			s->free(s);
	}
}

/* ---- what a stage makes itself ---- */

int
stage_make(struct stage *s, uint32_t type, const unsigned char *p, size_t n,
    struct err *e)
{
	struct stage_note note = { type, p, n, NULL };

	return stage_note(s, &note, e);
}

int
stage_values(struct stage *s, uint32_t g, const float *x, size_t n,
    const struct kern_stat *stat, struct err *e)
{
	struct record rec = { g, CODEC_F32, 0, (const unsigned char *)x,
	    4 * n };
	struct stage_data d = { .rec = &rec, .n = 1, .x = x, .nx = n,
	    .stat = stat };

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

/* ---- a reader's events ---- */

struct stage_source {
	struct reader *in;
	struct stage *first;
	const char *lines;
	struct buf provenance;
};

/* in's lines and ours, as one string. */
static int
stage_provenance(struct stage_source *q, const char **all, struct err *e)
{
	const char *theirs = reader_provenance(q->in);
	int r;

	*all = theirs;
	if (q->lines == NULL)
		return 0;
	q->provenance.n = 0;
	r = buf_put(&q->provenance, theirs, strlen(theirs), e);
	if (r == 0)
		r = buf_put(&q->provenance, q->lines, strlen(q->lines) + 1, e);
	*all = (const char *)q->provenance.p;
	return r;
}

static int
stage_event_shard(struct stage_source *q, struct err *e)
{
	struct stage_shard sh = { reader_shard(q->in), reader_schema(q->in),
	    q->in, NULL };
	int r = stage_provenance(q, &sh.provenance, e);

	return r < 0 ? r : stage_begin(q->first, &sh, e);
}

static int
stage_event(struct stage_source *q, int event, struct err *e)
{
	const struct chain_frame *f = reader_frame(q->in);
	struct stage_data d = { .whole = q->in,
	    .cut = (f->flags & FRAME_CUT) != 0 };
	struct stage_note n = { f->type, f->raw, f->raw_len, q->in };

	switch (event) {
	case READER_SHARD:
		return stage_event_shard(q, e);
	case READER_DATA:
		d.rec = reader_records(q->in, &d.n);
		return stage_data(q->first, &d, e);
	case READER_NOTE:
		return reader_shard(q->in) != NULL ?
		    stage_note(q->first, &n, e) : 0;
	case READER_SEND:
		return stage_end(q->first, &reader_end_of_shard(q->in)->sums,
		    e);
	default:
		return 0;
	}
}

int
stage_run(struct reader *in, struct stage *s, const char *lines, struct err *e)
{
	struct stage_source q = { in, s, lines, BUF_INIT };
	int r;

	while ((r = reader_next(in, e)) > 0)
		if ((r = stage_event(&q, r, e)) < 0)
			break;
	if (r == 0)
		r = stage_finish(s, e);
	if (r < 0)
		stage_abort(s);
	buf_release(&q.provenance);
	return r;
}
