/*
 * The directory of a spool: the shards of one run by step, one file for each, and what
 * was decided about them.
 *
 *   DIR/.lock                    shared to add a shard; exclusive to close a step, and
 *                                for verdicts that change later ones
 *   DIR/schema.aceg              the run's name and model: those of the first shard
 *                                accepted
 *   DIR/closed                   the manifest of the newest closed step, see
 *                                spool/decide.h
 *   DIR/done/STEP                the manifest of a step whose average was made; of the
 *                                newest one, a second name of `closed'
 *   DIR/past.?                   see mean/past.h
 *   DIR/STEP/DEVICE.aceg         an accepted shard, a stream of its own
 *   DIR/STEP/DEVICE.no           the receipts of rejected shards
 *   DIR/STEP/aggregate.aceg      the average, for devices that wait for it
 *   DIR/devices                  the list of devices, see spool/roster.h
 *   DIR/device/DEVICE.incarnation  the newest incarnation of a device seen
 *   DIR/device/DEVICE.known      see spool/join.h
 *   DIR/device/DEVICE.open       see spool/decide.c
 *   DIR/device/DEVICE.given      see spool/admit.h
 *   DIR/device/DEVICE.history/   see spool/mirror.h
 *   DIR/DEVICE.new-XXXXXX        a shard that is being received; locked while it is
 *                                written
 *   DIR/.clients                 see spool/clients.h
 *   DIR/limits                   see spool/admit.h
 *
 * An empty file .synced in DIR, DIR/done and STEP says that the name of this directory is
 * durable, so that it is synced once and not for each shard.  It is made with a full sync
 * only.
 *
 * DEVICE is the name, in which every byte but [A-Za-z0-9_-] is written as %XX.  If the
 * name is that of a file above, so is its first letter.
 *
 * A shard gets one verdict, which is on disk before its device receives it.  Of the
 * shards with one name (device, step) one is accepted.  The file of a shard never
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

/* inbox_path(s, step, file, e): return DIR/STEP/file, allocated; step NULL:
 * DIR/file. */
char *inbox_path(const struct inbox *s, const uint64_t *step, const char *file,
    struct err *e);

/* inbox_file(device, end, out): write the file name DEVICE.end.
 * inbox_of(s, step, device, end, e): return the path of that file, allocated:
 * DIR/STEP/DEVICE.end; step NULL: DIR/device/DEVICE.end.  device "": a device
 * without a name. */
void inbox_file(const char *device, const char *end, char out[INBOX_FILE]);
#define INBOX_KNOWN "known"	/* an `end' of these: see spool/join.h */
char *inbox_of(const struct inbox *s, const uint64_t *step, const char *device,
    const char *end, struct err *e);
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

/* inbox_run(s, name, e): read the name of the run, allocated even if this fails: 1; or 0
 * if no shard was accepted yet.  *name is NULL before. */
int inbox_run(const struct inbox *s, char **name, struct err *e);

/* ---- receiving ---- */

/* inbox_begin(s, step, e): make the directories for a step, with durable names; step
 * NULL: only those of all steps.  Call it when a shard is whole: a device could begin any
 * number of shards. */
int inbox_begin(const struct inbox *s, const uint64_t *step, struct err *e);
/* inbox_made(s, dir, e): make one directory in the same way; its path ends with a
 * slash. */
int inbox_made(const struct inbox *s, const char *dir, struct err *e);
/* inbox_unmake(dir): remove a directory that has no files left but .synced. */
void inbox_unmake(const char *dir);
/* inbox_durable(s, step, e): sync the names in DIR/STEP; step NULL: those in
 * DIR.  Call it before anything relies on a file, since the process that made the
 * file may have been killed before it synced the name. */
int inbox_durable(const struct inbox *s, const uint64_t *step, struct err *e);
/* inbox_has(s, step, name, e): return 1 if this file exists, or with name "" the
 * directory, else 0; step NULL: in DIR. */
int inbox_has(const struct inbox *s, const uint64_t *step, const char *name,
    struct err *e);
/* inbox_temp(s, sh, end, path, io, e): make a temporary file DEVICE.end, with its path,
 * allocated, in *path, and open *io to write it.  It lies in DIR, since the folder of a
 * step is made only for a whole shard.  It stays until decide_shard or unlink.
 * It is locked while *io is open, so that temp_sweep leaves it alone. */
int inbox_temp(const struct inbox *s, const struct shard *sh, const char *end,
    char **path, struct io **io, struct err *e);
/* inbox_clock(): return the time in Unix nanoseconds, or SOURCE_DATE_EPOCH if it is set,
 * so that output is reproducible. */
uint64_t inbox_clock(void);
/* inbox_lock(s, how, fd, e): take the spool's lock as LOCK_SH or LOCK_EX; close(*fd)
 * releases it. */
int inbox_lock(const struct inbox *s, int how, int *fd, struct err *e);

#endif
