/*
 * Logarithm and exponential from additions, multiplications and exact scaling only, so
 * that every machine computes the same bits; C libraries do not guarantee that.
 */
#ifndef ACE_DETMATH_H
#define ACE_DETMATH_H

/* detmath_log(x): natural logarithm, x > 0 and finite; relative error 1e-14. */
double detmath_log(double x);

/* detmath_exp(x): e^x; 0 below -700, no more than e^700 above. */
double detmath_exp(double x);

/* detmath_sigmoid(x): 1 / (1 + e^-x). */
double detmath_sigmoid(double x);

#endif
