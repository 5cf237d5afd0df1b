/*
 * Logarithm and exponential, made of additions, multiplications and exact
 * scaling only, so that every machine gets the same bits; the functions of a C
 * library do not promise that.
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
