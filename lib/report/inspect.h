/*
 * What ace-inspect does, one way of looking for each mode.
 */
#ifndef ACE_INSPECT_H
#define ACE_INSPECT_H

#include <stddef.h>

struct cli;
struct err;
struct filter;
struct report;

enum inspect_mode {
	INSPECT_NONE,		/* not said: as INSPECT_LIST */
	INSPECT_LIST, INSPECT_STATS, INSPECT_HISTOGRAM, INSPECT_VERIFY,
	INSPECT_DIFF, INSPECT_PLOT, INSPECT_RECOVER, INSPECT_CONSERVE
};

struct inspect_opts {
	struct filter *f;	/* the program's: input, output of a recovery */
	int mode;		/* enum inspect_mode */
	const char *other;	/* INSPECT_DIFF: with this stream */
	const char *picture;	/* INSPECT_PLOT: to this file */
	const char *state, *spool;	/* INSPECT_CONSERVE: the directories */
	const struct cli *cli;	/* whom to speak for */
};

/* inspect_screen(p): how wide standard output is, and whether it shows more
 * than ASCII, to p. */
void inspect_screen(struct report *p);

/* inspect_one(o, p, path, e): what a mode that reads streams says of path
 * (NULL: standard input). */
int inspect_one(const struct inspect_opts *o, struct report *p,
    const char *path, struct err *e);

/* inspect_recover(o, path, e): what is whole in path, to o->f's output. */
int inspect_recover(const struct inspect_opts *o, const char *path,
    struct err *e);

/* inspect_conserved(o, p, path, n, e): do the inputs, the state and the spool
 * balance? */
int inspect_conserved(const struct inspect_opts *o, struct report *p,
    char **path, size_t n, struct err *e);

#endif
