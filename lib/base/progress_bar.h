/*
 * A progress line on the terminal. It is not shown if standard error is not a terminal or
 * TERM is dumb, with -q, or for work that ends soon.
 */
#ifndef ACE_PROGRESS_BAR_H
#define ACE_PROGRESS_BAR_H

#include <stdint.h>

struct cli;

struct progress_bar {
	int on, drawn;		/* on: 1 if shown at all; drawn: 1 if the line is visible */
	/* clock_now at the start; PROGRESS_BAR_AGAIN before the next update */
	double since, last;
};

/* Start to show the progress of program c.  If c is NULL, show nothing. */
void progress_bar_begin(struct progress_bar *b, const struct cli *c);
/* Show that `done' of `all' units are done; all = 0: unknown. unit: "B" for bytes, or a word.
 * May be called at any rate. */
void progress_bar_show(struct progress_bar *b, uint64_t done, uint64_t all, const char *unit);
void progress_bar_end(struct progress_bar *b);

#endif
