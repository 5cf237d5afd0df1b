/*
 * Functions of kern_ref.c that the other tables call: kernels, for values that do not fill a
 * vector, and parts of kernels.
 */
#ifndef ACE_KERN_REF_H
#define ACE_KERN_REF_H

#include "kern/kern.h"

enum { KERN_LANES = 16 };

/* kern_stat's sums before the lanes are folded. */
struct kern_lanes {
	double sum[KERN_LANES], sumsq[KERN_LANES], sumabs[KERN_LANES];
	uint32_t max_bits;
	uint64_t nonzero, nonfinite;
};

/* Add x[i0..n) to the lanes; i0 % 16 == 0. */
void kern_ref_lanes(const float *x, size_t i0, size_t n, struct kern_lanes *l);
void kern_ref_fold(const struct kern_lanes *l, struct kern_stat *s);

uint32_t kern_ref_max_bits(const float *x, size_t n);
/* Like at_least, for x[i0..n). */
size_t kern_ref_at_least(uint32_t *at, const float *x, size_t i0, size_t n, uint32_t t);
void kern_ref_axpy64(double *acc, double w, const float *x, size_t n);
void kern_ref_narrow(float *y, const double *acc, size_t n);
void kern_ref_add_scaled(float *y, const float *a, float g, const float *b, size_t n);
void kern_ref_to_f16(uint16_t *h, const float *x, size_t n);
void kern_ref_from_f16(float *x, const uint16_t *h, size_t n);
void kern_ref_q8(unsigned char *p, const float *x, size_t n);
void kern_ref_unq8(float *x, const unsigned char *p, size_t n);
void kern_ref_sign(unsigned char *p, const float *x, size_t n);
void kern_ref_unsign(float *x, const unsigned char *p, size_t n);
/* Like split and join, for x[i0..n). */
void kern_ref_split(unsigned char *p, const float *x, size_t i0, size_t n);
void kern_ref_join(float *x, const unsigned char *p, size_t i0, size_t n);
void kern_ref_deadzone(int16_t *q, const float *x, size_t n, float inv,
    float dead, float r);

/* Return the bf16 scale of a block, m / -128, limited to KERN_Q8_TOP in magnitude. */
uint16_t kern_ref_scale(float m);
/* Return the scale of a sign block of n values, given the lanes' partial sums of |x|. */
uint16_t kern_ref_sign_scale(const double lane[KERN_LANES], size_t n);

#endif
