#include <string.h>

#include "base/err.h"
#include "files/dtype.h"
#include "model/slice.h"

int
slice_check(const struct slice *p, const struct schema_tensor *t, struct err *e)
{
	unsigned d;

	for (d = 0; d < t->ndim; d++)
		if (p->off[d] > t->dim[d] || p->len[d] > t->dim[d] - p->off[d])
			return err_set(e, ERR_DATA, "corrupt: a slice of tensor "
			    "'%.160s' ends beyond its shape in dimension %u", t->name,
			    d);
	d = t->ndim > 0 ? t->ndim - 1u : 0;
	if (t->dtype == SCHEMA_F4 && memcmp(p->len, t->dim, t->ndim *
	    sizeof(*p->len)) != 0 && ((p->off[d] | p->len[d] | t->dim[d]) & 1) != 0)
		return err_set(e, ERR_DATA, "unsupported: a slice of tensor '%.160s' "
		    "begins or ends between the two f4 values of a byte", t->name);
	return 0;
}

void
slice_whole(const struct schema_tensor *t, struct slice *p)
{
	memset(p, 0, sizeof(*p));
	memcpy(p->len, t->dim, t->ndim * sizeof(*p->len));
}

struct slice
slice_common(const struct slice *a, const struct slice *b)
{
	struct slice both;
	uint64_t x, y;
	unsigned d;

	for (d = 0; d < SCHEMA_MAX_DIM; d++) {
		both.off[d] = a->off[d] > b->off[d] ? a->off[d] : b->off[d];
		x = a->off[d] + a->len[d];
		y = b->off[d] + b->len[d];
		x = x < y ? x : y;
		both.len[d] = x > both.off[d] ? x - both.off[d] : 0;
	}
	return both;
}

static uint64_t
slice_values(const struct slice *p, const struct schema_tensor *t)
{
	uint64_t n = 1;
	unsigned d;

	for (d = 0; d < t->ndim; d++)
		n *= p->len[d];
	return n;
}

uint64_t
slice_before(const struct slice *p, const struct schema_tensor *t, uint64_t x)
{
	uint64_t rest = t->numel, n = 0, inner, k;
	unsigned d;

	if (p == NULL)
		return x;
	inner = slice_values(p, t);
	if (x >= rest || inner == 0)
		return inner;
	for (d = 0; d < t->ndim; d++) {
		rest /= t->dim[d];
		inner /= p->len[d];
		k = x / rest;
		x %= rest;
		if (k < p->off[d])
			return n;
		if (k - p->off[d] >= p->len[d])
			return n + p->len[d] * inner;
		n += (k - p->off[d]) * inner;
	}
	return n;
}

/* Return the tensor's index of value c of the slice; set *n to the number of values from
 * there on without a gap. */
static uint64_t
slice_at(const struct slice *p, const struct schema_tensor *t, uint64_t c,
    uint64_t *n)
{
	uint64_t row = 1, step, x;
	unsigned d = t->ndim;

	while (d > 0 && p->len[d - 1] == t->dim[d - 1])
		row *= t->dim[--d];
	step = row;
	if (d > 0)
		row *= p->len[d - 1];
	*n = row - c % row;
	x = c % row;
	c /= row;
	if (d == 0)
		return x;
	x += p->off[--d] * step;
	while (d > 0) {
		step *= t->dim[d--];
		x += (p->off[d] + c % p->len[d]) * step;
		c /= p->len[d];
	}
	return x;
}

size_t
slice_move(const struct slice *p, const struct schema_tensor *t, uint64_t lo,
    uint64_t hi, const struct slice *own, int set, unsigned char *group,
    unsigned char *tile)
{
	uint64_t c = slice_before(p, t, lo), n, x;
	const uint64_t end = slice_before(p, t, hi);
	const uint64_t from = slice_before(own, t, lo);
	unsigned char *g, *at = tile;
	size_t bytes;

	for (; c < end; c += n, at += bytes) {
		x = slice_at(p, t, c, &n);
		if (n > end - c)
			n = end - c;
		bytes = (size_t)dtype_bytes(t->dtype, n);
		g = group + dtype_bytes(t->dtype, slice_before(own, t, x) - from);
		memmove(set ? g : at, set ? at : g, bytes);
	}
	return (size_t)(at - tile);
}
