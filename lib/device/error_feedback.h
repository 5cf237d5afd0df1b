/*
 * Error feedback in a state directory: its files and the order in which they change.  The
 * arithmetic is in sync/compensate.h.
 *
 * The rename of the file `residual' commits a step.  With cache the history is a file
 * `history.STEP', which is complete, and durable with IO_SYNC_FULL, before the rename.  The
 * residual has the step of its history.
 *
 * When a receipt says that a shard was rejected, the shard is undone: its decoded values
 * are added to the next target, and with cache the previous history is used again, or zeros
 * if there is none or the shard was invalid.
 *
 * A state restored from a backup does not know which shards were sent after the backup, so
 * its residual could deliver values twice.  After a restore or a loss, feedback_restart
 * removes the residual and the history, and begins a new incarnation.  The method is ours.
 */
#ifndef ACE_ERROR_FEEDBACK_H
#define ACE_ERROR_FEEDBACK_H

#include "base/num.h"
#include "codec/codec.h"
#include "device/residual.h"
#include "kern/kern.h"

struct err;

enum feedback_kind { FEEDBACK_EF, FEEDBACK_CACHE };	/* the equations of compensate.h */
extern const char *const feedback_names[];	/* names of the kinds, for num_choice */

struct feedback_opts {
	enum feedback_kind kind;
	double gamma;		/* gamma of equation (7), if the residual is added here */
	double decay;		/* rho of sync/compensate.h */
	int gap;		/* 1: accept a step although steps before it are missing */
	/* limit on shards without a receipt (with cache it is 1); 0: PENDING_MAX and, if no earlier
	 * call had a limit, count sent shards as delivered until the first receipt */
	unsigned window;
	/* seconds to wait for a receipt when `window' shards have none */
	double wait;
	/* 1: shards go to standard output; stop waiting when it has no reader */
	int piped;
	enum io_sync sync;
};

struct feedback;

int feedback_open(struct feedback **out, const char *dir,
    const struct feedback_opts *o, struct err *e);
void feedback_free(struct feedback *f);

/* Write the shards of steps before `before' that still need a receipt to w again, oldest
 * first. Call once, before the first shard. */
int feedback_resume(struct feedback *f, uint64_t before, struct writer *w,
    struct err *e);

/* Begin the step of shard sh. Return 0: continue with its groups; 1: the step is committed
 * already, call feedback_send; -ERR_REFUSED if a step is missing, if this step is older
 * than the state's or, with cache, was refused as invalid, if an earlier program has added
 * another residual, if the state was made with another feedback, or if no receipt or average
 * came in time; -ERR_DATA "mismatch: ..." for another run, device or model. */
int feedback_begin(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* Return the residual and the coded shard in progress. The caller may keep a group's values
 * in the residual's file until the group is coded: its residual, of the same size, then
 * overwrites them. */
struct residual_new *feedback_next(const struct feedback *f);
const struct statedir *feedback_state(const struct feedback *f);

/* Set *c to the code of group g in the previous shard, valid until the next call, and return 1;
 * return 0 if that shard or the group in it is absent.  A smaller g than before takes longer:
 * the shard is read again from its beginning. */
int feedback_last(struct feedback *f, uint32_t g, struct codec_last *c,
    struct err *e);

/* Return 1 if the input is the target: an earlier program has added the residual, and no
 * shard was rejected. */
int feedback_plain(const struct feedback *f);

/* Set a f32[n] to the target of group g.  v f32[n]: the input's values; NULL: the group is
 * absent.  Nothing is added to exact types (schema_exact).  Return 1 if there is nothing to
 * code or keep.  Return 0 if the caller must code the group and then call feedback_settle.
 * Call both functions in rising order of g. */
int feedback_target(struct feedback *f, uint32_t g, const float *v, size_t n,
    float *a, struct err *e);

/* A coded group: its bytes on the wire and its decoded values. */
struct feedback_code {
	int sent;		/* 0: the group is not sent; codec, param and body are not set */
	uint32_t codec;
	uint8_t param;
	struct buf body;
	float *dec;		/* f32[n] decoded values; room, if sent is 0 */
	/* statistics; the caller sets target and, if sent, decoded; error: see feedback_error */
	struct kern_stat target, decoded, error;
};
/* feedback_error: set a f32[n], the target, to the error of code c, and c->error to its
 * statistics.  With a history, on which the error depends, do nothing: feedback_settle does it.
 * Threads may call this at the same time for different groups.
 * feedback_settle: after that, store a in the residual, and write c to the coded shard. */
void feedback_error(const struct feedback *f, float *a, size_t n, struct feedback_code *c);
int feedback_settle(struct feedback *f, uint32_t g, float *a, size_t n,
    struct feedback_code *c, struct err *e);

/* Commit the step of shard sh to the state.  After that, write the rest of the coded shard
 * to w.  Set *growing to the number of consecutive shards up to this one that sent values but
 * left a residual with a norm not below the target's. */
int feedback_commit(struct feedback *f, const struct shard *sh, struct writer *w,
    unsigned *growing, struct err *e);
/* Write the committed shard of the given step to w; -ERR_REFUSED if it is not pending. */
int feedback_send(struct feedback *f, uint64_t step, struct writer *w, struct err *e);

/* What feedback_restart has removed. */
struct feedback_lost {
	enum { LOST_NOTHING_THERE, LOST_UNREADABLE, LOST_RESIDUAL, LOST_BEFORE } what;
	uint64_t step;		/* step of the residual */
	double norm;		/* Euclidean norm of the residual */
	size_t pending;		/* shards not known to be delivered */
};

/* Remove the residual, the pending shards and the history; the next shard is the first of
 * incarnation n. -ERR_REFUSED if the residual is of incarnation n or later, or after a restart
 * with a larger number. After any other failure, call it again with the same n. l->what is
 * LOST_BEFORE if an earlier restart with n left no residual. The caller holds statedir_lock. */
int feedback_restart(const struct statedir *s, uint64_t n,
    struct feedback_lost *l, struct err *e);

/* ---- cache ---- */

/* Keys of the residual: the kind of feedback ("cache:0.9"); the previous history's step. */
#define FEEDBACK_KEY_STATE "feedback"
#define FEEDBACK_KEY_BEFORE "before"
#define FEEDBACK_KEY_KEEPS "keeps"	/* shards stay until their receipts come */

enum { CACHE_NAME = 32 };	/* file name "history.STEP" with its NUL */

/* The history before a step; the history after it, while that is written. */
struct feedback_history {
	struct dense h;		/* h.r NULL: zeros */
	struct writer *next;
	float rho;		/* see sync/compensate.h */
};
/* Reconstruct group g of a shard of schema sc in x f32[n], and write it to the next history.
 * If the group was sent, x has its decoded values on entry.  Call it in rising order of g. */
int feedback_history_group(struct feedback_history *q, const struct schema *sc,
    uint32_t g, int sent, float *x, size_t n, struct err *e);
void feedback_history_close(struct feedback_history *q);

/* sh is a difference: set *rho to its factor and *base to the stamp of the history that it
 * needs ("none": zeros). */
int feedback_cache_how(float *rho, const struct shard *sh, const char **base,
    struct err *e);

/* The receiver's side. */
struct feedback_cache;
/* Open the receiver's directory dir for one device. lock 1: create and lock it, and store
 * reconstructions in it. lock 0: do not; it need not exist, and feedback_cache_begin needs
 * `to'. Free *out also after a failure. */
int feedback_cache_open(struct feedback_cache **out, const char *dir, int lock,
    struct err *e);
void feedback_cache_free(struct feedback_cache *c);
/* Return 0 if the shard is not a difference, 1 if it is a difference to zeros or to a
 * history in dir; -ERR_REFUSED if it needs another history. Write the reconstruction to
 * `to', which c owns unless this returns 0, or to a file in dir if `to' is NULL. */
int feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct io *to, struct err *e);
/* Reconstruct a group as feedback_history_group does, if the shard is a difference. */
int feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent,
    float *x, size_t n, struct err *e);
/* Make the reconstruction the history for the next shard or, with `to', end that file.
 * Call this before the shard's end is written. */
int feedback_cache_commit(struct feedback_cache *c, enum io_sync sync, struct err *e);
/* Remove the histories of the steps up to `last', except that of the shard and that to which
 * it is a difference. */
void feedback_cache_prune(const struct feedback_cache *c, uint64_t last);

#endif
