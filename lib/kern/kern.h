/*
 * The kernels (inner loops): one table of functions per kind of processor.  The table ref, in
 * plain C (kern_ref.c, kern_ecq.c, kern_tcq.c), defines what each function computes; every
 * other table gives the same bits, so that streams are identical on every machine.
 *
 * Sums use 16 lanes: lane[i % 16] += term(i), in f64 where stated; then the lanes are
 * folded by halves (lane[j] += lane[j + 8], 4, 2, 1).
 *
 * NaN: a conversion keeps the sign and the top bits of the payload and makes the NaN quiet,
 * as the hardware does.  add_scaled and narrow return 7fc00000 for a NaN.  The payload
 * of a NaN in axpy64's accumulator is undefined.
 *
 * Files in kern include only those of base and kern.
 */
#ifndef ACE_KERN_H
#define ACE_KERN_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct kern_ecq;
struct kern_ecq_get;
struct kern_ecq_sorted;
struct kern_tcq;
struct kern_tcq_walk;

struct kern_stat {
	double sum;		/* the sum of x, in f64 lanes */
	double sumsq;		/* the sum of (double)x * x, in f64 lanes */
	double sumabs;		/* the sum of |x|, in f64 lanes */
	float max_abs;		/* largest |x|; 0 if there is none */
	uint64_t nonzero;	/* number of finite values that are not 0 */
	uint64_t nonfinite;	/* number of values not finite; the members above omit these */
};

struct kern {
	const char *name;	/* "ref", "avx2", "avx512", "neon" */

	/* compute *s of x[n] in one pass */
	void (*stat)(const float *x, size_t n, struct kern_stat *s);
	/* return the largest magnitude in x[n] as the bits of an f32: 0x7f800000 or more
	 * if a value is not finite, 0 for n = 0 */
	uint32_t (*max_bits)(const float *x, size_t n);
	/* store in `at' the rising positions i with (bits of x[i] without the sign) >= t;
	 * return their number; `at' has room for n + 1 */
	size_t (*at_least)(uint32_t *at, const float *x, size_t n, uint32_t t);
	/* acc[i] += w * x[i] in f64, the product rounded before the sum */
	void (*axpy64)(double *acc, double w, const float *x, size_t n);
	/* y[i] = (float)acc[i], to nearest even */
	void (*narrow)(float *y, const double *acc, size_t n);
	/* y[i] = a[i] + g * b[i] in f32, the product rounded before the sum */
	void (*add_scaled)(float *y, const float *a, float g, const float *b, size_t n);
	/* convert n values from f32 to f16, to nearest even, overflow to infinity;
	 * from_f16: the inverse, exact */
	void (*to_f16)(uint16_t *h, const float *x, size_t n);
	void (*from_f16)(float *x, const uint16_t *h, size_t n);

	/*
	 * q8: code blocks of 32 values as a scale s and codes c of 8 bits, x ~ s * c.  With m
	 * the value of largest magnitude (of x and -x, the negative one):
	 *
	 *   s = bf16(m / -128), at most KERN_Q8_TOP in magnitude
	 *   c = x / s, to nearest even, limited to -128..127
	 *
	 * So m gets the code -128, which has no positive counterpart (as in ggml's q4_0).
	 * If s = 0, all codes are 0.  A block is s, little-endian, and the codes; the last
	 * block may be short.  p has KERN_Q8_SIZE(n) bytes.  x must be finite; unq8 needs
	 * scales of at most KERN_Q8_TOP in magnitude.
	 */
	void (*q8)(unsigned char *p, const float *x, size_t n);
	void (*unq8)(float *x, const unsigned char *p, size_t n);
	/* sign: code blocks of 256 values as the bf16 of the mean magnitude (f64 lanes), at
	 * most KERN_SIGN_TOP, and the sign bits, least significant first. */
	void (*sign)(unsigned char *p, const float *x, size_t n);
	void (*unsign)(float *x, const unsigned char *p, size_t n);
	/* A uniform quantiser with a dead zone.  With a = |x| * inv in f32, q = sign(x) *
	 * trunc(a + r), or 0 if a < dead; |q| is at most KERN_QMAX.  0 <= r <= 0.5, dead
	 * + r >= 1. */
	void (*deadzone)(int16_t *q, const float *x, size_t n, float inv,
	    float dead, float r);

	/* rotate the bits of each x left by one and store its four bytes in four planes of
	 * n bytes, the most significant first; join: the inverse */
	void (*split)(unsigned char *p, const float *x, size_t n);
	void (*join)(float *x, const unsigned char *p, size_t n);

	/* mark each x[i] equal to v: set bit i % 64 of mark[i / 64].  Set before[j] to the
	 * number of marks in the words before mark[j]; before[(n + 63) / 64] is the number
	 * of all marks */
	void (*marks)(uint64_t *mark, uint32_t *before, const unsigned char *x,
	    size_t n, unsigned char v);

	/* ranked: replace each of c places by the number of marks before it.  marked: the
	 * inverse: replace each of c rising numbers k by the place, below n, of mark k,
	 * which must exist */
	void (*ranked)(uint32_t *place, size_t c, const uint64_t *mark,
	    const uint32_t *before);
	void (*marked)(uint32_t *rank, size_t c, const uint64_t *mark,
	    const uint32_t *before, size_t n);

	/* Passes of ECQ; kern_ecq.h explains the terms. A model m is given after
	 * kern_ecq_start and, except to ecq_sort, after kern_ecq_tables. */
	/* for each t[0] to t[k - 1], which have independent models, compute the codes of q[n]
	 * and the greatest symbol; k is 1 to 3 */
	void (*ecq_sort)(struct kern_ecq_sorted *t, unsigned k,
	    const int16_t *q, size_t n);
	/* set span[i] to the first slot of code[i]'s symbol, plus its number of slots << 16 */
	void (*ecq_spans)(struct kern_ecq *m, const uint16_t *code, size_t n,
	    uint32_t *span);
	/* encode the values from the last to the first, value i into state[i % states].
	 * Write words downwards from w; return the address of the first word */
	unsigned char *(*ecq_put)(uint32_t *state, unsigned states,
	    const uint32_t *span, size_t n, unsigned char *w);
	/* decode all n codes from what ecq_put wrote; return 0, or -1 if words are missing */
	int (*ecq_get)(struct kern_ecq *m, struct kern_ecq_get *g,
	    uint16_t *code, size_t n);
	/* for each chunk i of ECQ or TCQ set mark[i] to the signs of its non-zero symbols (0
	 * if q is NULL), plus their number << 16, plus 1 << 24 if a value has plain bits
	 * besides the sign, as all symbols >= escape have */
	void (*ecq_marks)(const uint16_t *code, const int16_t *q, size_t n,
	    uint32_t *mark, unsigned escape);
	/* for each four values of a chunk without escapes, set low[] to their plain bits
	 * (codec/ecq_code.h) except the signs of non-zero symbols, and bits[] to the number
	 * of these bits; two: 1 for TCQ */
	void (*ecq_low)(const int16_t q[16], const uint16_t code[16], unsigned two,
	    uint64_t low[4], uint64_t bits[4]);
	/* x[i] = of[symbol of code[i]], with the sign from mark[i / 16] */
	void (*ecq_values)(float *x, const uint16_t *code,
	    const uint32_t *mark, size_t n, const float of[16]);
	/* with j = min(|q|, 3) - 1, for 0 < |q| < KERN_QMAX: add the integer part of
	 * 2^16 (|x| * inv - |q|) to sum[j] and 1 to count[j] */
	void (*ecq_centers)(const int16_t *q, const float *x, size_t n,
	    float inv, int64_t sum[3], uint32_t count[3]);
	/* compute the decoded values of q[n]: y[i] = (|q[i]| + delta[min(|q[i]|, 3)]) *
	 * step with the sign of q[i]; 0 for 0, x[i] for KERN_QMAX */
	void (*ecq_decoded)(float *y, const int16_t *q, const float *x, size_t n,
	    const float delta[4], float step);

	/* Passes of TCQ (kern_tcq.h). tcq_sort: compute the codes of q[n], return the
	 * greatest symbol. tcq_spans, tcq_get: like those of ECQ. tcq_walk: choose the
	 * q[n] of least cost. tcq_values: like ecq_values, with of[16] for each
	 * quantiser */
	unsigned (*tcq_sort)(struct kern_tcq *m, const int16_t *q, size_t n,
	    uint16_t *code);
	void (*tcq_spans)(struct kern_tcq *m, const uint16_t *code, size_t n,
	    uint32_t *span);
	int (*tcq_get)(struct kern_tcq *m, struct kern_ecq_get *g,
	    uint16_t *code, size_t n);
	void (*tcq_walk)(const struct kern_tcq_walk *w, int16_t *q);
	void (*tcq_values)(float *x, const uint16_t *code,
	    const uint32_t *mark, size_t n, const float of[32]);
};

/* Return the index of the first value that is not finite, or n. */
size_t kern_first_nonfinite(const float *x, size_t n);

#define KERN_QMAX 32767		/* largest |q|; a value with this |q| is stored as f32 */

enum { KERN_QBLOCK = 32, KERN_SIGN_BLOCK = 256 };	/* values per block of q8, of sign */

/* Largest scales, as bf16, whose product with the largest code is finite. */
#define KERN_Q8_TOP 0x7bffu
#define KERN_SIGN_TOP 0x7f7fu

/* Bytes that q8 and sign write for n values. */
#define KERN_Q8_SIZE(n) (((n) + 31) / 32 * 2 + (n))
#define KERN_SIGN_SIZE(n) (((n) + 255) / 256 * 2 + ((n) + 7) / 8)

/* Return the fastest table that this machine can run, or the table that the environment
 * names in ACE_KERNEL.  Return NULL with ERR_USAGE if that name is unknown or its table
 * cannot run here. */
const struct kern *kern_get(struct err *e);

/* Return the name of kern_get's table, NULL if kern_get fails. */
const char *kern_name(void);

/* Return the compiled tables that this machine can run, ref first, ended by NULL. */
const struct kern *const *kern_list(void);

/* The tables; name is NULL if the build does not have the instruction set. */
extern const struct kern kern_ref, kern_avx2, kern_avx512, kern_neon;

#endif
