/*
 * EXACT: see exact.h.
 *
 *   body  := whole | given   according to the parameter
 *   whole := planes (planes.h) of the words; floating-point words with the sign moved
 *            to the lowest bit
 *   given := code  bits   (subset.h)
 */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/codec_impl.h"
#include "codec/exact.h"
#include "codec/exact_given.h"
#include "codec/exact_word.h"
#include "codec/planes.h"
#include "kern/kern.h"

enum { SIXTEENTH = 16, QUARTER = 4 };

static const struct form forms[EXACT_NFORM] = {
	[EXACT_F32] = { 4, 32, 23, 8, 1 }, [EXACT_F16] = { 2, 16, 10, 5, 1 },
	[EXACT_BF16] = { 2, 16, 7, 8, 1 }, [EXACT_F64] = { 8, 64, 52, 11, 1 },
	[EXACT_F8E4M3] = { 1, 8, 3, 4, 1 }, [EXACT_F8E5M2] = { 1, 8, 2, 5, 1 },
	[EXACT_INT8] = { 1, 8, 0, 0, 0 }, [EXACT_INT16] = { 2, 16, 0, 0, 0 },
	[EXACT_INT32] = { 4, 32, 0, 0, 0 }, [EXACT_INT64] = { 8, 64, 0, 0, 0 }
};
/* 4-bit values, each stored in a byte of its own (to_halves) */
static const struct form halves = { 1, 4, 0, 0, 1 };

size_t
exact_size(unsigned form)
{
	return forms[form].size;
}

size_t
exact_bound(unsigned form, size_t n)
{
	size_t size = forms[form].size;

	return planes_bound(n, size) + exact_given_bound(&forms[form],
	    form == EXACT_INT8 ? 2 * n : n);
}

/* Split words into planes, most significant byte first; move the sign of floats to the
 * lowest bit. */
static void
split(const struct form *f, const unsigned char *p, unsigned char *s, size_t n)
{
	unsigned j, bits = 8u * f->size;
	uint64_t v;
	size_t i;

	for (i = 0; i < n; i++) {
		v = word(p + i * f->size, f->size);
		if (f->exponent != 0)
			v = (v << 1 | v >> (bits - 1)) & all_bits(f);
		for (j = 0; j < f->size; j++)
			s[j * n + i] = (unsigned char)(v >> (bits - 8 - 8 * j));
	}
}

static void
join(const struct form *f, const unsigned char *s, unsigned char *p, size_t n)
{
	unsigned j, bits = 8u * f->size;
	uint64_t v;
	size_t i;

	for (i = 0; i < n; i++) {
		for (v = j = 0; j < f->size; j++)
			v = v << 8 | s[j * n + i];
		if (f->exponent != 0)
			v = v >> 1 | (v & 1) << (bits - 1);
		set_word(p + i * f->size, f->size, v);
	}
}

static int
put_whole(const struct form *f, const unsigned char *new, size_t n,
    struct buf *out, struct err *e)
{
	unsigned char *s = alloc_raw(n, f->size, e);

	if (s == NULL)
		return -ERR_SYS;
	split(f, new, s, n);
	out->n = (size_t)(planes_put(out->p + out->n, s, n, f->size) - out->p);
	alloc_free(s);
	return 0;
}

static int
get_whole(const struct form *f, struct bytes *in, unsigned char *new, size_t n,
    struct err *e)
{
	unsigned char *s = alloc_raw(n, f->size, e);
	int r;

	if (s == NULL)
		return -ERR_SYS;
	r = planes_get(in, s, n, f->size);
	if (r == 0 && !in->bad)
		join(f, s, new, n);
	alloc_free(s);
	return r < 0 || in->bad ? codec_corrupt("exact", "a byte plane is damaged", e) : 0;
}

/* ---- half bytes ---- */

/* Return 1 if the two halves of bytes seem to change independently, as in pairs of 4-bit
 * values. In a byte that is one value, a change seldom affects only the upper half. */
static int
by_halves(const unsigned char *old, const unsigned char *new, size_t n)
{
	size_t i, any = 0, upper = 0;
	unsigned x;

	for (i = 0; i < n; i++) {
		x = old[i] ^ new[i];
		any += x != 0;
		upper += x != 0 && (x & 15) == 0;
	}
	return upper > any / QUARTER;
}

static void
to_halves(const unsigned char *p, size_t n, unsigned char *half)
{
	size_t i;

	for (i = 0; i < n; i++) {
		half[2 * i] = p[i] & 15;
		half[2 * i + 1] = p[i] >> 4;
	}
}

/* Encode n bytes that hold two values each; like exact_given_put, but count changed bytes. */
static int
put_halves(const unsigned char *old, const unsigned char *new, size_t n,
    struct buf *out, int *too_long, struct err *e)
{
	unsigned char *p = alloc_raw(n, 4, e);
	size_t i, k;
	int r;

	if (p == NULL)
		return -ERR_SYS;
	to_halves(old, n, p);
	to_halves(new, n, p + 2 * n);
	r = exact_given_put(&halves, p, p + 2 * n, 2 * n, out, too_long, e);
	alloc_free(p);
	for (i = k = 0; i < n; i++)
		k += old[i] != new[i];
	return r < 0 ? r : (int)k;
}

static int
get_halves(const unsigned char *old, struct bytes *in, unsigned char *new,
    size_t n, struct err *e)
{
	unsigned char *p = alloc_raw(n, 2, e);
	size_t i;
	int r;

	if (p == NULL)
		return -ERR_SYS;
	to_halves(old, n, p);
	r = exact_given_get(&halves, p, in, p, 2 * n, e);
	for (i = 0; i < n && r == 0; i++)
		new[i] = (unsigned char)(p[2 * i] | p[2 * i + 1] << 4);
	alloc_free(p);
	return r;
}

int
exact_put(unsigned form, const unsigned char *old, const unsigned char *new,
    size_t n, struct buf *out, uint8_t *param, struct err *e)
{
	const struct form *f = &forms[form];
	size_t start = out->n, given;
	int r, too_long, changed;

	*param = (uint8_t)form;
	if (n == 0)
		return 0;
	if ((r = buf_room(out, exact_bound(form, n), e)) < 0)
		return r;
	if (old == NULL)
		return (r = put_whole(f, new, n, out, e)) < 0 ? r : (int)n;
	if (form == EXACT_INT8 && by_halves(old, new, n)) {
		*param = EXACT_HALVES;
		changed = put_halves(old, new, n, out, &too_long, e);
	} else
		changed = exact_given_put(f, old, new, n, out, &too_long, e);
	if (changed <= 0)
		return changed;
	*param |= EXACT_GIVEN;
	given = out->n - start;
	if (!too_long && given <= n * f->size / SIXTEENTH)
		return changed;
	if ((r = buf_room(out, exact_bound(form, n), e)) < 0 ||
	    (r = put_whole(f, new, n, out, e)) < 0) {
		out->n = start;
		return r;
	}
	if (too_long || out->n - start - given < given) {
		memmove(out->p + start, out->p + start + given,
		    out->n - start - given);
		out->n -= given;
		*param = (uint8_t)form;
	} else
		out->n = start + given;
	return changed;
}

int
exact_get(uint8_t param, unsigned form, const unsigned char *old,
    const unsigned char *body, size_t len, unsigned char *new, size_t n,
    struct err *e)
{
	struct bytes in = BYTES(body, len);
	int r;

	if ((param & ~EXACT_GIVEN) != (int)form &&
	    (form != EXACT_INT8 || param != (EXACT_HALVES | EXACT_GIVEN)))
		return err_set(e, ERR_DATA, "mismatch: a group of codec exact holds "
		    "values of another type than its tensor");
	if (n == 0)
		return len == 0 ? 0 : codec_corrupt("exact", CODEC_LENGTH, e);
	if ((param & EXACT_GIVEN) == 0)
		r = get_whole(&forms[form], &in, new, n, e);
	else if (old == NULL)
		return err_set(e, ERR_DATA, "mismatch: a group of codec exact decodes "
		    "only with the old model: use ace-patch");
	else
		r = (param & EXACT_FORM) == EXACT_HALVES ?
		    get_halves(old, &in, new, n, e) :
		    exact_given_get(&forms[form], old, &in, new, n, e);
	return r == 0 && in.at != in.n ? codec_corrupt("exact", CODEC_LENGTH, e) : r;
}

/* ---- as a codec of f32 ---- */

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return planes_bound(n, sizeof(float));
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char *s = alloc_raw(in->n, sizeof(*in->x), e);

	if (s == NULL)
		return -ERR_SYS;
	*param = EXACT_F32;
	in->kern->split(s, in->x, in->n);
	out->n = (size_t)(planes_put(out->p + out->n, s, in->n, sizeof(*in->x)) - out->p);
	alloc_free(s);
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	return 0;
}

/* Decode f32 that are coded whole. Refuse bodies that need old words or have another type. */
static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	unsigned char *s;
	int r;

	if (o->param != EXACT_F32)
		return exact_get(o->param, EXACT_F32, NULL, b->p, b->n, NULL, o->n, e);
	if ((s = alloc_raw(o->n, sizeof(*o->x), e)) == NULL)
		return -ERR_SYS;
	if ((r = planes_get(b, s, o->n, sizeof(*o->x))) == 0)
		o->kern->join(o->x, s, o->n);
	alloc_free(s);
	return r < 0 ? codec_corrupt("exact", "a byte plane is damaged", e) : 0;
}

const struct codec_impl exact_codec = {
	.name = "exact", .parse = codec_no_arg, .bound = bound, .encode = encode,
	.decode = decode, .max_param = EXACT_GIVEN | EXACT_HALVES,
	.raw = 1, .dense = 1, .gives_y = 1
};
