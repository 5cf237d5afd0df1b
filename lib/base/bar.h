/*
 * One line on a terminal that says how far a long work is; nothing at all where
 * standard error is no terminal, with -q, and where the work is done before
 * anybody could wonder.
 */
#ifndef ACE_BAR_H
#define ACE_BAR_H

#include <stdint.h>

struct cli;

struct bar {
	int on, drawn;
	double since, last;
};

/* bar_begin(b, c): the work of the program c begins; NULL: it says nothing. */
void bar_begin(struct bar *b, const struct cli *c);
/* bar_show(b, done, all, unit): so much of `all' is done; all 0: not known.
 * unit: "B" for bytes, or a word.  May be called as often as one likes. */
void bar_show(struct bar *b, uint64_t done, uint64_t all, const char *unit);
/* bar_end(b): takes the line away. */
void bar_end(struct bar *b);

#endif
