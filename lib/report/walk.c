#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/values.h"
#include "pipe/pick.h"
#include "report/walk.h"

static void
walk_add(struct tally *to, const struct tally *y)
{
	int i;

	to->elements += y->elements;
	to->groups += y->groups;
	to->sent += y->sent;
	to->sent_groups += y->sent_groups;
	to->bytes += y->bytes;
	for (i = 0; i < CODEC_MAX; i++) {
		to->codec[i] += y->codec[i];
		to->coded[i] += y->coded[i];
	}
}

double
walk_bits(const struct tally *y)
{
	return y->elements != 0 ? 8 * (double)y->bytes / (double)y->elements : 0;
}

static void
walk_arrive(struct walk *w, const struct schema *sc)
{
	memset(&w->now, 0, sizeof(w->now));
	if (w->at >= sc->n)
		return;
	w->wanted = pick_tensor(w->glob, sc->t[w->at].name);
	w->now.elements = sc->t[w->at].numel;
	w->now.groups = sc->t[w->at].ngroups;
}

/* Complete and report all tensors before `to'. */
static int
walk_leave(struct walk *w, const struct schema *sc, size_t to, struct err *e)
{
	int k;

	for (; w->at < to; w->at++, walk_arrive(w, sc)) {
		if (!w->wanted)
			continue;
		walk_add(&w->total, &w->now);
		if (w->tensor != NULL && (k = w->tensor(w->arg, &sc->t[w->at],
		    &w->now, e)) < 0)
			return k;
	}
	return 0;
}

static int
walk_records(struct walk *w, const struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	const struct record *rec;
	struct schema_span span;
	size_t i, n, len;
	int k;

	rec = reader_records(r, &n);
	for (i = 0; i < n; i++) {
		schema_span(sc, rec[i].group, &span);
		if (w->sent != NULL) {
			w->sent[span.tensor].groups++;
			w->sent[span.tensor].bytes += rec[i].len;
		}
		if ((k = walk_leave(w, sc, span.tensor, e)) < 0)
			return k;
		if (!w->wanted)
			continue;
		w->now.sent += span.n;
		w->now.sent_groups++;
		w->now.bytes += rec[i].len;
		w->now.codec[rec[i].codec]++;
		w->now.coded[rec[i].codec] += rec[i].len;
		if (w->group == NULL || (reader_shard(r)->kind == SHARD_MODEL &&
		    !codec_values(rec[i].codec, rec[i].param)))
			continue;
		if ((k = values_decode(r, &rec[i], w->x, w->cap, &len, e)) < 0 ||
		    (k = w->group(w->arg, &sc->t[w->at], w->x, len, e)) < 0)
			return k;
	}
	return 0;
}

static void
walk_frame(struct walk *w, const struct reader *r)
{
	size_t n = reader_frame(r)->wire_len;

	w->framed += FRAME_HEAD_SIZE + n + frame_padding(n);
}

static int
walk_begin(struct walk *w, const struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);

	memset(&w->total, 0, sizeof(w->total));
	w->framed = 0;
	w->at = 0;
	walk_arrive(w, sc);
	walk_frame(w, r);
	return w->group == NULL ? 0 :
	    alloc_grow(&w->x, &w->cap, sc->group_size, sizeof(*w->x), e);
}

int
walk_shard(struct walk *w, struct reader *r, struct err *e)
{
	int k;

	if ((k = walk_begin(w, r, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		walk_frame(w, r);
		if (k == READER_SEND)
			return walk_leave(w, reader_schema(r),
			    reader_schema(r)->n, e);
		if (k == READER_DATA && (k = walk_records(w, r, e)) < 0)
			return k;
		if (k == READER_NOTE && w->note != NULL &&
		    (k = w->note(w->arg, r, e)) < 0)
			return k;
	}
	return k;
}

void
walk_release(struct walk *w)
{
	alloc_free(w->x);
	w->x = NULL;
	w->cap = 0;
}
