/*
 * The arguments of codec names: "topk:0.01", "topk:1%", "qsgd:7".
 */
#ifndef ACE_ARG_H
#define ACE_ARG_H

struct err;

/* arg_fraction(s, v, e): 0 < v <= 1, or a percentage.  -ERR_USAGE. */
int arg_fraction(const char *s, float *v, struct err *e);

/* arg_number(s, lo, hi, v, e): a number with lo <= v <= hi. */
int arg_number(const char *s, float lo, float hi, float *v, struct err *e);

/* arg_print(v, buf): ":" and the shortest number that reads back as v. */
void arg_print(float v, char buf[24]);

#endif
