/*
 * The receiver's ledger: shards of a run by step, one file each, and what was
 * decided about them.
 *
 *   DIR/RUN/lock                     shared to add a shard; exclusive to close
 *                                    a step, and for all verdicts that change
 *                                    what is decided next
 *   DIR/RUN/schema.aceg              the model: of the first shard accepted
 *   DIR/RUN/closed                   "STEP\n": nothing is added to steps
 *                                    before it; itself is closed by its manifest
 *   DIR/RUN/last                     "STEP\n": its aggregate was made
 *   DIR/RUN/norms                    see state/norms.h
 *   DIR/RUN/STEP/DEVICE.aceg    an accepted shard, a stream of its own
 *   DIR/RUN/STEP/DEVICE.no      the receipt of one that was rejected
 *   DIR/RUN/STEP/manifest            receipts of the shards in the aggregate
 *   DIR/RUN/STEP/aggregate.aceg      the aggregate, for those who wait for it
 *   DIR/RUN/old/STEP                 the manifest of a step whose directory was
 *                                    removed
 *   DIR/RUN/DEVICE.incarnation       the newest incarnation of a device seen
 *   DIR/RUN/shard.new-XXXXXX         on its way in; locked while somebody
 *                                    writes it
 *
 * Names are ids escaped: what is not [A-Za-z0-9_-] becomes %XX.  A shard's
 * name gets one verdict, on disk before anyone is told; bytes under a name
 * never change; a closed step stays closed.
 */
#ifndef ACE_INBOX_H
#define ACE_INBOX_H

#include <limits.h>

#include "base/io.h"
#include "base/state.h"
#include "format/receipt.h"
#include "format/writer.h"

struct err;
struct waiting;

enum { INBOX_NAME = 256, INBOX_FILE = INBOX_NAME + 32 };

struct inbox {
	struct state state;	/* checked as a state directory is */
	enum io_sync sync;
	uint64_t max_stale;	/* versions behind; UINT64_MAX any */
	struct waiting *wait;	/* what is waited for is said there, or NULL */
};
#define INBOX_INIT { STATE_INIT, IO_SYNC_FULL, UINT64_MAX, NULL }

int inbox_open(struct inbox *s, const char *dir, struct err *e);
void inbox_close(struct inbox *s);

/* inbox_path(s, run, step, file, e): DIR/RUN/STEP/file, allocated; step NULL:
 * DIR/RUN/file. */
char *inbox_path(const struct inbox *s, const char *run, const uint64_t *step,
    const char *file, struct err *e);

/* inbox_file(sh, end, out): DEVICE.end; end NULL: DEVICE.incarnation. */
void inbox_file(const struct shard *sh, const char *end, char out[INBOX_FILE]);
/* inbox_is_shard(name): a file of a step's directory that is an accepted shard. */
int inbox_is_shard(const char *name);
const char *inbox_run_of(const struct shard *sh);	/* "": it has no name */

/* ---- receiving ---- */

/* inbox_begin(s, sh, e): directories for the shard's run and step. */
int inbox_begin(const struct inbox *s, const struct shard *sh, struct err *e);
/* inbox_durable(s, run, step, e): every name in DIR/RUN/STEP, DIR/RUN and DIR
 * survives a power cut, whoever made it: that process may have been killed
 * before it synced the directory.  To be called before anybody is told of what
 * is there, or builds on it.  step NULL: DIR/RUN and DIR. */
int inbox_durable(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e);
/* inbox_temp(s, sh, path, w, e): a stream for the shard to be written to; the
 * file at *path stays until verdict_settle or unlink, and nobody sweeps it away
 * while *w lives. */
int inbox_temp(const struct inbox *s, const struct shard *sh, char **path,
    struct writer **w, struct err *e);
/* inbox_sign(s, run, r, e): clock and version of a receipt, without a verdict of
 * ours: for a shard that is none of the spool's business. */
int inbox_sign(const struct inbox *s, const char *run, struct receipt *r,
    struct err *e);

/* inbox_last(s, run, step, e): 1 and the last step that was aggregated, 0 there
 * is none, < 0 that cannot be known. */
int inbox_last(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e);
/* inbox_floor(s, run, step): 1 and the step before which all are closed, or
 * 0. */
int inbox_floor(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e);
/* inbox_manifest(s, run, step, l, e): the list of a closed step: 1, or 0 it is
 * open.  ledger_release. */
struct ledger;
int inbox_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e);
/* inbox_raise(s, run, device, n, e): a new incarnation of a device, *n; the
 * ones before it are fenced off from now on. */
int inbox_raise(const struct inbox *s, const char *run, const char *device,
    uint64_t *n, struct err *e);
/* inbox_lock(s, run, how, fd, e): the run's, LOCK_SH or LOCK_EX; close(fd)
 * gives it back. */
int inbox_lock(const struct inbox *s, const char *run, int how, int *fd,
    struct err *e);

/* inbox_aggregate(s, run, step, path, e): where a step's aggregate is: an enum
 * inbox_when; HERE: at *path, allocated. */
enum inbox_when { INBOX_COMING, INBOX_HERE, INBOX_NEVER };
int inbox_aggregate(const struct inbox *s, const char *run, uint64_t step,
    char **path, struct err *e);

#endif
