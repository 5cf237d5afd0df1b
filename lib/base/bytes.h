/*
 * Conversion of bytes to numbers and back. Streams are little-endian and are read
 * through struct bytes, which knows its end: a read past the end returns zero and sets
 * `bad', so that a parser checks once, after its last field.
 */
#ifndef ACE_BYTES_H
#define ACE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return the length in bytes of the control character (UTF-8) at the beginning of s, or
 * 0. Control characters are those that a terminal obeys, that are invisible, or that
 * reverse the text: U+0000 to U+001F, U+007F to U+009F, U+2028, U+2029, U+FFF9 to U+FFFB,
 * and Default_Ignorable_Code_Point of Unicode except U+200C and U+200D, which join
 * letters. A byte that does not begin a valid UTF-8 sequence (RFC 3629) is a control
 * character of length 1, since a terminal may take it for a C1 control character. */
size_t bytes_unseen(const unsigned char *s, size_t n);
/* Replace each byte of the control characters in the string s by '?'. */
void bytes_clean(char *s);

/* Return the length of the UTF-8 character whose first byte is c. */
static inline size_t
bytes_utf8(unsigned char c)
{
	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static inline uint16_t
bytes_le16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t
bytes_le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	    (uint32_t)p[3] << 24;
}

static inline uint64_t
bytes_le64(const unsigned char *p)
{
	return (uint64_t)bytes_le32(p) | (uint64_t)bytes_le32(p + 4) << 32;
}

/* Compilers combine the loads above into one, but not always stores. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_SET(p, v, swapped) memcpy((p), &(v), sizeof(v))
#else
#define BYTES_SET(p, v, swapped) ((v) = (swapped), memcpy((p), &(v), sizeof(v)))
#endif

static inline void
bytes_set16(unsigned char *p, uint16_t v)
{
	(void)BYTES_SET(p, v, __builtin_bswap16(v));
}

static inline void
bytes_set32(unsigned char *p, uint32_t v)
{
	(void)BYTES_SET(p, v, __builtin_bswap32(v));
}

static inline void
bytes_set64(unsigned char *p, uint64_t v)
{
	(void)BYTES_SET(p, v, __builtin_bswap64(v));
}

#undef BYTES_SET

static inline float
bytes_f32(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint32_t
bytes_u32(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline void
bytes_set_f64(unsigned char *p, double v)
{
	uint64_t u;

	memcpy(&u, &v, sizeof(u));
	bytes_set64(p, u);
}

/* 1: numbers in memory have the byte order of streams. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_LITTLE 1
#else
#define BYTES_LITTLE 0
#endif

/* Convert n floats to 4 * n little-endian bytes and back; on little-endian machines this
 * is a memcpy. */
void bytes_put_f32(unsigned char *p, const float *x, size_t n);
void bytes_get_f32(float *x, const unsigned char *p, size_t n);

/* Parser state in n bytes at p: the next byte is p[at]. */
struct bytes {
	const unsigned char *p;
	size_t n, at;
	int bad;		/* 1: a read went past the end, or its bytes are not valid */
};
#define BYTES(ptr, len) { (ptr), (len), 0, 0 }

/* Return the next n bytes; NULL if fewer are left or b->bad is set. */
const unsigned char *bytes_take(struct bytes *b, size_t n);
uint8_t bytes_u8(struct bytes *b);
uint16_t bytes_u16(struct bytes *b);
uint32_t bytes_next32(struct bytes *b);
uint64_t bytes_next64(struct bytes *b);
double bytes_f64(struct bytes *b);
uint64_t bytes_varint(struct bytes *b);	/* reads LEB128, shortest form only */
int bytes_zero(struct bytes *b, size_t n);	/* takes n bytes; 1: there are n, all 0 */

/* Write v in at most 10 bytes and return their number. */
size_t bytes_set_varint(unsigned char *p, uint64_t v);

#endif
