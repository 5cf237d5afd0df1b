/*
 * What ace-inspect does in each of its modes.  Functions that return int return
 * 0 or -ERR_x.
 */
#ifndef ACE_INSPECT_H
#define ACE_INSPECT_H

#include <stddef.h>

#include "report/brief.h"

struct err;
struct filter;
struct report;

enum inspect_mode {
	INSPECT_NONE,		/* not given: as INSPECT_LIST */
	INSPECT_LIST, INSPECT_STATS, INSPECT_VERIFY, INSPECT_DIFF,
	INSPECT_PLOT, INSPECT_RECOVER, INSPECT_CONSERVE, INSPECT_BRIEF,
	INSPECT_COURSE
};

struct inspect_opts {
	struct filter *f;	/* the program's: input, output of a recovery */
	int mode;		/* enum inspect_mode */
	const char *other;	/* INSPECT_DIFF: with this stream */
	const char *picture;	/* INSPECT_PLOT: to this file; and
				 * INSPECT_COURSE, if not NULL */
	const char *state, *spool;	/* INSPECT_CONSERVE: the directories */
	struct brief brief;		/* INSPECT_BRIEF: in which form */
	int follow;			/* and what comes to the folder */
};

/* inspect_screen(p): sets in p how wide standard output is, in columns, and
 * whether it shows more than ASCII. */
void inspect_screen(struct report *p);

/* inspect_all(o, p, path, n, e): reports on n operands (none: standard input),
 * in a mode that reads streams: files, folders and archives.  Every file is
 * tried, each that fails says so, and the worst error is returned.  With no mode
 * given it becomes INSPECT_BRIEF when there are many shards. */
int inspect_all(struct inspect_opts *o, struct report *p, char **path, size_t n,
    struct err *e);

/* inspect_course(o, p, path, n, e): draws n runs, see course.h. */
int inspect_course(const struct inspect_opts *o, struct report *p, char **path,
    size_t n, struct err *e);

/* inspect_recover(o, path, e): copies the undamaged shards of the file at path
 * to the output of o->f. */
int inspect_recover(const struct inspect_opts *o, const char *path,
    struct err *e);

/* inspect_conserved(o, p, path, n, e): reports whether the n inputs, the state
 * and the spool balance, as conserve.h explains. */
int inspect_conserved(const struct inspect_opts *o, struct report *p,
    char **path, size_t n, struct err *e);

#endif
