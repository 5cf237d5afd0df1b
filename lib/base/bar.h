/*
 * A progress line on the terminal. It is not shown if standard error is not a terminal,
 * with -q, or for work that ends soon.
 */
#ifndef ACE_BAR_H
#define ACE_BAR_H

#include <stdint.h>

struct cli;

struct bar {
	int on, drawn;
	double since, last;
};

/* Start the progress of program c; NULL: show nothing. */
void bar_begin(struct bar *b, const struct cli *c);
/* Show that `done' of `all' is done; all 0: unknown. unit: "B" for bytes, or a word.
 * May be called at any rate. */
void bar_show(struct bar *b, uint64_t done, uint64_t all, const char *unit);
/* Remove the line. */
void bar_end(struct bar *b);

#endif
