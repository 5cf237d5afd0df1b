/*
 * The directory of a spool: the shards of one run by step, one file for each, and what
 * was decided about them.
 *
 *   DIR/.lock                    locked (flock) while a verdict is found, a step is closed,
 *                                an average is stored or the list of devices changes
 *   DIR/schema.aceg              the run's name and model: those of the first shard
 *                                accepted
 *   DIR/closed                   the manifest of the newest closed step, see
 *                                spool/manifest.h
 *   DIR/done/STEP                the manifest of a step that is done; if that is the
 *                                newest closed step, a second name of `closed'
 *   DIR/past.*                   see mean/center.h
 *   DIR/STEP/DEVICE.aceg         an accepted shard, a stream of its own
 *   DIR/STEP/DEVICE.no           the receipts of rejected shards
 *   DIR/STEP/aggregate.aceg      the average, for devices that wait for it
 *   DIR/devices                  the list of devices, see spool/roster.h
 *   DIR/device/DEVICE.incarnation  the newest incarnation of a device seen
 *   DIR/device/DEVICE.known      see spool/join.h
 *   DIR/device/DEVICE.open       see spool/limits.c
 *   DIR/device/DEVICE.history/   see spool/history.h
 *   DIR/DEVICE.new-XXXXXX        a shard that is being received; locked while it is
 *                                written
 *   DIR/.clients                 see spool/clients.h
 *   DIR/limits                   see spool/limits.h
 *
 * An empty file .synced in DIR or in a directory in DIR says that the name of this directory
 * is durable, so that the name is synced once and not for each shard.  The file is made with
 * a full sync only.
 *
 * DEVICE is the name, in which every byte but [A-Za-z0-9_-] is written as %XX, as is the
 * first letter of the name "aggregate".  A name too long for a file ends with its hash.  The
 * empty name is written as %.
 *
 * The files from which a verdict follows are on disk before the device gets the receipt.  The
 * same bytes may get another verdict later (format/receipt.h).  Of the shards with one
 * name (device, step) at most one is accepted.  The file of an accepted shard never
 * changes, except that a shard that is sent again replaces a damaged file.  A closed step
 * stays closed.
 */
#ifndef ACE_SPOOL_H
#define ACE_SPOOL_H

#include <limits.h>
#include <sys/types.h>
#include <time.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/array.h"
#include "format/receipt.h"
#include "format/writer.h"

struct err;
struct reader;
struct waiting;

#define SPOOL_SCHEMA "schema.aceg"
#define SPOOL_AVERAGE "aggregate.aceg"
#define SPOOL_SYNCED ".synced"

/* Bytes for a device's name as it is in file names, for a file name, and for the path of
 * any file in the spool.  The path of an opened directory is shorter than PATH_MAX. */
enum { SPOOL_NAME = 256, SPOOL_FILE = SPOOL_NAME + 32,
	SPOOL_PATH = PATH_MAX + SPOOL_FILE + 32 };

struct spool_seen {		/* what manifest_closed last read from DIR/closed */
	ino_t file;		/* inode of that file; 0: nothing was read yet */
	struct timespec time;	/* mtime of that file */
	uint64_t step, version;	/* of the last receipt in it */
	uint64_t first, waits;	/* step of the first receipt, and of the first `duplicate' */
};

struct spool {
	struct statedir state;	/* checked as a state directory is */
	enum io_sync sync;
	struct spool_seen *seen;
	struct waiting *wait;	/* prints what is waited for; or NULL */
};
#define SPOOL_INIT { STATE_INIT, IO_SYNC_FULL, NULL, NULL }

/* spool_open(s, dir, create, e): open the spool in dir.  create 1: make dir if it is absent;
 * 0: fail with -ERR_SYS then.  Call spool_close also after a failure. */
int spool_open(struct spool *s, const char *dir, int create, struct err *e);
void spool_close(struct spool *s);

/* spool_name(name, out): write the name of a run or device to out, escaped as above, but
 * without the rule for "aggregate". */
void spool_name(const char *name, char out[SPOOL_NAME]);

/* spool_path(s, step, file, out): write the path DIR/STEP/file to out and return out;
 * step NULL: DIR/file. */
char *spool_path(const struct spool *s, const uint64_t *step, const char *file,
    char out[SPOOL_PATH]);

/* spool_file(device, end, out): write the file name DEVICE.end.
 * spool_of(s, step, device, end, out): write the path DIR/STEP/DEVICE.end to out and
 * return out; step NULL: DIR/device/DEVICE.end.  device "": a device without a name. */
void spool_file(const char *device, const char *end, char out[SPOOL_FILE]);
#define SPOOL_KNOWN "known"	/* an `end' for spool_of: see spool/join.h */
char *spool_of(const struct spool *s, const uint64_t *step, const char *device,
    const char *end, char out[SPOOL_PATH]);
/* spool_device(file, out, id): convert the name of a file back to the device's name and
 * its hash; id may be NULL.  Return 1, or 0 if the name was too long for a file: then
 * out has only its beginning.  The name "" has the hash 0. */
int spool_device(const char *file, char out[SHARD_NAME + 1],
    unsigned char id[SHARD_ID]);
/* spool_is_shard(name): return 1 if this file of a step's directory is an accepted
 * shard. */
int spool_is_shard(const char *name);
const char *spool_run_of(const struct shard *sh);	/* "": no name */
const char *spool_device_of(const struct shard *sh);

/* spool_run(s, r, e): read the run's name and model, which are those of the shard at which
 * *r then stands.  Return 1, or 0 if no shard was accepted yet.  Free *r even after a
 * failure. */
int spool_run(const struct spool *s, struct reader **r, struct err *e);

/* ---- receiving ---- */

/* spool_begin(s, step, e): make DIR/device and the directory of a step, with names that are
 * durable if s->sync is IO_SYNC_FULL; step NULL: make only DIR/device.  For a device's shard,
 * call it only after the shard's end: a device can begin shards of any number of steps. */
int spool_begin(const struct spool *s, const uint64_t *step, struct err *e);
/* spool_made(s, dir, e): make the directory dir, a path with a slash at the end, with a
 * name that is durable if s->sync is IO_SYNC_FULL. */
int spool_made(const struct spool *s, const char *dir, struct err *e);
/* spool_durable(s, step, e): if s->sync is IO_SYNC_FULL, sync the names in DIR/STEP; step
 * NULL: those in DIR.  Return 0 also if the step's directory was removed.  Call it before
 * anything relies on a file, since the process that made the file may have been killed
 * before it synced the name. */
int spool_durable(const struct spool *s, const uint64_t *step, struct err *e);
/* spool_there(path, e): return 1 if there is a file at path, else 0.
 * spool_has(s, step, name, e): the same for DIR/STEP/name; name "": for DIR/STEP; step
 * NULL: for DIR/name. */
int spool_there(const char *path, struct err *e);
int spool_has(const struct spool *s, const uint64_t *step, const char *name,
    struct err *e);
/* spool_temp(s, sh, end, path, io, e): make a temporary file DEVICE.end in DIR, since the
 * directory of a step is made only for a whole shard; open *io to write it.  end is TEMP_NAME
 * without its dot, or a word and TEMP_NAME.  path is set to the path of the file, or to "" if
 * it was not made; after another failure, too, the file stays until verdict_shard or
 * temp_remove.  It is locked while *io is open, so that temp_sweep leaves it alone. */
int spool_temp(const struct spool *s, const struct shard *sh, const char *end,
    char path[SPOOL_PATH], struct io **io, struct err *e);
/* spool_clock(): return the time in Unix nanoseconds: that of SOURCE_DATE_EPOCH if it is set,
 * so that output is reproducible, else the present time. */
uint64_t spool_clock(void);
/* spool_lock(s, fd, e): take the spool's lock; close(*fd) releases it. */
int spool_lock(const struct spool *s, int *fd, struct err *e);

/* ---- small files ---- */

/* spool_reader(r, path, e): open a reader of a file.  Return 1, or 0 if it is absent. */
int spool_reader(struct reader **r, const char *path, struct err *e);
/* spool_shard(path, r, e): read run, device, step and digest of the one shard in a file.
 * Return 1, or 0 if the file is absent. */
int spool_shard(const char *path, struct receipt *r, struct err *e);

/* spool_number: read the number in a file.  Return 1, or 0 with *v 0 if the file is absent.
 * spool_set_number: replace it, so that a reader finds the old number or the new one. */
int spool_number(const char *path, uint64_t *v, struct err *e);
int spool_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e);

#endif
