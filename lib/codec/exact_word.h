/* Size and layout of the words of codec exact. */
#ifndef ACE_EXACT_WORD_H
#define ACE_EXACT_WORD_H

#include <stdint.h>

#include "base/bytes.h"

struct form {
	uint8_t size, bits;	/* size: bytes of a word; bits: bits in use */
	uint8_t mantissa, exponent;	/* widths in bits; both 0: all words have level 0 */
	uint8_t sign;		/* 1: the highest bit is a sign */
};

static inline uint64_t
word(const unsigned char *p, unsigned size)
{
	return size == 1 ? p[0] : size == 2 ? bytes_le16(p) :
	    size == 4 ? bytes_le32(p) : bytes_le64(p);
}

static inline void
set_word(unsigned char *p, unsigned size, uint64_t v)
{
	if (size == 1)
		p[0] = (unsigned char)v;
	else if (size == 2)
		bytes_set16(p, (uint16_t)v);
	else if (size == 4)
		bytes_set32(p, (uint32_t)v);
	else
		bytes_set64(p, v);
}

static inline uint64_t
all_bits(const struct form *f)
{
	return UINT64_MAX >> (64 - f->bits);
}

static inline uint64_t
sign_bit(const struct form *f)
{
	return (uint64_t)1 << (f->bits - 1);
}

static inline int
negative(const struct form *f, uint64_t v)
{
	return f->sign && (v & sign_bit(f)) != 0;
}

/* Return the rank of v among all words, which are ordered like floats if f->sign is 1, otherwise
 * as unsigned numbers. There are no branches, because signs are hard to predict. */
static inline uint64_t
place(const struct form *f, uint64_t v)
{
	const uint64_t minus = 0 - (v >> (f->bits - 1) & 1);

	return f->sign ? v ^ (sign_bit(f) | (minus & all_bits(f))) : v;
}

static inline uint64_t
at_place(const struct form *f, uint64_t v)
{
	const uint64_t minus = (v >> (f->bits - 1) & 1) - 1;

	return f->sign ? v ^ (sign_bit(f) | (minus & all_bits(f))) : v;
}

static inline unsigned
exponent(const struct form *f, uint64_t v)
{
	return (unsigned)(v >> f->mantissa) & ((1u << f->exponent) - 1);
}

#endif
