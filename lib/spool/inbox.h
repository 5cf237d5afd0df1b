/*
 * The directory of a spool: the shards of a run by step, one file for each, and what was
 * decided about them.
 *
 *   DIR/RUN/.lock                    shared to add a shard; exclusive to close
 *                                    a step, and for verdicts that change later
 *                                    ones
 *   DIR/RUN/schema.aceg              the model: of the first shard accepted
 *   DIR/RUN/closed                   the manifest of the newest closed step, see
 *                                    spool/decide.h
 *   DIR/RUN/done/STEP                the manifest of a step whose average was made;
 *                                    of the newest one, a second name of `closed'
 *   DIR/RUN/past.?                   see mean/past.h
 *   DIR/RUN/STEP/DEVICE.aceg         an accepted shard, a stream of its own
 *   DIR/RUN/STEP/DEVICE.no           the receipts of rejected shards
 *   DIR/RUN/STEP/aggregate.aceg      the average, for devices that wait for it
 *   DIR/RUN/devices                  the list of devices, see spool/roster.h
 *   DIR/RUN/device/DEVICE.incarnation  the newest incarnation of a device seen
 *   DIR/RUN/device/DEVICE.known      see spool/join.h
 *   DIR/RUN/device/DEVICE.open       see spool/decide.h
 *   DIR/RUN/device/DEVICE.given      see spool/admit.h
 *   DIR/RUN/device/DEVICE.history/   see spool/mirror.h
 *   DIR/DEVICE.new-XXXXXX            a shard that is being received; locked
 *                                    while it is written
 *   DIR/.lock                        held while a run gets its first shard
 *   DIR/.clients                     see spool/clients.h
 *   DIR/limits                       see spool/admit.h
 *
 * An empty file .synced in DIR, RUN, RUN/done and STEP says that the name of this
 * directory is durable, so that it is synced once and not for each shard.  It is made
 * with a full sync only.
 *
 * RUN and DEVICE are names in which every byte but [A-Za-z0-9_-] is written as %XX.  If
 * the name is that of a file above, so is its first letter.
 *
 * A shard gets one verdict, which is on disk before its device receives it.  Of the
 * shards with one name (run, device, step) one is accepted.  The file of a shard never
 * changes, and a closed step stays closed.
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

struct inbox_seen {		/* the newest manifest in short, see decide_load */
	char run[SHARD_NAME + 1];
	ino_t file;		/* 0: there is none */
	struct timespec time;
	uint64_t step, version;
};

struct inbox {
	struct statedir state;	/* checked as a state directory is */
	enum io_sync sync;
	uint64_t max_stale;	/* versions that a shard's model may be behind;
				 * UINT64_MAX: any number */
	struct inbox_seen *seen;
	struct progress *wait;	/* prints what is waited for; or NULL */
};
#define INBOX_INIT { STATE_INIT, IO_SYNC_FULL, UINT64_MAX, NULL, NULL }

int inbox_open(struct inbox *s, const char *dir, struct err *e);
void inbox_close(struct inbox *s);

/* inbox_name(name, out): write the file name of a run or device, as above. */
void inbox_name(const char *name, char out[INBOX_NAME]);

/* inbox_path(s, run, step, file, e): return DIR/RUN/STEP/file, allocated; step NULL:
 * DIR/RUN/file. */
char *inbox_path(const struct inbox *s, const char *run, const uint64_t *step,
    const char *file, struct err *e);

/* inbox_file(sh, end, out): write the file name DEVICE.end of the shard's device.
 * inbox_of(s, run, step, device, end, e): return the path of that file, allocated:
 * DIR/RUN/STEP/DEVICE.end; step NULL: DIR/RUN/device/DEVICE.end.  device "": a device
 * without a name. */
void inbox_file(const struct shard *sh, const char *end, char out[INBOX_FILE]);
#define INBOX_KNOWN "known"	/* such an end, see spool/join.h */
char *inbox_of(const struct inbox *s, const char *run, const uint64_t *step,
    const char *device, const char *end, struct err *e);
/* inbox_device(file, out, id): convert the name of a file back to the device's name and
 * its hash; id may be NULL.  Return 1, or 0 if the name was too long for a file: then
 * out has only its beginning. */
int inbox_device(const char *file, char out[SHARD_NAME + 1],
    unsigned char id[SHARD_ID]);
/* inbox_is_shard(name): return 1 if this file of a step's directory is an accepted
 * shard. */
int inbox_is_shard(const char *name);
const char *inbox_run_of(const struct shard *sh);	/* "": no name */
const char *inbox_device_of(const struct shard *sh);

/* inbox_fits(want, run): return 1 if --run `want' selects the run.  A name that ends with
 * * selects all runs that begin so; NULL is *. */
int inbox_fits(const char *want, const char *run);
/* inbox_runs(l, s, want, but, e): append the names of the selected runs, except the run
 * `but' (or NULL), and sort them.  A run exists from its first shard on. */
int inbox_runs(struct array_names *l, const struct inbox *s, const char *want,
    const char *but, struct err *e);

/* ---- receiving ---- */

/* inbox_begin(s, run, step, e): make the directories of the run and the step, with
 * durable names; step NULL: only that of the run.  Call it when a shard is whole: a
 * device could begin any number of shards. */
int inbox_begin(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e);
/* inbox_made(s, dir, e): make one directory in the same way; its path ends with a
 * slash. */
int inbox_made(const struct inbox *s, const char *dir, struct err *e);
/* inbox_unmake(dir): remove a directory that has no files left but .synced. */
void inbox_unmake(const char *dir);
/* inbox_durable(s, run, step, e): sync the names in DIR/RUN/STEP; step NULL: those in
 * DIR/RUN.  Call it before anything relies on a file, since the process that made the
 * file may have been killed before it synced the name. */
int inbox_durable(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e);
/* inbox_has(s, run, step, name, e): return 1 if this file exists, or with name "" the
 * directory, else 0; step NULL: in DIR/RUN. */
int inbox_has(const struct inbox *s, const char *run, const uint64_t *step,
    const char *name, struct err *e);
/* inbox_temp(s, sh, end, path, io, e): make a temporary file DEVICE.end, with its path,
 * allocated, in *path, and open *io to write it.  It lies in DIR, since the folder of a
 * run is made only when a shard is accepted.  It stays until decide_shard or unlink.
 * It is locked while *io is open, so that temp_sweep leaves it alone. */
int inbox_temp(const struct inbox *s, const struct shard *sh, const char *end,
    char **path, struct io **io, struct err *e);
/* inbox_clock(): return the time in Unix nanoseconds, or SOURCE_DATE_EPOCH if it is set,
 * so that output is reproducible. */
uint64_t inbox_clock(void);
/* inbox_lock(s, run, how, fd, e): take the run's lock, or, run NULL, that of the spool,
 * as LOCK_SH or LOCK_EX; close(*fd) releases it.  A process that needs both takes that
 * of the spool first. */
int inbox_lock(const struct inbox *s, const char *run, int how, int *fd,
    struct err *e);

#endif
