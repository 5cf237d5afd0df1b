/*
 * Logarithm and exponential from the four basic operations, floor and exact scaling only,
 * so that every machine computes the same bits; C libraries do not guarantee that.
 */
#ifndef ACE_DETMATH_H
#define ACE_DETMATH_H

/* Return the natural logarithm of x > 0, finite, with a relative error of at most 1e-14. */
double detmath_log(double x);

/* Return e^x; 0 for x below -700, e^700 for x above 700. */
double detmath_exp(double x);

/* Return the sigmoid 1 / (1 + e^-x). */
double detmath_sigmoid(double x);

#endif
