/*
 * What a spool says of a run, for ace-status: who has sent which step, what the
 * aggregator waits for, what was decided, and the bytes on disk.  The spool may
 * be written meanwhile; what appears or goes during the look is seen or not.  And
 * what the list of ace-diff says of a receiver of models.
 */
#ifndef ACE_STATUS_H
#define ACE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "format/receipt.h"
#include "model/receivers.h"
#include "model/store.h"
#include "spool/inbox.h"

struct err;

struct status_device {
	char name[SHARD_NAME + 1];
	unsigned char id[SHARD_ID];
	int any;		/* something of it is there: */
	uint64_t step;		/* its newest step, */
	uint64_t first;		/* and its oldest */
	uint64_t bytes;		/* of its newest shard, 0: removed */
	double at;		/* when that came, Unix seconds */
	double bandwidth;	/* bit/s, that it says; 0: nothing */
	uint64_t verdict[RECEIPT_NVERDICT];
	uint64_t answered;	/* closed steps in which it has a receipt */
	uint64_t counted;	/* the last of these, + 1 */
	uint64_t missed;	/* those without, since its first */
	uint64_t disk;
	int listed;		/* in the list of devices */
	int expected;		/* the step at hand waits for it, */
	int here;		/* its shard is there */
	/* from these, for the reports: */
	const char *is;		/* "here", "missing", ... */
	double ago;		/* since its newest shard, seconds */
	uint64_t accepted, refused;
	int awaited;		/* 1 while the open step waits for it */
	unsigned have;		/* STATUS_SEEN, STATUS_SENT, STATUS_LINKED */
};
enum { STATUS_SEEN = 1, STATUS_SENT = 2, STATUS_LINKED = 4 };

enum status_now {
	STATUS_IDLE,		/* no shard after the last average */
	STATUS_OPEN,		/* a step has shards and is not closed */
	STATUS_CLOSED		/* it is closed, its average is not made yet */
};

struct status_run {
	char *name;
	enum status_now now;
	uint64_t step;		/* of OPEN and CLOSED */
	double since;		/* arrival of its first shard, Unix seconds */
	uint64_t here, missing;
	int has_closed, has_last, listed;
	uint64_t closed, last;	/* as the files of these names say */
	uint64_t steps;		/* that have a directory */
	uint64_t disk;
	const char *is;		/* now, as a word */
	double ago;		/* since `since' */
	unsigned have;		/* STATUS_LAST, STATUS_STEP */
	struct status_device *d;	/* in the end sorted by name */
	size_t n, cap;
	size_t *slot, slots;	/* index in d, + 1, by hash; used while reading */
	uint64_t mix;
};
enum { STATUS_LAST = 1, STATUS_STEP = 2 };

/* status_run(s, in, run, now, e): looks at one run at that time, Unix seconds;
 * status_release(s) also after a failure. */
int status_run(struct status_run *s, const struct inbox *in,
    const char *run, double now, struct err *e);
void status_release(struct status_run *s);

/* ---- a receiver of models ---- */

struct status_receiver {
	const char *name, *is;
	uint64_t step;		/* of what it has, */
	uint64_t behind;	/* and so many before the newest */
	uint64_t patches, bytes;	/* of what would bring it there */
	double ago;		/* since its receipt, seconds */
};
enum { STATUS_HAS = 1, STATUS_FAR = 2, STATUS_WAY = 4 };

/* status_receiver(v, st, l, now, e): what is known of it, of which STATUS_... says
 * how much there is. */
int status_receiver(struct status_receiver *v, struct store *st,
    const struct receivers_line *l, double now, struct err *e);

/* status_disk(dir): bytes on disk of the files in a directory and in
 * those below it; what is gone counts nothing. */
uint64_t status_disk(const char *dir);

#endif
