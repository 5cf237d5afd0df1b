#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "device/link.h"
#include "device/receipts.h"

enum { LINK_PAIRS = LINK_SPANS * (LINK_SPANS + 1) / 2 };

/* ---- bandwidth ---- */

void
link_idle(struct link *l, double secs)
{
	l->starved += secs;
}

void
link_wrote(struct link *l, double from, double to, size_t n)
{
	struct link_span *w;
	double secs;

	l->bytes += n;
	l->total += n;
	if (to - from < LINK_BLOCKED)
		return;
	secs = to - l->since;
	if (l->running && l->starved < LINK_STARVED * secs) {
		if (secs < LINK_SPAN)
			return;		/* let the span grow: longer ones are more reliable */
		if (l->since > l->rested) {	/* not the first after a pause */
			w = &l->w[l->n++ % LINK_SPANS];
			w->spell = l->rested;
			w->from = l->since;
			w->to = to;
			w->before = l->total - l->bytes;
			w->after = l->total;
		}
	} else {
		l->rested = to;
	}
	l->running = 1;
	l->since = to;
	l->starved = 0;
	l->bytes = 0;
}

/* Return the bandwidth in bit/s from the beginning of span a to the end of b, which is
 * a or later. */
static double
link_rate(const struct link_span *a, const struct link_span *b)
{
	return (double)(b->after - a->before) * 8 / (b->to - a->from);
}

/* Sort spans by the time from the last pause to their beginning, the longest first. */
static int
link_by_age(const void *a, const void *b)
{
	const struct link_span *x = a, *y = b;
	double p = x->from - x->spell, q = y->from - y->spell;

	return (p < q) - (p > q);
}

/* A slope (link.h) in bit/s, and the seconds over which it was measured. */
struct link_slope {
	double rate, secs;
};

static int
link_by_rate(const void *a, const void *b)
{
	const struct link_slope *x = a, *y = b;

	return (x->rate > y->rate) - (x->rate < y->rate);
}

static size_t
link_count(const struct link *l)
{
	return l->n < LINK_SPANS ? l->n : LINK_SPANS;
}

/* Move the spans that the estimate uses to the front. Return how many there are. */
static size_t
link_settled(struct link_span *w, size_t n)
{
	double all = 0, kept = 0, enough;
	size_t i;

	for (i = 0; i < n; i++)
		all += w[i].to - w[i].from;
	if (all < 2 * LINK_SPAN)
		return 0;		/* too short a time */
	enough = fmax(all / 2, LINK_ENOUGH);
	qsort(w, n, sizeof(w[0]), link_by_age);
	for (i = 0; i < n && (kept < enough ||
	    w[i].from - w[i].spell >= LINK_SETTLE); i++)
		kept += w[i].to - w[i].from;
	return i;
}

double
link_bandwidth(const struct link *l)
{
	struct link_span w[LINK_SPANS];
	struct link_slope s[LINK_PAIRS];
	size_t i, j, k = 0, n = link_count(l);
	double all = 0, at = 0;

	memcpy(w, l->w, n * sizeof(w[0]));
	n = link_settled(w, n);
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++) {
			if (w[i].spell < w[j].spell ||
			    w[i].spell > w[j].spell || w[i].from > w[j].from)
				continue;
			s[k].rate = link_rate(&w[i], &w[j]);
			s[k].secs = w[j].to - w[i].from;
			all += s[k++].secs;
		}
	qsort(s, k, sizeof(s[0]), link_by_rate);
	for (i = 0; i < k; i++)
		if ((at += s[i].secs) >= all / 2)
			return s[i].rate;
	return 0;
}

double
link_pace(double *due, double rate, double now, size_t n)
{
	double wait;

	if (*due < now - 0.2)
		*due = *due > 0 ? now - 0.2 : now;
	wait = *due > now ? *due - now : 0;
	*due += (double)n * 8 / rate;
	return wait;
}

/* ---- frames ---- */

/* Return how many bytes of the current header, or of the payload and its padding, are still
 * to come. */
static uint64_t
link_track_want(const struct link_track *t)
{
	return t->left != 0 ? t->left : FRAME_HEAD_SIZE - t->have;
}

uint64_t
link_track_unseen(const struct link_track *t)
{
	return t->lost || t->h.type != FRAME_DATA ? 0 : t->left;
}

/* Keep as many bytes as fit: the header and the beginning of the payload. */
static void
link_track_keep(struct link_track *t, const unsigned char *p, size_t n)
{
	size_t k = sizeof(t->head) - t->have < n ? sizeof(t->head) - t->have : n;

	memcpy(t->head + t->have, p, k);
	t->have += k;
}

/* Take bytes of the current header or payload. Return their number, 1 to n; n if t is lost.
 * Set *end to the frame's type if the frame ends with these bytes, else to 0. */
static size_t
link_track_bytes(struct link_track *t, const unsigned char *p, size_t n, uint32_t *end)
{
	struct err e = ERR_INIT;
	uint64_t want = link_track_want(t);
	int header = t->left == 0;
	size_t k = want < n ? (size_t)want : n;

	*end = 0;
	if (t->lost)
		return n;
	if (header || t->h.type != FRAME_DATA)
		link_track_keep(t, p, k);
	if (!header)
		t->left -= k;
	else if (k < want)
		return k;
	else if (frame_decode(&t->h, t->head, FRAME_MAX_HARD, 0, &e) < 0)
		t->lost = 1;
	else
		t->left = t->h.wire_len + frame_padding(t->h.wire_len);
	if (t->left == 0 && !t->lost) {
		*end = t->h.type;
		t->have = 0;
	}
	return k;
}

/* ---- shards that pass ---- */

static void
link_sent(struct link *l, const unsigned char *digest, double now)
{
	l->shards++;
	if (l->pending == LINK_SHARDS) {
		memmove(&l->sent[0], &l->sent[1],
		    (LINK_SHARDS - 1) * sizeof(l->sent[0]));
		l->pending--;
	}
	memcpy(l->sent[l->pending].digest, digest, SHARD_DIGEST);
	l->sent[l->pending].looked = 0;
	l->sent[l->pending++].at = now;
}

void
link_bytes(struct link *l, const unsigned char *p, size_t n, double now)
{
	const struct link_track *t = &l->track;
	struct err e = ERR_INIT;
	struct shard_end end;
	uint32_t type;
	size_t k;

	for (; n != 0 && !t->lost; n -= k) {
		k = link_track_bytes(&l->track, p, n, &type);
		p = p != NULL ? p + k : NULL;
		if (type == FRAME_SEND && t->h.wire_len == SHARD_END_SIZE &&
		    (t->h.flags & FRAME_LZ4) == 0 &&
		    shard_end_decode(&end, t->head + FRAME_HEAD_SIZE,
		    SHARD_END_SIZE, &e) == 0)
			link_sent(l, end.digest, now);
	}
}

/* ---- receipts ---- */

static void
link_trip(struct link *l, double secs)
{
	if (!(l->rtt > 0)) {
		l->rtt = secs;
		l->jitter = secs / 2;
	} else {
		l->jitter += (fabs(l->rtt - secs) - l->jitter) / 4;
		l->rtt += (secs - l->rtt) / 8;
	}
	l->trips++;
}

int
link_receipts(struct link *l, const struct statedir *s, double now, struct err *e)
{
	struct receipts q;
	size_t i, j;
	int r;

	if (l->pending == 0)
		return 0;
	if ((r = receipts_load(&q, s, e)) < 0)
		return r;
	for (i = 0; i < q.n; i++)
		for (j = 0; j < l->pending; j++) {
			if (memcmp(q.r[i].digest, l->sent[j].digest, SHARD_DIGEST) != 0)
				continue;
			if (l->sent[j].looked)
				link_trip(l, now - l->sent[j].at);
			l->pending--;
			memmove(&l->sent[j], &l->sent[j + 1],
			    (l->pending - j) * sizeof(l->sent[0]));
			break;
		}
	for (j = 0; j < l->pending; j++)
		l->sent[j].looked = 1;
	return 0;
}

double
link_patience(const struct link *l, double now)
{
	double secs = l->pending == 0 ? 1 : (now - l->sent[l->pending - 1].at) / 50;

	return secs < 0.002 ? 0.002 : secs > 1 ? 1 : secs;
}

/* ---- the state ---- */

/* Return the seconds under the key; 0 if absent or impossible. */
static double
link_number(const struct learned *h, const char *key)
{
	const char *s = text_get(&h->kv, key);
	double v = s != NULL ? strtod(s, NULL) : 0;

	return v > 0 && v < 1e9 ? v : 0;
}

int
link_load(struct link *l, const struct statedir *s, struct err *e)
{
	struct learned h;
	int r = learned_load(&h, s, LEARNED_LINK, e);

	if (r <= 0)
		return r;
	l->rtt = link_number(&h, LINK_RTT);
	l->jitter = link_number(&h, LINK_JITTER);
	learned_release(&h);
	return 0;
}

int
link_save(const struct link *l, const struct statedir *s, double limit, struct err *e)
{
	struct learned old = LEARNED_INIT, h = LEARNED_INIT;
	double known = 0, rate = link_bandwidth(l);
	int r;

	/* the rate limit counts as the bandwidth only if no lower rate is known */
	if (limit > 0 && !(rate > 0) && (r = learned_number(s, LEARNED_LINK,
	    LEARNED_BANDWIDTH, &known, e)) < 0)
		return r;
	if (known > 0)
		rate = known;
	if (limit > 0 && !(rate > 0 && rate < limit))
		rate = limit;
	if (!(rate > 0) && l->trips == 0)
		return 0;		/* nothing new */
	if ((r = learned_load(&old, s, LEARNED_LINK, e)) >= 0)
		r = text_copy(&h.kv, &old.kv, e);
	if (r == 0 && rate > 0)
		r = text_setf(&h.kv, LEARNED_BANDWIDTH, e, "%.0f", rate);
	if (r == 0 && l->rtt > 0 &&
	    (r = text_setf(&h.kv, LINK_RTT, e, "%.6f", l->rtt)) == 0)
		r = text_setf(&h.kv, LINK_JITTER, e, "%.6f", l->jitter);
	if (r == 0)
		r = learned_save(&h, s, LEARNED_LINK, NULL, IO_SYNC_RENAME, e);
	learned_release(&old);
	learned_release(&h);
	return r;
}
