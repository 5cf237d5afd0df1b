/*
 * What ace-meter does: passes bytes, measures how fast the link behind its
 * output takes them and how long receipts take, and writes that into the
 * state, where ace-policy reads it.  It works on bytes and not on shards, so
 * it is no struct stage.
 */
#ifndef ACE_STAGE_METER_H
#define ACE_STAGE_METER_H

#include <stdint.h>

struct cli;
struct err;

struct stage_meter_opts {
	const char *dir;	/* state directory, or NULL */
	double limit;		/* bit/s, 0: as fast as it goes */
	double wait;		/* how long to wait for receipts at the end,
				   seconds; < 0: one second, if there ever was
				   a receipt */
	int force;		/* to a terminal, too */
	/* shows progress: so many bytes in so many seconds; last: the end */
	void (*show)(void *arg, uint64_t passed, double secs, int last);
	void *arg;
	const struct cli *cli;	/* whom to speak for */
};

/* stage_meter_run(o, path, e): copies all of path (NULL: standard input) to
 * standard output. */
int stage_meter_run(const struct stage_meter_opts *o, const char *path,
    struct err *e);

#endif
