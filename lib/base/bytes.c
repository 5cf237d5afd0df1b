#include "base/bytes.h"

void
bytes_put_f32(unsigned char *p, const float *x, size_t n)
{
	size_t i;

	if (BYTES_LITTLE) {
		if (n != 0)
			memcpy(p, x, n * 4);
		return;
	}
	for (i = 0; i < n; i++)
		bytes_set32(p + 4 * i, bytes_u32(x[i]));
}

void
bytes_get_f32(float *x, const unsigned char *p, size_t n)
{
	size_t i;

	if (BYTES_LITTLE) {
		if (n != 0)
			memcpy(x, p, n * 4);
		return;
	}
	for (i = 0; i < n; i++)
		x[i] = bytes_f32(bytes_le32(p + 4 * i));
}

size_t
bytes_unseen(const unsigned char *s, size_t n)
{
	static const struct { uint32_t lo, hi; } unseen[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f },
		{ 0x61c, 0x61c }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f }, { 0x200b, 0x200b }, { 0x200e, 0x200f },
		{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff }
	};
	uint32_t c;
	size_t i, k = 1;

	if (n == 0)
		return 0;
	c = s[0];
	if (c >= 0xc2 && c < 0xf5) {
		k = bytes_utf8(s[0]);
		c &= 0x7fu >> k;
	} else if (c >= 0x80) {
		return 1;	/* not UTF-8 */
	}
	if (k > n)
		return 1;
	for (i = 1; i < k; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* too long a form, a surrogate, or above the last character */
	if ((k == 3 && (c < 0x800 || c >> 11 == 0x1b)) ||
	    (k == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 1;
	for (i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++)
		if (c >= unseen[i].lo && c <= unseen[i].hi)
			return k;
	return 0;
}

void
bytes_clean(char *s)
{
	size_t n;

	for (; *s != '\0'; s += n != 0 ? n : bytes_utf8((unsigned char)*s)) {
		n = bytes_unseen((const unsigned char *)s, strlen(s));
		memset(s, '?', n);
	}
}

const unsigned char *
bytes_take(struct bytes *b, size_t n)
{
	const unsigned char *p;

	if (b->bad || n > b->n - b->at) {
		b->bad = 1;
		return NULL;
	}
	p = b->p + b->at;
	b->at += n;
	return p;
}

uint8_t
bytes_u8(struct bytes *b)
{
	const unsigned char *p = bytes_take(b, 1);

	return p != NULL ? p[0] : 0;
}

uint16_t
bytes_u16(struct bytes *b)
{
	const unsigned char *p = bytes_take(b, 2);

	return p != NULL ? bytes_le16(p) : 0;
}

uint32_t
bytes_next32(struct bytes *b)
{
	const unsigned char *p = bytes_take(b, 4);

	return p != NULL ? bytes_le32(p) : 0;
}

uint64_t
bytes_next64(struct bytes *b)
{
	const unsigned char *p = bytes_take(b, 8);

	return p != NULL ? bytes_le64(p) : 0;
}

double
bytes_f64(struct bytes *b)
{
	uint64_t u = bytes_next64(b);
	double d;

	memcpy(&d, &u, sizeof(d));
	return d;
}

uint64_t
bytes_varint(struct bytes *b)
{
	uint64_t v = 0;
	unsigned shift;
	uint8_t c;

	for (shift = 0; shift < 64; shift += 7) {
		c = bytes_u8(b);
		if (b->bad)
			return 0;
		if (shift == 63 && c > 1)
			break;
		v |= (uint64_t)(c & 0x7f) << shift;
		if ((c & 0x80) == 0) {
			if (c == 0 && shift != 0)
				break;		/* not in the shortest form */
			return v;
		}
	}
	b->bad = 1;
	return 0;
}

int
bytes_zero(struct bytes *b, size_t n)
{
	const unsigned char *p = bytes_take(b, n);
	size_t i;

	if (p == NULL)
		return 0;
	for (i = 0; i < n; i++)
		if (p[i] != 0)
			return 0;
	return 1;
}

size_t
bytes_set_varint(unsigned char *p, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (unsigned char)v;
	return n;
}
