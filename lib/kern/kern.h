/*
 * The inner loops.  kern_ref.c is the meaning of each; every other table gives
 * the same bits, so streams are byte-identical on every machine.
 *
 * Sums run in 16 lanes: lane[i % 16] += term(i), f64 where the name says f64;
 * then the lanes fold by halves (lane[j] += lane[j + 8], 4, 2, 1).
 *
 * NaN: a conversion keeps the sign and the top bits of the payload and makes
 * the NaN quiet (what the hardware does); where add_scaled, sub and narrow
 * give a NaN it is 7fc00000.  The payload of a NaN in axpy64's accumulator is
 * not promised.
 *
 * kern sees base and nothing else.
 */
#ifndef ACE_KERN_H
#define ACE_KERN_H

#include <stddef.h>
#include <stdint.h>

struct err;

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

	/* one pass over x[n] */
	void (*stat)(const float *x, size_t n, struct kern_stat *s);
	/* the bits of the largest magnitude; 0x7f800000 and above: some value
	 * is not finite; 0 for n = 0 */
	uint32_t (*max_bits)(const float *x, size_t n);
	/* index of the first value that is not finite, or n */
	size_t (*first_nonfinite)(const float *x, size_t n);
	/* acc[i] += w * x[i], in f64, product rounded before the sum */
	void (*axpy64)(double *acc, double w, const float *x, size_t n);
	/* y[i] = (float)acc[i], to nearest even */
	void (*narrow)(float *y, const double *acc, size_t n);
	/* y[i] = a[i] + g * b[i], f32, product rounded before the sum */
	void (*add_scaled)(float *y, const float *a, float g, const float *b,
	    size_t n);
	/* y[i] = a[i] - b[i] */
	void (*sub)(float *y, const float *a, const float *b, size_t n);
	/* to nearest even; overflow gives infinity */
	void (*to_f16)(uint16_t *h, const float *x, size_t n);
	void (*from_f16)(float *x, const uint16_t *h, size_t n);
	void (*to_bf16)(uint16_t *h, const float *x, size_t n);
	void (*from_bf16)(float *x, const uint16_t *h, size_t n);
};

/*
 * kern_get(e): the best table this machine runs, or the one ACE_KERNEL names;
 * NULL with -ERR_USAGE's message when the name is unknown or cannot run here.
 */
const struct kern *kern_get(struct err *e);

/* The tables compiled in that this machine can run, NULL-ended, ref first. */
const struct kern *const *kern_list(void);

#endif
