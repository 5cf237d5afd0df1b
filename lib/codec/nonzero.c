/*
 * NONZERO: code the values that are not +0, bit for bit, and their positions.
 *
 *   body := varint k, and unless k = 0:  the positions (rice_put_positions)  f32[k]
 *
 * This codec is lossless.  Averages of sparse shards are written with it.
 */
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rice.h"

enum { HEAD = 10 };

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return HEAD + rice_bound(n, (uint32_t)n) + 4 * n;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	struct bits w = { .p = out->p + out->n };
	unsigned char *p;
	uint32_t *pos;
	size_t i, k;

	if ((pos = alloc_raw(in->n + 1, sizeof(*pos), e)) == NULL)
		return -ERR_SYS;
	for (i = k = 0; i < in->n; i++) {
		pos[k] = (uint32_t)i;
		k += bytes_u32(in->x[i]) != 0;
	}
	w.p += bytes_set_varint(w.p, k);
	rice_put_positions(&w, pos, k, in->n);
	p = rice_put_end(&w);
	for (i = 0; i < k; i++, p += 4)
		bytes_set32(p, bytes_u32(in->x[pos[i]]));
	out->n = (size_t)(p - out->p);
	alloc_free(pos);
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	return 0;
}

static int
list(const struct codec_out *o, struct bytes *b, struct codec_list *l, struct err *e)
{
	uint64_t k = bytes_varint(b);
	struct rice_in in = rice_open(b);
	const unsigned char *p;

	if (b->bad || k > o->n || o->n > INT32_MAX)
		return codec_corrupt("nonzero", "the count is incomplete or too large", e);
	if (codec_list_room(l, (size_t)k, e) < 0)
		return -ERR_SYS;
	rice_get_positions(&in, l->pos, l->k, o->n);
	if (rice_close(&in, b) < 0 || (p = bytes_take(b, 4 * l->k)) == NULL)
		return codec_corrupt("nonzero", "the positions or values are incomplete", e);
	bytes_get_f32(l->x, p, l->k);
	return 0;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	double k = m->nonzero;

	*bytes = (int64_t)(estimate_positions(m, k) / 8 + 4 * k) + (k > 0 ? HEAD : 1);
}

const struct codec_impl nonzero_codec = {
	.name = "nonzero", .parse = codec_no_arg, .bound = bound,
	.encode = encode, .list = list, .gives_y = 1, .estimate = estimated
};
