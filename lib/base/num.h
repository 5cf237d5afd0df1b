/*
 * Parse numbers of options, tables and stream keys. The whole of s must be a number, else
 * -ERR_USAGE with s in the message; `what' names the value in the message.
 */
#ifndef ACE_NUM_H
#define ACE_NUM_H

#include <stdint.h>

struct err;

int num_u64(uint64_t *v, const char *s, uint64_t lo, uint64_t hi,
    const char *what, struct err *e);
int num_f64(double *v, const char *s, double lo, double hi, const char *what,
    struct err *e);	/* decimal, lo <= v <= hi */
/* num_read: strtod(3) in the C locale.  num_strtod: like num_f64 without a message, for text in
 * streams; accept every form that strtod(3) does. */
double num_read(const char *s, char **end);
int num_strtod(double *v, const char *s, double lo, double hi);
int num_size(uint64_t *v, const char *s, const char *what, struct err *e);
					/* bytes: 10, 4k, 1.5M, 64Ki, 2Gi */
int num_rate(double *v, const char *s, const char *what, struct err *e);
					/* bit/s: 5Mbit, 200kbit, 1Gbit */
/* Copy the next item of a list separated by commas to word, and move *list past it (NULL
 * after the last). Return 1, 0 if *list is NULL, or -ERR_USAGE if the item is too long. */
enum { NUM_ITEM = 64 };
int num_item(const char **list, char word[NUM_ITEM], const char *what, struct err *e);
/* Format v >= 0 with up to three significant digits and a prefix up to P: "8 bit/s", "12.3 kB";
 * from 1000 P on without a fraction. Return out. */
enum { NUM_TEXT = 48 };
const char *num_text(double v, const char *unit, char out[NUM_TEXT]);
int num_time(double *v, const char *s, const char *what, struct err *e);
					/* seconds: 10ms, 1.5s, 2m; no unit: s */
/* Set *v to the index of s in names, which NULL ends. If s is not there, the message
 * lists the names. */
int num_choice(int *v, const char *s, const char *const *names,
    const char *what, struct err *e);

#endif
