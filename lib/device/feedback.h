/*
 * Error feedback in a state directory: its files and the order in which they change.  The
 * arithmetic is in sync/compensate.h.
 *
 * The rename of the file `residual' commits a step.  Some kinds of feedback also have
 * `history.STEP' (momentum: the sum u), written and synced before, which the residual refers
 * to by step.
 *
 * A shard whose receipt says rejected is taken back as if it had never been sent: its decoded
 * values are added to the next target, and with cache the history before it is used again.
 *
 * A state that was lost or restored from a backup does not know what it has sent since.  Its
 * residual could deliver values twice, so it begins again, empty, as a new incarnation
 * (feedback_restart).  The method is ours.
 */
#ifndef ACE_FEEDBACK_H
#define ACE_FEEDBACK_H

#include "base/num.h"
#include "codec/codec.h"
#include "device/residual.h"
#include "kern/kern.h"
#include "sync/compensate.h"

struct err;

extern const char *const feedback_names[];	/* for num_choice */

struct feedback_opts {
	enum compensate_kind kind;
	double gamma;		/* of equation (7), if e is added here */
	double momentum;	/* m */
	double decay;		/* rho */
	int gap;		/* steps may be missing */
	int raw;		/* keep unbiased codes unbiased: feedback_raw */
	/* most shards without a receipt; 0: sent shards count as delivered until the
	 * state has a receipt */
	unsigned window;
	/* seconds to wait for a receipt when the window is full */
	double wait;
	/* 1: shards go to standard output; stop waiting when it has no reader any
	 * more */
	int piped;
	enum io_sync sync;
	struct memories *later;	/* what other stages save with a step, or NULL */
};

struct feedback;

int feedback_open(struct feedback **out, const char *dir,
    const struct feedback_opts *o, struct err *e);
void feedback_free(struct feedback *f);

/* Write the pending shards of steps before `before' to w again, oldest first. Call
 * once, before the first shard. */
int feedback_resume(struct feedback *f, uint64_t before, struct writer *w,
    struct err *e);

/* Begin the step of shard sh. 0: continue with its groups; 1: the step is committed
 * already, and only feedback_send remains. -ERR_REFUSED for a missing step, one older
 * than the state's, or one to which another residual was added upstream; -ERR_DATA
 * "mismatch: ..." for another run, device or model. */
int feedback_begin(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* Return the residual and the coded shard in progress. Values may wait in its file in
 * place of the residuals of these groups, which have the same size, but only if nothing
 * is kept beside the residual. */
struct residual_new *feedback_next(const struct feedback *f);
/* Return the state directory, for what is remembered with a step. */
const struct statedir *feedback_state(const struct feedback *f);
/* Open an unnamed temporary file in the state. */
int feedback_scratch(const struct feedback *f, int *fd, struct err *e);

/* Return 1 and how group g was coded in the previous shard in *c; 0: it was not
 * sent. */
int feedback_last(struct feedback *f, uint32_t g, struct codec_last *c,
    struct err *e);

/* Return 1 if this kind of feedback keeps an array u beside the residual (momentum or
 * history); 0: u is unused below. */
int feedback_beside(const struct feedback *f);

/* Return 1 if nothing is added to the input before coding. */
int feedback_plain(const struct feedback *f);

/* feedback_raw: return 0 if unbiased codes are made contracting (codec_contracting). 1:
 * they are not, and with a variance above 1 the residual grows without bound.
 * feedback_growing: after feedback_commit, return the number of consecutive shards,
 * including this one, that sent something while the residual did not become smaller
 * than the target. */
int feedback_raw(const struct feedback *f);
unsigned feedback_growing(const struct feedback *f);

/* Compute the target of each group in rising order. v f32[n]: the input's values, or
 * NULL if the group is absent; a f32[n] receives the values to code, u f32[n] what is
 * kept beside. Nothing is added to exact types (schema_exact). Return 1 if all is zero:
 * nothing to code or keep. Return 0: call feedback_settle for it once it is known how
 * the group is coded, again in rising order. */
int feedback_target(struct feedback *f, uint32_t g, const float *v, size_t n,
    float *a, float *u, struct err *e);

/* A coded group: its bytes on the wire and its decoded values. */
struct feedback_code {
	uint32_t codec;
	uint8_t param;
	const struct buf *body;
	const float *dec;
};
/* Keep what code c lost, and write c to the coded shard; c NULL: the group is not sent.
 * seen: statistics of a, or NULL. Overwrites a and u. */
struct kern_stat;
int feedback_settle(struct feedback *f, uint32_t g, float *a, float *u,
    size_t n, const struct kern_stat *seen, const struct feedback_code *c,
    struct err *e);

/* Commit the step to the state, and only then write the rest of the coded shard with
 * its end to w. */
int feedback_commit(struct feedback *f, uint64_t step, struct writer *w,
    struct err *e);
/* Write the shard of that step, committed before, to w. */
int feedback_send(struct feedback *f, uint64_t step, struct writer *w, struct err *e);

/* What a restarted state no longer has. */
struct feedback_lost {
	enum { LOST_NOTHING_THERE, LOST_UNREADABLE, LOST_RESIDUAL, LOST_BEFORE } what;
	uint64_t step;		/* of the residual */
	double norm;		/* Euclidean */
	size_t pending;		/* shards not known to be delivered */
};

/* Remove the residual, the pending shards and what is kept beside them; the next shard
 * is the first of incarnation n. -ERR_REFUSED if the state has this incarnation or a
 * later one. After a failure the state is unchanged, or the same call completes the
 * work; LOST_BEFORE: it was complete. The caller holds statedir_lock. */
int feedback_restart(const struct statedir *s, uint64_t n,
    struct feedback_lost *l, struct err *e);

/* ---- the receiver's side of ef21 and cache ---- */

/* Keys of the residual: how the state was made; the step of the history before its
 * own. */
#define FEEDBACK_KEY_STATE "feedback"
#define FEEDBACK_KEY_BEFORE "before"
#define FEEDBACK_KEY_KEEPS "keeps"	/* shards stay until their receipts come */

enum { CACHE_NAME = 32 };	/* file name "history.STEP" with its NUL */

/* Return how the values of shard sh, a difference, are reconstructed, and in *base the
 * stamp of the required history; "none": zeros. */
int feedback_cache_how(struct compensate *c, const struct shard *sh,
    const char **base, struct err *e);

struct feedback_cache;
/* dir: the receiver's folder, one per device. lock 1: create and lock it, and store
 * reconstructions there; 0: only read it; it need not exist. */
int feedback_cache_open(struct feedback_cache **out, const char *dir, int lock,
    struct err *e);
void feedback_cache_free(struct feedback_cache *c);
/* Return 0: the shard is no difference; 1: it is a difference to a history in dir, or
 * to none; -ERR_REFUSED: to another history. to: where the reconstruction is written,
 * owned from now on; NULL: a file in dir. */
int feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct io *to, struct err *e);
/* Replace x f32[n], the decoded values or zeros if the group was not sent, by the
 * receiver's reconstruction. */
int feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent,
    float *x, size_t n, struct err *e);
/* Call before the shard's end is written: make the reconstruction the history of the
 * next shard, or end it where the caller asked to write it. */
int feedback_cache_commit(struct feedback_cache *c, enum io_sync sync, struct err *e);
/* Return the file that the shard was a difference to; "": none. */
const char *feedback_cache_was(const struct feedback_cache *c);

#endif
