#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/ecq_code.h"
#include "codec/ecq_mode.h"
#include "codec/tail.h"

enum {
	ESCAPED = KERN_ECQ_SYMBOLS - 1,
	RAW_MOST = 9 * KERN_ECQ_LANES	/* bytes that a chunk's bits take */
};

/* ---- plain bits, written ---- */

/* Bits, the least significant of a byte first; fewer than 32 are pending. */
struct bits {
	uint64_t v;
	unsigned n;
	unsigned char *p, *start;
	unsigned fine;		/* ecq_side's */
};

static inline void
put_bits(struct bits *b, uint32_t v, unsigned n)
{
	b->v |= (uint64_t)v << b->n;
	b->n += n;
	if (b->n < 32)
		return;
	bytes_set32(b->p, (uint32_t)b->v);
	b->p += 4;
	b->v >>= 32;
	b->n -= 32;
}

/* The bits that a symbol leaves out, and the sign where it has none. */
static void
put_rest(struct bits *b, int16_t q, unsigned code, float x)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), k;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t a = ecq_magnitude(q), e;

	if (s == ESCAPED) {
		e = (a >> shift) - ESCAPED;
		k = ecq_length((e >> b->fine) + 1) - 1;
		put_bits(b, (1u << k) - 1, k + 1);
		put_bits(b, ((e >> b->fine) + 1) & ((1u << k) - 1), k);
		put_bits(b, e & ((1u << b->fine) - 1), b->fine);
	}
	put_bits(b, a & ((1u << shift) - 1), shift);
	if (s == 0 && a != 0)
		put_bits(b, q < 0, 1);
	if (a == ECQ_ESCAPE)
		put_bits(b, bytes_u32(x) & 0x7fffffff, 31);
}

/* All bits, a chunk after another; -1 when they are more than limit. */
static int
put_plain(struct bits *b, const struct ecq_in *in, const uint16_t *code,
    const uint32_t *mark, size_t limit)
{
	size_t at, end, i;

	for (at = 0; at < in->n; at = end) {
		end = at + KERN_ECQ_LANES < in->n ? at + KERN_ECQ_LANES : in->n;
		put_bits(b, *mark & 0xffff, *mark >> 16 & 0xff);
		for (i = at; *mark >> 24 != 0 && i < end; i++)
			if (!kern_ecq_whole(code[i]))
				put_rest(b, in->q[i], code[i], in->x[i]);
		mark++;
		if ((size_t)(b->p - b->start) > limit)
			return -1;
	}
	return 0;
}

/* ---- centroids ---- */

static int8_t
mean(int64_t sum, uint32_t n, int bits)
{
	double d = n != 0 ? rint(ldexp((double)sum / n, bits - 16)) : 0;
	double most = 1 << (bits == 8 ? 7 : 3);

	return (int8_t)(d < -most ? -most : d > most - 1 ? most - 1 : d);
}

static void
centroids(const struct ecq_in *in, int8_t delta[ECQ_CENTROIDS])
{
	int64_t sum[ECQ_CENTROIDS] = { 0 };	/* whole: has no order */
	uint32_t count[ECQ_CENTROIDS] = { 0 };
	unsigned j;

	in->kern->ecq_centers(in->q, in->x, in->n, in->inv, sum, count);
	for (j = 0; j < ECQ_CENTROIDS; j++)
		delta[j] = mean(sum[j], count[j], j == 0 ? 8 : 5);
}

/* ---- what a reader makes of it ---- */

struct values {
	float of[KERN_ECQ_SYMBOLS];	/* of a symbol without a shift */
	float delta[ECQ_CENTROIDS + 1];
	float step;
};

static float
value(const struct values *f, uint32_t a)
{
	return a == 0 ? 0 : ((float)a +
	    f->delta[a < ECQ_CENTROIDS ? a : ECQ_CENTROIDS]) * f->step;
}

void
ecq_code_delta(const int8_t delta[ECQ_CENTROIDS], float of[ECQ_CENTROIDS + 1])
{
	unsigned j;

	of[0] = 0;
	for (j = 0; j < ECQ_CENTROIDS; j++)
		of[j + 1] = (float)delta[j] / (j == 0 ? 256 : 32);
}

static void
values_start(struct values *f, const int8_t delta[ECQ_CENTROIDS], float step)
{
	unsigned j;

	*f = (struct values){ .step = step };
	ecq_code_delta(delta, f->delta);
	for (j = 0; j < KERN_ECQ_SYMBOLS; j++)
		f->of[j] = value(f, j);
}

/* The values of chunks whose codes say all but the signs, which are in the
 * marks. */
static void
whole_chunks(const struct kern *kern, float *x, const uint16_t *code,
    const uint32_t *mark, size_t n, const float of[KERN_ECQ_SYMBOLS])
{
	size_t at, end, i;

	for (at = 0; at < n; at = end) {
		for (end = at; end < n &&
		    mark[end / KERN_ECQ_LANES] >> 24 == 0;)
			end += KERN_ECQ_LANES;
		i = end < n ? end : n;
		kern->ecq_values(x + at, code + at, mark + at / KERN_ECQ_LANES,
		    i - at, of);
		while (end < n && mark[end / KERN_ECQ_LANES] >> 24 != 0)
			end += KERN_ECQ_LANES;
	}
}

/* ---- all of them ---- */

/* The states, then what they do not hold of the bits, before `end'; where
 * they begin, or NULL when there is no room from p on. */
static unsigned char *
put_back(const struct ecq_work *w, unsigned states, const struct bits *raw,
    const unsigned char *p, unsigned char *end)
{
	struct tail_put t = { 0, 0, end };
	size_t n = (size_t)(raw->p - raw->start) * 8 + raw->n, i;
	unsigned j, e, k;

	if ((size_t)(end - p) < n / 8 + 4 * states + 8)
		return NULL;
	for (j = 0; j < states; j++) {
		e = ecq_length(w->state[j]) - 17;
		tail_put(&t, e, 4);
		tail_put(&t, w->state[j] & ((1u << (16 + e)) - 1), 16 + e);
	}
	for (i = 16 * (size_t)states; i < n; i += k) {
		k = n - i < 16 ? (unsigned)(n - i) : 16;
		tail_put(&t, bytes_le16(raw->start + i / 8) & ((1u << k) - 1),
		    k);
	}
	return tail_put_end(&t);
}

/* The states, as the bits leave them, then all symbols. */
static size_t
put_all(struct ecq_work *w, const struct ecq_in *in, const struct ecq_side *s,
    uint32_t *span, struct bits *raw, unsigned char *p, size_t limit)
{
	unsigned states = 1u << s->states, j;
	unsigned char *end = p + limit, *front, *back;
	float delta[ECQ_CENTROIDS + 1];
	size_t k;

	raw->fine = s->fine;
	/* the marks are done with before there are spans */
	in->kern->ecq_marks(w->code, in->q, in->n, span);
	if (put_plain(raw, in, w->code, span, limit) < 0)
		return 0;
	if (in->y != NULL) {
		ecq_code_delta(s->delta, delta);
		in->kern->ecq_told(in->y, in->q, in->x, in->n, delta,
		    in->step);
	}
	/* what was pending, and zeros for every state */
	memset(raw->p, 0, 8 + 2 * KERN_ECQ_LANES);
	bytes_set32(raw->p, (uint32_t)raw->v);
	for (j = 0; j < states; j++)
		w->state[j] = KERN_ECQ_LOW | bytes_le16(raw->start + 2 * j);
	ecq_mode_start(w, in->ctx, s);
	kern_ecq_tables(&w->m, s->top);
	in->kern->ecq_spans(&w->m, w->code, in->n, span);
	/* at most 15 bits a value: there is room in the spans for the words,
	 * which are read before they are written over */
	front = in->kern->ecq_put(w->state, states, span, in->n,
	    (unsigned char *)(span + in->n) + 4 * KERN_ECQ_LANES);
	k = (size_t)((unsigned char *)(span + in->n) + 4 * KERN_ECQ_LANES -
	    front);
	if (k > limit)
		return 0;
	back = put_back(w, states, raw, p + k, end);
	if (back == NULL)
		return 0;
	memcpy(p, front, k);
	memmove(p + k, back, (size_t)(end - back));
	return k + (size_t)(end - back);
}

int
ecq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e)
{
	size_t n = in->n + KERN_ECQ_LANES;
	struct ecq_work w = { .code = NULL };
	struct bits raw = { .n = 0 };
	uint32_t *span;
	unsigned i;

	/* in one piece, which the allocator keeps */
	span = alloc_raw(n * (sizeof(*span) + sizeof(*w.above) +
	    KERN_ECQ_MODES * sizeof(*w.code)) + limit + RAW_MOST + 128, 1, e);
	if (span == NULL)
		return -ERR_SYS;
	w.above = (int32_t *)(span + n);
	w.trial[0] = (uint16_t *)(w.above + n);
	for (i = 1; i < KERN_ECQ_MODES; i++)
		w.trial[i] = w.trial[i - 1] + n;
	raw.p = raw.start = (unsigned char *)(w.trial[i - 1] + n);
	ecq_mode(&w, in, s);
	centroids(in, s->delta);
	*len = put_all(&w, in, s, span, &raw, p, limit);
	alloc_free(span);
	return 0;
}

/* ---- read ---- */

/* Plain bits: those that the states end with, then the others. */
struct plain {
	const uint32_t *state, *end;
	struct tail_get t;
	uint64_t v;
	unsigned n, fine;
	int bad;
};

/* n <= 32 bits. */
static inline uint32_t
get_bits(struct plain *b, unsigned n)
{
	uint64_t v;

	if (b->n == 0 && b->state == b->end)
		return tail_get(&b->t, n);

	while (b->n < n && b->state < b->end) {
		b->v |= (uint64_t)(*b->state++ & 0xffff) << b->n;
		b->n += 16;
	}
	if (b->n < n) {
		b->v |= (uint64_t)tail_get(&b->t, n - b->n) << b->n;
		b->n = n;
	}
	v = b->v & (((uint64_t)1 << n) - 1);
	b->v >>= n;
	b->n -= n;
	return (uint32_t)v;
}

/* The value of a code and bits of its own; neg: the sign, if it is known. */
static float
whole(const struct values *f, struct plain *b, unsigned code, uint32_t neg)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), k = 0;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t a = s;
	float x;

	if (s == ESCAPED) {
		while (k < 15 && get_bits(b, 1))
			k++;
		a = ((1u << k) | get_bits(b, k)) - 1;
		a = (a << b->fine | get_bits(b, b->fine)) + ESCAPED;
	}
	b->bad |= a > (uint32_t)ECQ_ESCAPE >> shift;
	a = a << shift | get_bits(b, shift);
	if (s == 0 && a != 0)
		neg = get_bits(b, 1);
	x = a == ECQ_ESCAPE ? bytes_f32(get_bits(b, 31)) : value(f, a);
	return neg ? -x : x;
}

/* All values, a chunk after another, from codes and plain bits. */
static void
get_plain(const struct values *f, struct plain *b, const struct ecq_work *w,
    const struct ecq_out *o)
{
	size_t at, end, i;
	uint32_t *mark = w->mark, signs;
	unsigned s;

	o->kern->ecq_marks(w->code, NULL, o->n, mark);
	for (at = 0; at < o->n; at = end, mark++) {
		end = at + KERN_ECQ_LANES < o->n ? at + KERN_ECQ_LANES : o->n;
		signs = get_bits(b, *mark >> 16 & 0xff);
		if (*mark >> 24 == 0) {
			*mark = signs;
			continue;
		}
		for (i = at; i < end; i++) {
			s = KERN_ECQ_SYMBOL(w->code[i]);
			o->x[i] = whole(f, b, w->code[i], s != 0 && signs & 1);
			signs >>= s != 0;
		}
	}
	whole_chunks(o->kern, o->x, w->code, w->mark, o->n, f->of);
}

static int
get_states(struct tail_get *t, uint32_t *state, unsigned n)
{
	unsigned i, e;

	for (i = 0; i < n; i++) {
		e = tail_get(t, 4);
		state[i] = KERN_ECQ_LOW << e | tail_get(t, 16 + e);
	}
	return t->bad ? -1 : 0;
}

/* All of it, the model started: 1 or 0. */
static int
get_all(struct ecq_work *w, const struct ecq_out *o, const struct ecq_side *s,
    const unsigned char *p, size_t len)
{
	unsigned states = 1u << s->states, j;
	struct kern_ecq_get g = { w->state, states, p, p + len };
	struct plain b = { .state = w->state, .end = w->state + states,
		.t = { 0, 0, p, len, 0 }, .fine = s->fine };
	struct values f;

	values_start(&f, s->delta, o->step);
	kern_ecq_tables(&w->m, s->top);
	if (get_states(&b.t, w->state, states) < 0 ||
	    o->kern->ecq_get(&w->m, &g, w->code, o->n) < 0)
		return 0;
	for (j = 0; j < states; j++)
		if (w->state[j] >> 17 != 0)
			return 0;
	get_plain(&f, &b, w, o);
	while (b.state < b.end)
		b.bad |= (*b.state++ & 0xffff) != 0;
	return !b.bad && b.v == 0 &&
	    tail_get_end(&b.t, (size_t)(g.p - p)) == 0;
}

int
ecq_code_get(const struct ecq_out *o, const struct ecq_side *s,
    const unsigned char *p, size_t len, struct err *e)
{
	size_t n = o->n + KERN_ECQ_LANES;
	struct ecq_work w = { .above = NULL };
	int r = -ERR_SYS;

	if (s->mode == KERN_ECQ_ABOVE && !kern_ecq_rows(o->ctx->cols, o->n))
		return 0;
	w.code = alloc_raw(n, sizeof(*w.code), e);
	w.mark = alloc_raw(n / KERN_ECQ_LANES, sizeof(*w.mark), e);
	if (s->mode == KERN_ECQ_ABOVE)
		w.above = alloc_raw(n, sizeof(*w.above), e);
	if (w.code != NULL && w.mark != NULL &&
	    (w.above != NULL || s->mode != KERN_ECQ_ABOVE)) {
		ecq_mode_start(&w, o->ctx, s);
		r = get_all(&w, o, s, p, len);
	}
	alloc_free(w.above);
	alloc_free(w.code);
	alloc_free(w.mark);
	return r;
}
