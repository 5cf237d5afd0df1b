/*
 * What ace-meter does: passes bytes and learns how fast the link behind them
 * takes them and how long receipts take; what ace-policy and ace-select read
 * from the state.  It knows bytes and no shards, so it is no struct stage.
 */
#ifndef ACE_STAGE_METER_H
#define ACE_STAGE_METER_H

#include <stdint.h>

struct cli;
struct err;

struct stage_meter_opts {
	const char *dir;	/* state directory, or NULL */
	double limit;		/* bit/s, 0: as fast as it goes */
	double wait;		/* seconds for receipts at the end; < 0: one,
				   where there ever was a receipt */
	int force;		/* to a terminal, too */
	/* Where it is: bytes passed in so many seconds; last: all of them. */
	void (*show)(void *arg, uint64_t passed, double secs, int last);
	void *arg;
	const struct cli *cli;	/* whom to speak for */
};

/* stage_meter_run(o, path, e): all of path (NULL: standard input) to standard
 * output. */
int stage_meter_run(const struct stage_meter_opts *o, const char *path,
    struct err *e);

#endif
