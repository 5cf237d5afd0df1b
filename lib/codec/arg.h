/* The arguments of codec names: "topk:0.01", "topk:1%", "qsgd:7". */
#ifndef ACE_ARG_H
#define ACE_ARG_H

struct err;

/* Parse s, a fraction or a percentage, into *v; 0 < *v <= 1. Return 0 or -ERR_USAGE. */
int arg_fraction(const char *s, float *v, struct err *e);

/* Parse the number s, which must be from lo to hi, into *v. Return 0 or -ERR_USAGE. */
int arg_number(const char *s, float lo, float hi, float *v, struct err *e);

/* Write ":" and the shortest decimal number that reads back as v. */
void arg_print(float v, char buf[24]);

#endif
