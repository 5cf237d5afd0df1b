/*
 * The kernels `marks', `ranked' and `marked' of every table, compiled for the instruction
 * set of the including file.
 */
#ifndef ACE_KERN_MARKS_H
#define ACE_KERN_MARKS_H

#if defined(__AVX2__)
#include <immintrin.h>
#endif
#include <string.h>

#include "base/bytes.h"

/* Return a word whose bit i is 1 if p[i] is v, for 64 bytes. */
static inline uint64_t
kern_marks_of(const unsigned char *p, unsigned char v)
{
#if defined(__AVX2__)
	const __m256i all = _mm256_set1_epi8((char)v);
	__m256i a = _mm256_loadu_si256((const void *)p);
	__m256i b = _mm256_loadu_si256((const void *)(p + 32));

	a = _mm256_cmpeq_epi8(a, all);
	b = _mm256_cmpeq_epi8(b, all);
	return (uint32_t)_mm256_movemask_epi8(a) |
	    (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
#else
	const uint64_t one = 0x0101010101010101u, low = 0x7f * one;
	uint64_t x, m = 0;
	unsigned k;

	for (k = 0; k < 64; k += 8) {
		x = bytes_le64(p + k) ^ one * v;
		/* each of the eight bytes becomes 1 if it was 0, else 0 */
		x = ~(((x & low) + low) | x | low) >> 7;
		m |= (x * 0x0102040810204080u >> 56) << k;
	}
	return m;
#endif
}

/* Return in each byte the number of 1 bits in that byte of m and all lower ones. */
static inline uint64_t
kern_marks_counts(uint64_t m)
{
	m -= m >> 1 & 0x5555555555555555u;
	m = (m & 0x3333333333333333u) + (m >> 2 & 0x3333333333333333u);
	m = (m + (m >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	return m * 0x0101010101010101u;
}

/* Return the number of 1 bits of m. */
static inline unsigned
kern_marks_count(uint64_t m)
{
#if defined(__POPCNT__)
	return (unsigned)__builtin_popcountll(m);
#else
	return (unsigned)(kern_marks_counts(m) >> 56);
#endif
}

static inline void
kern_marks(uint64_t *mark, uint32_t *before, const unsigned char *x, size_t n,
    unsigned char v)
{
	unsigned char last[64];
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n / 64; i++) {
		mark[i] = kern_marks_of(x + 64 * i, v);
		before[i] = sum;
		sum += kern_marks_count(mark[i]);
	}
	if (n % 64 != 0) {
		memset(last, (unsigned char)~v, sizeof(last));
		memcpy(last, x + 64 * i, n % 64);
		mark[i] = kern_marks_of(last, v);
		before[i] = sum;
		sum += kern_marks_count(mark[i++]);
	}
	before[i] = sum;
}

/* Return the index of the 1 bit of m that has k 1 bits below it; there is such a bit. */
static inline unsigned
kern_marks_bit(uint64_t m, unsigned k)
{
	const uint64_t one = 0x0101010101010101u, top = 0x80 * one;
	uint64_t upto = kern_marks_counts(m);
	/* 1 in each byte that ends before the bit, else 0 */
	uint64_t less = (((k * one | top) - upto) & top) >> 7;
	unsigned at = (unsigned)(less * one >> 56) * 8;

	k -= (unsigned)(upto << 8 >> at) & 255;
	for (m >>= at; k > 0; k--)
		m &= m - 1;
	return at + (unsigned)__builtin_ctzll(m);
}

static inline void
kern_ranked(uint32_t *place, size_t c, const uint64_t *mark, const uint32_t *before)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < c; i++) {
		p = place[i];
		place[i] = before[p / 64] + kern_marks_count(mark[p / 64] &
		    (((uint64_t)1 << p % 64) - 1));
	}
}

/* If there are many ranks, find the word of each rank in a table, which is filled for 64 words
 * at once. A search would take branches that processors cannot predict. */
static inline void
kern_marked(uint32_t *rank, size_t c, const uint64_t *mark, const uint32_t *before, size_t n)
{
	enum { WORDS = 64, FEW = 8 };
	typedef unsigned char lanes __attribute__((vector_size(64)));
	unsigned char in[WORDS * 64 + 64];
	uint32_t r;
	size_t i, j, k;

	for (i = j = 0; i < c && c < n / 64 / FEW; i++) {
		while (before[j + 1] <= rank[i])
			j++;
		rank[i] = (uint32_t)(64 * j + kern_marks_bit(mark[j],
		    rank[i] - before[j]));
	}
	for (j = 0; i < c; j += k, before += k, mark += k) {
		for (k = 0; k < WORDS && before[k] <= rank[c - 1]; k++) {
			const lanes all = (lanes){ 0 } + (unsigned char)k;

			memcpy(in + (before[k] - before[0]), &all, sizeof(all));
		}
		for (; i < c && rank[i] < before[k]; i++) {
			r = rank[i] - before[0];
			rank[i] = (uint32_t)(64 * (j + in[r]) + kern_marks_bit(mark[in[r]],
			    rank[i] - before[in[r]]));
		}
	}
}

#endif
