/*
 * The state of a run in a spool, for ace-status: the devices and their steps, what the
 * aggregator waits for, the admission results, and the bytes on disk. Other programs may
 * write the spool meanwhile: files that appear or disappear during the reading may or may
 * not be counted.
 */
#ifndef ACE_RUN_STATE_H
#define ACE_RUN_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "format/receipt.h"
#include "spool/manifest.h"
#include "spool/spool.h"

struct err;

struct run_state_device {
	unsigned char id[SHARD_ID];	/* must be first for run_state_by_id */
	char name[SHARD_NAME + 1];
	int any;		/* 1: the spool has a shard or receipt of the device */
	uint64_t step;		/* newest step with such a shard or receipt */
	uint64_t first;		/* oldest such step */
	uint64_t bytes;		/* bytes of its newest stored shard; 0: none is stored */
	double at;		/* arrival of that shard, Unix seconds */
	uint64_t verdict[RECEIPT_NVERDICT];	/* its shards by verdict; duplicate as accepted */
	uint64_t answered;	/* receipts in manifests, and closed steps with only rejections */
	uint64_t counted;	/* last closed step of which it has a receipt, + 1; 0: none */
	uint64_t missed;	/* closed steps from `first' on in which it has no receipt */
	uint64_t disk;		/* bytes of its shards on disk */
	int listed;		/* 1: it is in the list of devices */
	int here;		/* 1: its shard of the current step is there */
	/* derived from these, for the reports: */
	const char *is;		/* its state in one word (run_state_where) */
	double ago;		/* seconds since `at' */
	uint64_t accepted, refused;
	int awaited;		/* 1 while the open step waits for it */
	unsigned have;		/* STATUS_SEEN: `any'; STATUS_SENT: `bytes' is not 0 */
};
enum { STATUS_SEEN = 1, STATUS_SENT = 2 };

enum run_state_now {
	STATUS_IDLE,		/* no shard came after the last average */
	STATUS_OPEN,		/* a step has shards and is not closed */
	STATUS_CLOSED		/* a step is closed and has no average yet */
};

struct run_state {
	char *name;
	enum run_state_now now;
	uint64_t step;		/* the current step, if `now' is OPEN or CLOSED */
	double since;		/* arrival of its first shard, Unix seconds */
	uint64_t here, missing;	/* number of devices whose shard of `step' is there; is
				   waited for */
	struct closed run;	/* which steps are closed and averaged */
	uint64_t last;		/* last step whose average was made, if run.made != 0 */
	int listed;		/* 1: there is a list of devices */
	uint64_t steps;		/* number of steps that have a directory */
	uint64_t disk;		/* bytes of the whole spool on disk */
	const char *is;		/* `now' in words */
	double ago;		/* seconds since `since' */
	unsigned have;		/* STATUS_LAST: `last' is set; STATUS_STEP: not IDLE */
	struct run_state_device **d;	/* [n], sorted by name */
	size_t n, cap;
	void *tree;		/* tsearch(3): the devices by id */
};
enum { STATUS_LAST = 1, STATUS_STEP = 2 };

/* run_state_read(s, in, now, e): read the state of the run.  Return 1, or 0 if the spool has no
 * run yet; now is the time in Unix seconds.  Call run_state_release(s) also after a failure. */
int run_state_read(struct run_state *s, const struct spool *in, double now,
    struct err *e);
void run_state_release(struct run_state *s);

/* run_state_disk(dir): return the bytes on disk of the files in a directory and below it.
 * Hidden files, and files that cannot be read, are not counted. */
uint64_t run_state_disk(const char *dir);

#endif
