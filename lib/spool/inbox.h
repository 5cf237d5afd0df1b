/*
 * The spool's directory: the shards of a run by step, one file each, and what
 * was decided about them.
 *
 *   DIR/RUN/.lock                    shared to add a shard; exclusive to close
 *                                    a step, and for all verdicts that change
 *                                    what is decided next
 *   DIR/RUN/schema.aceg              the model: of the first shard accepted
 *   DIR/RUN/closed                   the manifest of the newest closed step, see
 *                                    spool/decide.h
 *   DIR/RUN/done/STEP                the manifest of a step whose average was made;
 *                                    of the newest one, a second name of `closed'
 *   DIR/RUN/past.?                   see mean/past.h
 *   DIR/RUN/STEP/DEVICE.aceg         an accepted shard, a stream of its own
 *   DIR/RUN/STEP/DEVICE.no           the receipts of those that were rejected
 *   DIR/RUN/STEP/aggregate.aceg      the aggregate, for those who wait for it
 *   DIR/RUN/devices                  who is waited for, see spool/roster.h
 *   DIR/RUN/device/DEVICE.incarnation  the newest incarnation of a device seen
 *   DIR/RUN/device/DEVICE.known      see spool/join.h
 *   DIR/RUN/device/DEVICE.open       see spool/decide.h
 *   DIR/RUN/device/DEVICE.given      see spool/admit.h
 *   DIR/RUN/device/DEVICE.history/   see spool/mirror.h
 *   DIR/DEVICE.new-XXXXXX            a shard that is being received; locked
 *                                    while somebody writes it
 *   DIR/.lock                        while a run gets its first shard
 *   DIR/.clients                     see spool/clients.h
 *   DIR/limits                       see spool/admit.h
 *
 * DIR, RUN, RUN/done and STEP have an empty file .synced once their own name is
 * durable, so that it is synced once and not for each shard.  Only a full sync
 * makes it.
 *
 * RUN and DEVICE are names in which all but [A-Za-z0-9_-] is written as %XX, and
 * of what would be a file of ours, the first letter too.  A
 * shard gets one verdict, which is on disk before anyone is told; of those with one
 * name (run, device, step) one is accepted; a file of a shard never changes; a
 * closed step stays closed.
 */
#ifndef ACE_INBOX_H
#define ACE_INBOX_H

#include <limits.h>
#include <sys/types.h>
#include <time.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/array.h"
#include "format/receipt.h"
#include "format/writer.h"

struct err;
struct progress;

#define INBOX_SCHEMA "schema.aceg"

enum { INBOX_NAME = 256, INBOX_FILE = INBOX_NAME + 32 };

struct inbox_seen {		/* what the newest manifest says, see decide_load */
	char run[SHARD_NAME + 1];
	ino_t file;		/* 0: there is none */
	struct timespec time;
	uint64_t step, version;
};

struct inbox {
	struct statedir state;	/* checked as a state directory is */
	enum io_sync sync;
	uint64_t max_stale;	/* a shard's model may be so many versions
				 * behind; UINT64_MAX: any */
	struct inbox_seen *seen;
	struct progress *wait;	/* says what is waited for, or NULL */
};
#define INBOX_INIT { STATE_INIT, IO_SYNC_FULL, UINT64_MAX, NULL, NULL }

int inbox_open(struct inbox *s, const char *dir, struct err *e);
void inbox_close(struct inbox *s);

/* inbox_name(name, out): the file name of a run or a device, as above. */
void inbox_name(const char *name, char out[INBOX_NAME]);

/* inbox_path(s, run, step, file, e): DIR/RUN/STEP/file, allocated; step NULL:
 * DIR/RUN/file. */
char *inbox_path(const struct inbox *s, const char *run, const uint64_t *step,
    const char *file, struct err *e);

/* inbox_file(sh, end, out): out becomes the file name DEVICE.end of the shard's
 * device.  inbox_of(s, run, step, device, end, e): where that file of a device is,
 * "" being one without a name: DIR/RUN/STEP/DEVICE.end, allocated; step NULL:
 * DIR/RUN/device/DEVICE.end. */
void inbox_file(const struct shard *sh, const char *end, char out[INBOX_FILE]);
#define INBOX_KNOWN "known"	/* an end, of spool/join.h */
char *inbox_of(const struct inbox *s, const char *run, const uint64_t *step,
    const char *device, const char *end, struct err *e);
/* inbox_device(file, out, id): the other way round, from the name of a file to
 * the device's name and its hash; id may be NULL.  0: the name was too long for
 * a file, so that only its beginning is in out. */
int inbox_device(const char *file, char out[SHARD_NAME + 1],
    unsigned char id[SHARD_ID]);
/* inbox_is_shard(name): a file of a step's directory that is an accepted
 * shard. */
int inbox_is_shard(const char *name);
const char *inbox_run_of(const struct shard *sh);	/* "": it has no name */
const char *inbox_device_of(const struct shard *sh);

/* inbox_fits(want, run): is the run one of those that --run asks for?  A name
 * that ends with * asks for all that begin so; NULL is *. */
int inbox_fits(const char *want, const char *run);
/* inbox_runs(l, s, want, but, e): appends the names of the runs that fit, without the
 * run `but', or NULL, and sorts them.  A run is there from its first shard on. */
int inbox_runs(struct array_names *l, const struct inbox *s, const char *want,
    const char *but, struct err *e);

/* ---- receiving ---- */

/* inbox_begin(s, run, step, e): makes the directories of the run and the step, whose
 * names are durable then; step NULL: that of the run.  For a shard that is whole, since
 * of those that only begin there may be any number. */
int inbox_begin(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e);
/* inbox_made(s, dir, e): the same of one directory, whose path ends with a slash. */
int inbox_made(const struct inbox *s, const char *dir, struct err *e);
/* inbox_unmake(dir): removes the directory, which has no other files any more. */
void inbox_unmake(const char *dir);
/* inbox_durable(s, run, step, e): syncs the names in DIR/RUN/STEP: whoever made a file
 * may have been killed before it did so.  To be called before anybody is told of a file
 * or builds on it.  step NULL: those in DIR/RUN. */
int inbox_durable(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e);
/* inbox_has(s, run, step, name, e): 1 when this file, or with "" the directory, is
 * there, or 0; step NULL: in DIR/RUN. */
int inbox_has(const struct inbox *s, const char *run, const uint64_t *step,
    const char *name, struct err *e);
/* inbox_temp(s, sh, end, path, io, e): makes a temporary file, DEVICE.end, at
 * *path, allocated, and *io to write into it.  It stands beside the runs' folders,
 * for that of a run is made only when there is a shard to be accepted.  It stays
 * until decide_shard or unlink; it is locked while *io is there, so that nobody
 * takes it for a dead process's. */
int inbox_temp(const struct inbox *s, const struct shard *sh, const char *end,
    char **path, struct io **io, struct err *e);
/* inbox_clock(): the time in Unix nanoseconds, or what SOURCE_DATE_EPOCH says when
 * output is to be reproducible. */
uint64_t inbox_clock(void);
/* inbox_lock(s, run, how, fd, e): takes the run's lock, or, run NULL, that of the
 * spool, which comes first; how is LOCK_SH or LOCK_EX; close(*fd) gives it back. */
int inbox_lock(const struct inbox *s, const char *run, int how, int *fd,
    struct err *e);

#endif
