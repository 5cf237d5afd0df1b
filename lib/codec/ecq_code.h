/*
 * The coded part of an ECQ body (ecq.c): rANS words from its start, bits from its end.
 *
 * Magnitudes become symbols (kern/kern_ecq.h), and symbols become rANS words; the number
 * of coder states depends on the length. The rest is plain bits. A chunk of 16 values has
 * first the signs of its non-zero symbols, then for each value
 *
 *   the escape, where the symbol is 15:  with e = (|q| >> shift) - 15, the number
 *       (e >> fine) + 1 as a 1 for each bit below its first, a 0, and these bits;
 *       then the lowest `fine' bits of e
 *   the lowest `shift' bits of |q|
 *   the sign, where the symbol is 0 and |q| is not
 *   the 31 bits of |x| as f32, where |q| is KERN_QMAX
 *
 * The coder's initial states hold the first 16 of these bits per state; the others follow the
 * states, from the end of the body. A state is w in 4 bits and the 16 + w bits below its first 1.
 */
#ifndef ACE_ECQ_CODE_H
#define ACE_ECQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "kern/kern_ecq.h"

struct codec_ctx;
struct err;

enum { ECQ_CENTROIDS = 3, ECQ_STATES = 4, ECQ_FINE = 14 };	/* largest `states', `fine' */

/* The side information before the code. In this folder `two' is 1 for TCQ, 0 for ECQ.  k is |q|,
 * u is the quantiser of TCQ (kern_tcq.h); for ECQ read k in place of 2 k - u. */
struct ecq_side {
	/* for each quantiser, the mean of |x| / step - (2 k - u) over the values with k =
	 * 1 (in 2^-8; TCQ 2^-7), k = 2, and k >= 3 (in 2^-5; TCQ 2^-4) */
	int8_t delta[2][ECQ_CENTROIDS];
	uint8_t level;		/* level of the first values' mean |q|, or lower */
	uint8_t mode;		/* enum kern_ecq_mode */
	uint8_t states;		/* binary logarithm of the number of states */
	uint8_t top;		/* greatest symbol; 0: all values are 0 */
	uint8_t fine;		/* number of low bits of each escape that are stored as they are */
};

struct ecq_in {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	const int16_t *q;	/* [n], not all 0; NULL for TCQ, which computes its own */
	const float *x;		/* [n] */
	size_t n;
	float step, inv;	/* inv: 1 / step */
	float *y;		/* [n] or NULL: receives the decoded values */
};

/* Return sum / n / 2^unit, rounded and clamped to the range of delta[][j]; 0 if n is 0. */
int8_t ecq_code_mean(int64_t sum, uint32_t n, int unit, unsigned j);

/* Set of[u][min(k, 3)] to the deltas of quantiser u, for ecq_decoded of kern.h. */
void ecq_code_delta(const struct ecq_side *s, unsigned two,
    float of[2][ECQ_CENTROIDS + 1]);

static inline uint32_t
magnitude(int16_t q)
{
	return (uint32_t)(q < 0 ? -q : q);
}

/* Return the decoded magnitude of |q| = k of quantiser u; of: set by ecq_code_delta. */
static inline float
ecq_code_value(uint32_t k, unsigned u, float of[2][ECQ_CENTROIDS + 1], float step,
    unsigned two)
{
	return k == 0 ? 0 : ((float)(int32_t)((k << two) - u) +
	    of[u][k < ECQ_CENTROIDS ? k : ECQ_CENTROIDS]) * step;
}

/* Choose the mode and level that take the fewest bits for a sample or for all values, and
 * the number of states; in->x is not used. Return 0 or -ERR_SYS. */
int ecq_code_pick(const struct ecq_in *in, struct ecq_side *s, struct err *e);

/* Write the code to p, which has room for limit bytes, and fill s. *len is its size in
 * bytes, or 0 if it might exceed limit. Return 0 or -ERR_SYS. */
int ecq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e);

/* Extra bytes of `raw' below: a chunk's bits, zeros for the states, and a few more. */
enum { ECQ_CODE_RAW = 9 * KERN_ECQ_LANES + 128 };

/* Write the code as ecq_code_put does, given the codes of in->q, and s except `fine'.
 * span has room for n + 16 spans, raw for limit + ECQ_CODE_RAW bytes. Return the size in
 * bytes, or 0 if it might exceed limit. */
size_t ecq_code_write(const struct ecq_in *in, struct ecq_side *s,
    const uint16_t *code, uint32_t *span, unsigned char *raw, unsigned char *p,
    size_t limit, unsigned two);

struct ecq_out {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	float *x;		/* [n] */
	size_t n;
	float step;
};

/* Decode p[len] into out->x. Return 1; 0 if this is not the code of n values; or -ERR_SYS. */
int ecq_code_get(const struct ecq_out *out, const struct ecq_side *s,
    unsigned two, const unsigned char *p, size_t len, struct err *e);

#endif
