/*
 * The two elementary functions the mathematics here needs, from additions,
 * multiplications and exact scaling only: the same bits on every machine,
 * which a C library's do not promise.
 */
#ifndef ACE_ELEM_H
#define ACE_ELEM_H

/* elem_log(x): natural logarithm, x > 0 and finite; relative error 1e-14. */
double elem_log(double x);

/* elem_exp(x): e^x; 0 below -700, no more than e^700 above. */
double elem_exp(double x);

/* elem_sigmoid(x): 1 / (1 + e^-x). */
double elem_sigmoid(double x);

#endif
