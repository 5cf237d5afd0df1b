/*
 * LOSSLESS: the bytes of f32 (param 0), or of the nearest bf16 (param 1), in
 * planes, each coded as suits it.
 *
 *   body  := plane[4] or plane[2], most significant first
 *   plane := u8 mode  data
 *   mode 128 + ... of the first plane: the others leave out the values whose
 *        byte in the first is 0; they are 0
 *   mode 0: the bytes as they are      1: one byte, all are it
 *        2: varint length, LZ4 block   3: varint length, rans.h
 *
 * The sign is moved below the mantissa first, so that the exponent is a plane
 * by itself: it is where gradients have little entropy (2.6 bits).
 */
#include <string.h>

#include "base/err.h"
#include "base/pack.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rans.h"
#include "kern/kern.h"

enum { STORED, CONSTANT, LZ4, RANS, SPARSE = 128 };
enum { SAMPLE = 4096 };
enum { F32 = 0, BF16 = 1 };

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	if (arg == NULL || strcmp(arg, "f32") == 0)
		plan->param = F32;
	else if (strcmp(arg, "bf16") == 0)
		plan->param = BF16;
	else
		return err_set(e, ERR_USAGE, "planes of f32 or of bf16");
	return 0;
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	if (plan->param == BF16)
		memcpy(buf, ":bf16", 6);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	/* a plane's code is never kept when longer than the plane, but is
	 * written before that is known */
	return (plan->param == BF16 ? 2 : 4) * (n + 16) + rans_bound(n);
}

/* count becomes how often each byte is in s. */
static unsigned char *
put_plane(unsigned char *out, const unsigned char *s, size_t n,
    uint32_t count[RANS_SYMBOLS])
{
	size_t i, guess, len;
	unsigned char head[16];

	if (n == 0)
		return out;
	rans_count(s, n, count);
	if (count[s[0]] == n) {
		*out++ = CONSTANT;
		*out++ = s[0];
		return out;
	}
	guess = rans_estimate(count, n);
	guess = guess < n ? guess : n - 1;
	*out = LZ4;
	/* LZ4 where it beats entropy (repeats longer than a byte); a sample of a
	 * long plane is asked first */
	len = n > 4 * SAMPLE && pack_lz4(out + 11, guess / (n / SAMPLE) + 64,
	    s + n / 2, SAMPLE) == 0 ? 0 : pack_lz4(out + 11, guess, s, n);
	if (len == 0 && guess < n - n / 64) {
		*out = RANS;
		len = rans_put(out + 11, s, n, count);
	}
	if (len == 0 || len + 3 >= n) {
		*out++ = STORED;
		memcpy(out, s, n);
		return out + n;
	}
	i = bytes_set_varint(head, len);
	memcpy(out + 1, head, i);
	memmove(out + 1 + i, out + 11, len);
	return out + 1 + i + len;
}

/* Is a value 0 in all planes where it is in the first? */
static int
zero_whole(const unsigned char *s, size_t n, size_t planes)
{
	unsigned char rest = 0;
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = 1; s[i] == 0 && j < planes; j++)
			rest |= s[j * n + i];
	return rest == 0;
}

/* The planes s[n] each; where a 0 in the first means 0 in all, the others
 * without those values. */
static unsigned char *
put_planes(unsigned char *out, unsigned char *s, size_t n, size_t planes)
{
	uint32_t count[RANS_SYMBOLS] = { 0 };
	unsigned char *first = out, *p;
	size_t i, j, k = n;

	out = put_plane(out, s, n, count);
	if (count[0] > n / 64 && zero_whole(s, n, planes)) {
		*first |= SPARSE;
		for (j = 1, p = s + n; j < planes; j++, p += n)
			for (i = k = 0; i < n; i++) {
				p[k] = p[i];
				k += s[i] != 0;
			}
	}
	for (j = 1; j < planes; j++)
		out = put_plane(out, s + j * n, k, count);
	return out;
}

static int
get_plane(struct bytes *b, unsigned mode, unsigned char *s, size_t n)
{
	const unsigned char *p;
	struct bytes part = BYTES(NULL, 0);
	uint64_t len;

	if (mode == STORED || mode == CONSTANT) {
		p = bytes_take(b, mode == STORED ? n : 1);
		if (p == NULL)
			return -1;
		if (mode == STORED)
			memcpy(s, p, n);
		else
			memset(s, p[0], n);
		return 0;
	}
	len = bytes_varint(b);
	if (b->bad || len > b->n - b->at ||
	    (p = bytes_take(b, (size_t)len)) == NULL)
		return -1;
	if (mode == LZ4)
		return pack_unlz4(s, n, p, (size_t)len);
	part.p = p;
	part.n = (size_t)len;
	return mode == RANS ? rans_get(&part, s, n) : -1;
}

static int
encode_f32(const struct codec_in *in, unsigned char **out, struct err *e)
{
	unsigned char *s = alloc_raw(in->n, 4, e);

	if (s == NULL)
		return -ERR_SYS;
	in->kern->split(s, in->x, in->n);
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	*out = put_planes(*out, s, in->n, 4);
	alloc_free(s);
	return 0;
}

static int
encode_bf16(const struct codec_in *in, unsigned char **out, struct err *e)
{
	size_t n = in->n, i;
	uint16_t *h = alloc_raw(n, 2, e);
	unsigned char *s = h != NULL ? alloc_raw(n, 2, e) : NULL;
	uint32_t u;

	if (s == NULL) {
		alloc_free(h);
		return -ERR_SYS;
	}
	in->kern->to_bf16(h, in->x, n);
	for (i = 0; i < n; i++) {
		u = h[i];
		u -= (u & 0x7fff) == 0x7f80;	/* as BF16: never infinite */
		if (in->y != NULL)
			in->y[i] = bytes_f32(u << 16);
		u = u << 1 | u >> 15;
		s[i] = (unsigned char)(u >> 8);
		s[n + i] = (unsigned char)u;
	}
	*out = put_planes(*out, s, n, 2);
	alloc_free(s);
	alloc_free(h);
	return 0;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned char *p = out->p + out->n;
	int r;

	*param = in->plan->param;
	r = *param == BF16 ? encode_bf16(in, &p, e) : encode_f32(in, &p, e);
	if (r == 0)
		out->n = (size_t)(p - out->p);
	return r;
}

static void
join_bf16(float *x, const unsigned char *s, size_t n)
{
	size_t i;
	uint32_t u;

	for (i = 0; i < n; i++) {
		u = (uint32_t)s[i] << 8 | s[n + i];
		x[i] = bytes_f32((u >> 1 | (u & 1) << 15) << 16);
	}
}

static int
get_planes(struct bytes *b, unsigned char *s, size_t n, size_t planes)
{
	unsigned mode = bytes_u8(b);
	size_t i, j, k = n, left;

	if (get_plane(b, mode & ~(unsigned)SPARSE, s, n) < 0)
		return -1;
	if ((mode & SPARSE) != 0)
		for (i = 0; i < n; i++)
			k -= s[i] == 0;
	for (j = 1; j < planes; j++) {
		if (k > 0 && get_plane(b, bytes_u8(b), s + j * n, k) < 0)
			return -1;
		/* to where the first plane is not 0 */
		for (i = n, left = k; k < n && i-- > 0; )
			s[j * n + i] = s[i] != 0 ? s[j * n + --left] : 0;
	}
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t planes = o->param == BF16 ? 2 : 4;
	unsigned char *s = alloc_raw(o->n, 4, e);
	int r = 0;

	if (s == NULL)
		return -ERR_SYS;
	if (get_planes(b, s, o->n, planes) < 0)
		r = codec_corrupt("lossless", "bad plane", e);
	else if (o->param == BF16)
		join_bf16(o->x, s, o->n);
	else
		o->kern->join(o->x, s, o->n);
	alloc_free(s);
	return r;
}

static void
foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = 0;
}

const struct codec_impl lossless_planes = {
	.name = "lossless", .parse = parse, .format = format, .bound = bound,
	.encode = encode, .decode = decode, .max_param = BF16,
	.raw = 1, .dense = 1, .tells = 1, .foretell = foretell
};
