/*
 * The inner loops, as a table of functions for each kind of processor.
 * kern_ref.c, in plain C, defines what each function does; every other table
 * gives the same bits, so streams are byte-identical on every machine.
 *
 * Sums run in 16 lanes: lane[i % 16] += term(i), f64 where the name says f64;
 * then the lanes fold by halves (lane[j] += lane[j + 8], 4, 2, 1).
 *
 * NaN: a conversion keeps the sign and the top bits of the payload and makes
 * the NaN quiet (what the hardware does); where add_scaled, sub and narrow
 * give a NaN it is 7fc00000.  The payload of a NaN in axpy64's accumulator is
 * not promised.
 *
 * Files in kern include those of base and of kern only.
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
	double sum;		/* f64 lanes */
	double sumsq;		/* f64 lanes of (double)x*x */
	double sumabs;		/* f64 lanes */
	float max_abs;
	uint64_t nonzero;
	uint64_t nonfinite;	/* left out of all of the above */
};

struct kern {
	const char *name;	/* "ref", "avx2", "avx512", "neon" */

	/* fills *s from x[n], in one pass */
	void (*stat)(const float *x, size_t n, struct kern_stat *s);
	/* the largest magnitude in x[n], as the bits of an f32; 0x7f800000 or
	 * more means that some value is not finite; 0 for n = 0 */
	uint32_t (*max_bits)(const float *x, size_t n);
	/* index of the first value that is not finite, or n */
	size_t (*first_nonfinite)(const float *x, size_t n);
	/* the places of values whose bits without the sign are at least t, in
	 * rising order; at has room for n of them and one more */
	size_t (*at_least)(uint32_t *at, const float *x, size_t n, uint32_t t);
	/* acc[i] += w * x[i], in f64, product rounded before the sum */
	void (*axpy64)(double *acc, double w, const float *x, size_t n);
	/* y[i] = (float)acc[i], to nearest even */
	void (*narrow)(float *y, const double *acc, size_t n);
	/* y[i] = a[i] + g * b[i], f32, product rounded before the sum */
	void (*add_scaled)(float *y, const float *a, float g, const float *b,
	    size_t n);
	/* y[i] = a[i] - b[i] */
	void (*sub)(float *y, const float *a, const float *b, size_t n);
	/* n values of f32 to f16 or bf16, rounded to nearest even, overflow
	 * giving infinity; and back, which is exact */
	void (*to_f16)(uint16_t *h, const float *x, size_t n);
	void (*from_f16)(float *x, const uint16_t *h, size_t n);
	void (*to_bf16)(uint16_t *h, const float *x, size_t n);
	void (*from_bf16)(float *x, const uint16_t *h, size_t n);

	/*
	 * Blocks of 32: a scale s, then codes c of 8 or 4 bits, x ~ s * c.
	 * m is the value of largest magnitude (the negative one of two):
	 *
	 *   s = bf16(m / -128)  or  bf16(m / -8), cut to KERN_Q8_TOP, _Q4_TOP
	 *   c = x / s, to nearest even, cut to -128..127 or -8..7
	 *
	 * so m itself gets the most negative code, of which there is one more
	 * (ggml's q4_0); s = 0: all codes 0.  A block is s little-endian and
	 * the codes; 4-bit codes lie in pairs, the first one low.  The last
	 * block may be short: n values, KERN_Q8_SIZE(n) bytes.  x is finite;
	 * the scales of a block to decode are at most _TOP in magnitude.
	 */
	void (*q8)(unsigned char *p, const float *x, size_t n);
	void (*unq8)(float *x, const unsigned char *p, size_t n);
	void (*q4)(unsigned char *p, const float *x, size_t n);
	void (*unq4)(float *x, const unsigned char *p, size_t n);
	/*
	 * Blocks of 256: bf16 of the mean magnitude (f64 lanes), cut to the
	 * largest finite one, then the sign bits, least significant first.
	 */
	void (*sign)(unsigned char *p, const float *x, size_t n);
	void (*unsign)(float *x, const unsigned char *p, size_t n);
	/*
	 * A uniform quantiser with a dead zone, a = |x| * inv (f32):
	 * q = sign(x) * trunc(a + r), 0 where a < dead; at most KERN_QMAX.
	 * 0 <= r <= 0.5, dead + r >= 1.
	 */
	void (*deadzone)(int16_t *q, const float *x, size_t n, float inv,
	    float dead, float r);

	/* the bits of each x, rotated left by one, in four planes of n bytes,
	 * the upper ones first; and back */
	void (*split)(unsigned char *p, const float *x, size_t n);
	void (*join)(float *x, const unsigned char *p, size_t n);

	/* which of x[n] are v: bit i % 64 of mark[i / 64], and how many bits of
	 * mark are 1 before that word; the last of before[(n + 63) / 64 + 1] is
	 * how many there are */
	void (*marks)(uint64_t *mark, uint32_t *before, const unsigned char *x,
	    size_t n, unsigned char v);

	/* The passes of ECQ, whose words kern_ecq.h explains.  m has been
	 * started; all but the first pass need its tables too. */
	/* finds the code of each q[n], and the greatest symbol, by each of k
	 * models, which wait for themselves only; k is from 1 to 3 */
	void (*ecq_sort)(struct kern_ecq_sorted *t, unsigned k,
	    const int16_t *q, size_t n);
	/* for the symbol of each code its first slot, and the number of its
	 * slots << 16 */
	void (*ecq_spans)(struct kern_ecq *m, const uint16_t *code, size_t n,
	    uint32_t *span);
	/* encodes the values from the last to the first, value i into
	 * state[i % states]; the words are written downwards from w, and where
	 * they begin is returned */
	unsigned char *(*ecq_put)(uint32_t *state, unsigned states,
	    const uint32_t *span, size_t n, unsigned char *w);
	/* decodes all n codes from what ecq_put wrote; -1 when words are
	 * missing */
	int (*ecq_get)(struct kern_ecq *m, struct kern_ecq_get *g,
	    uint16_t *code, size_t n);
	/* a mark for each chunk, of ECQ or TCQ: the signs of its symbols that are
	 * not 0 (0 when q is NULL), how many those are << 16, and 1 << 24 when
	 * some code is not all of a value, as symbols from escape on never are */
	void (*ecq_marks)(const uint16_t *code, const int16_t *q, size_t n,
	    uint32_t *mark, unsigned escape);
	/* x[i] = of[symbol of code[i]], with the sign from the mark */
	void (*ecq_values)(float *x, const uint16_t *code,
	    const uint32_t *mark, size_t n, const float of[16]);
	/* adds 2^16 (|x| * inv - |q|), without its fraction, to sum[0, 1, 2]
	 * for |q| = 1, 2, 3 and more but KERN_QMAX, and 1 to the count */
	void (*ecq_centers)(const int16_t *q, const float *x, size_t n,
	    float inv, int64_t sum[3], uint32_t count[3]);
	/* what a reader makes of q[n]: y[i] = (|q[i]| + delta[min(|q[i]|, 3)])
	 * * step with the sign of q[i]; 0 for 0, and x[i] for KERN_QMAX */
	void (*ecq_decoded)(float *y, const int16_t *q, const float *x, size_t n,
	    const float delta[4], float step);

	/* The passes of TCQ, as kern_tcq.h explains: the codes of q[n] and the
	 * greatest symbol; their spans for ecq_put; all n codes from what that
	 * wrote, or -1; the q[n] of least cost; values as ECQ's, of[16] of each
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

#define KERN_QMAX 32767

enum { KERN_QBLOCK = 32, KERN_SIGN_BLOCK = 256 };

/* The largest scales whose product with the largest code is finite. */
#define KERN_Q8_TOP 0x7bffu
#define KERN_Q4_TOP 0x7dffu
#define KERN_SIGN_TOP 0x7f7fu

/* Bytes for n values. */
#define KERN_Q8_SIZE(n) (((n) + 31) / 32 * 2 + (n))
#define KERN_Q4_SIZE(n) (((n) + 31) / 32 * 2 + ((n) + 1) / 2)
#define KERN_SIGN_SIZE(n) (((n) + 255) / 256 * 2 + ((n) + 7) / 8)

/*
 * kern_get(e): the fastest table that this machine can run, or the one that
 * ACE_KERNEL in the environment names; NULL and e filled (ERR_USAGE) when that
 * name is unknown or its table cannot run here.
 */
const struct kern *kern_get(struct err *e);

/* kern_name(): the name of the table of kern_get; NULL where that fails. */
const char *kern_name(void);

/* The tables compiled in that this machine can run, NULL-ended, ref first. */
const struct kern *const *kern_list(void);

/* The tables; name is NULL where the build lacks the instruction set. */
extern const struct kern kern_ref, kern_avx2, kern_avx512, kern_neon;

#endif
