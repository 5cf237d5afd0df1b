#include "base/bytes.h"
#include "codec/rice.h"
#include "codec/sparse.h"

enum { MAG = 0x7fff, UP = 0x8000, MOST_HALF = 0xffff, MOST_CODE = 15 };

size_t
sparse_bound(size_t k, size_t n, unsigned width)
{
	return 2 + rice_bound(k, (uint32_t)n) + (width == SPARSE_HALF ?
	    rice_bound(k, MOST_HALF) : width == 4 ? rice_bound(k, MOST_CODE) :
	    k * width / 8 + 1);
}

static void
start(const struct sparse *s, struct rice *gap, struct rice *code)
{
	*gap = rice_start(s->n / s->k, (uint32_t)s->n);
	*code = s->width == SPARSE_HALF ? rice_start(512, MOST_HALF) :
	    rice_start(4, MOST_CODE);
}

/* The end that most are near to: the largest h, or (bit 15 set) the least. */
static unsigned
end_of(const struct sparse *s)
{
	unsigned low = MAG, high = 0, h;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < s->k; i++) {
		h = s->code[i] & MAG;
		low = h < low ? h : low;
		high = h > high ? h : high;
		sum += h;
	}
	return 2 * sum > (uint64_t)s->k * (low + high) ? high : low | UP;
}

size_t
sparse_put(unsigned char *p, const struct sparse *s)
{
	struct bits w = { .p = p };
	struct rice gap, code;
	uint32_t next = 0, c;
	unsigned m = 0;
	size_t i;

	if (s->width == SPARSE_HALF) {
		bytes_set16(p, (uint16_t)(m = end_of(s)));
		w.p += 2;
	}
	start(s, &gap, &code);
	for (i = 0; i < s->k; i++) {
		rice_put(&w, &gap, s->pos[i] - next);
		next = s->pos[i] + 1;
		c = s->code[i];
		if (s->width == SPARSE_HALF)
			rice_put(&w, &code, 2 * (m & UP ? (c & MAG) - (m & MAG) :
			    m - (c & MAG)) + (c >> 15));
		else if (s->width == 4)
			rice_put(&w, &code, c);
		else
			put_bits(&w, c, s->width);
	}
	return (size_t)(rice_put_end(&w) - p);
}

int
sparse_get(struct bytes *b, struct sparse *s)
{
	const unsigned m = s->width == SPARSE_HALF ? bytes_u16(b) : 0;
	struct rice_in in = rice_open(b);
	struct rice gap, code;
	uint64_t next = 0, c, h;
	size_t i;

	start(s, &gap, &code);
	for (i = 0; i < s->k && !in.bad; i++) {
		s->pos[i] = rice_gap(&in, &gap, &next, s->n);
		if (s->width == SPARSE_HALF) {
			c = rice_get(&in, &code);
			h = m & UP ? (m & MAG) + c / 2 : m - c / 2;
			in.bad |= h > MAG;
			c = (c & 1) << 15 | h;
		} else if (s->width == 4) {
			c = rice_get(&in, &code);
			in.bad |= c > MOST_CODE;
		} else
			c = rice_get_bits(&in, s->width);
		s->code[i] = (uint16_t)c;
	}
	return rice_close(&in, b);
}
