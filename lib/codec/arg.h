/*
 * The arguments of codec names: "topk:0.01", "topk:1%", "qsgd:7".
 */
#ifndef ACE_ARG_H
#define ACE_ARG_H

struct err;

/* arg_fraction(s, v, e): reads a fraction, 0 < v <= 1, which s may also give
 * as a percentage.  0, or -ERR_USAGE when s is neither. */
int arg_fraction(const char *s, float *v, struct err *e);

/* arg_number(s, lo, hi, v, e): reads a number with lo <= v <= hi.  0, or
 * -ERR_USAGE. */
int arg_number(const char *s, float lo, float hi, float *v, struct err *e);

/* arg_word(s, word, t): 1 when s ends with ":word", and what is before it, in t,
 * becomes *s; else 0. */
enum { ARG_WORD = 16 };
int arg_word(const char **s, const char *word, char t[ARG_WORD]);

/* arg_print(v, buf): writes ":" and the shortest decimal number that reads
 * back as v. */
void arg_print(float v, char buf[24]);

#endif
