/*
 * Error feedback in a state directory: which files there are, and in which
 * order they change.  The arithmetic is in sync/compensate.h.
 *
 * There is the file `residual', whose rename is the commit of a step, and with
 * some kinds of feedback `history.STEP' (of momentum the sum u), written and synced
 * before it, which the residual refers to by step.
 *
 * A shard whose receipt says that it was rejected is taken back as if it had
 * never been sent: its decoded values are added to what is coded next, and
 * with cache the history before it counts again.
 *
 * A state that was lost, or that came from a backup, does not know what it has
 * sent since.  To keep its residual could deliver values twice, so that it begins
 * again as a new incarnation, with nothing (feedback_restart).  The method is
 * ours.
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
	double gamma;		/* of equation (7), where e is added here */
	double momentum;	/* m */
	double decay;		/* rho */
	int gap;		/* steps may be missing */
	int raw;		/* unbiased codes stay so: feedback_raw */
	unsigned window;	/* shards without a receipt, at most; 0: what
				   is sent is taken for delivered until the
				   state has a receipt */
	double wait;		/* seconds to wait for a receipt when there are
				   as many as that */
	int piped;		/* 1: shards go to standard output, and waiting
				   ends when nobody reads it any more */
	enum io_sync sync;
	struct memories *later;	/* what other stages save with a step, or NULL */
};

struct feedback;

int feedback_open(struct feedback **out, const char *dir,
    const struct feedback_opts *o, struct err *e);
void feedback_free(struct feedback *f);

/* feedback_resume(f, before, w, e): writes the pending shards of steps before
 * `before' to w again, oldest first.  To be called once, before the first
 * shard. */
int feedback_resume(struct feedback *f, uint64_t before, struct writer *w,
    struct err *e);

/* feedback_begin(f, sh, sc, e): begins the step of shard sh.  0: go on with
 * its groups; 1: this step was committed before, and only feedback_send is
 * left to do.  -ERR_REFUSED for a step that is missing, older than the
 * state's, or to which another residual was added upstream; -ERR_DATA
 * "mismatch: ..." for another run, device or model. */
int feedback_begin(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* feedback_next(f): the residual and the coded shard that are being made.  Values
 * may wait in its file where these groups' residuals will be, which are as long,
 * but only with a residual and nothing beside. */
struct residual_new *feedback_next(const struct feedback *f);
/* feedback_state(f): the state directory, for what is remembered with a step. */
const struct statedir *feedback_state(const struct feedback *f);
/* feedback_scratch(f, fd, e): an unnamed temporary file in the state. */
int feedback_scratch(const struct feedback *f, int *fd, struct err *e);

/* feedback_last(f, g, c, e): 1 and *c is how group g was coded in the shard
 * before; 0: it was not sent in it. */
int feedback_last(struct feedback *f, uint32_t g, struct codec_last *c,
    struct err *e);

/* feedback_beside(f): 1 when this kind of feedback keeps an array u beside the
 * residual (momentum or history); 0: u is not used below. */
int feedback_beside(const struct feedback *f);

/* feedback_plain(f): 1 when what is to be coded of a group is what came, and
 * nothing is added to it here. */
int feedback_plain(const struct feedback *f);

/* feedback_raw(f): 0: codes without bias are made contractions, as
 * codec_contracting says; 1: they are not, and with a variance above 1 what is
 * left grows without bound.
 * feedback_growing(f): behind feedback_commit: in so many shards in a row, this
 * one included, something was sent and what was left was no less than what was
 * to be sent. */
int feedback_raw(const struct feedback *f);
unsigned feedback_growing(const struct feedback *f);

/* feedback_target(f, g, v, n, a, u, e), for groups in rising order: v f32[n]
 * are the input's values, or NULL when it does not have the group; a f32[n]
 * becomes what is to be coded, u f32[n] what is kept beside it.  Where values mean
 * only themselves nothing is added to them.  1: all of it
 * is zero, and nothing is to be coded or kept.  0: once it is known how the
 * group is coded, feedback_settle has to be called for it, again in rising
 * order. */
int feedback_target(struct feedback *f, uint32_t g, const float *v, size_t n,
    float *a, float *u, struct err *e);

/* One coded group: what goes on the wire and what it decodes to. */
struct feedback_code {
	uint32_t codec;
	uint8_t param;
	const struct buf *body;
	const float *dec;
};
/* feedback_settle(f, g, a, u, n, seen, c, e): keeps what the code c lost, and
 * writes it to the coded shard; c NULL: the group is not sent.  seen: the
 * statistics of a, or NULL where they are not known.  Overwrites a and u. */
struct kern_stat;
int feedback_settle(struct feedback *f, uint32_t g, float *a, float *u,
    size_t n, const struct kern_stat *seen, const struct feedback_code *c,
    struct err *e);

/* feedback_commit(f, step, w, e): commits that step to the state, and only then
 * writes the coded shard's end to w, and what was not written of it before. */
int feedback_commit(struct feedback *f, uint64_t step, struct writer *w,
    struct err *e);
/* feedback_send(f, step, w, e): writes the shard of that step, which was
 * committed before, to w. */
int feedback_send(struct feedback *f, uint64_t step, struct writer *w,
    struct err *e);

/* What a restarted state no longer keeps. */
struct feedback_lost {
	enum { LOST_NOTHING_THERE, LOST_UNREADABLE, LOST_RESIDUAL } what;
	uint64_t step;		/* of the residual */
	double norm;		/* Euclidean */
	size_t pending;		/* shards that were not known to be delivered */
};

/* feedback_restart(s, n, l, e): removes the residual, the pending shards and what
 * is kept beside them; the next shard is the first of incarnation n.  -ERR_REFUSED
 * when the state is of that incarnation or of a later one.  Where it fails in
 * between, the state is as it was, or the same call again finishes.  The caller
 * holds statedir_lock. */
int feedback_restart(const struct statedir *s, uint64_t n,
    struct feedback_lost *l, struct err *e);

/* ---- the receiver's side of ef21 and cache ---- */

/* Keys of the residual: how the state was made; the step of the history before
 * its own. */
#define FEEDBACK_KEY_STATE "feedback"
#define FEEDBACK_KEY_BEFORE "before"
#define FEEDBACK_KEY_KEEPS "keeps"	/* shards stay until their receipts come */

enum { CACHE_NAME = 32 };	/* a file name, "history.STEP", and a zero */

/* feedback_cache_how(c, sh, base, e): how the values of shard sh, a difference,
 * are reconstructed, and the stamp of the history they need, "none": zeros. */
int feedback_cache_how(struct compensate *c, const struct shard *sh,
    const char **base, struct err *e);

struct feedback_cache;
/* feedback_cache_open: dir is the receiver's, one for each device.  lock 1: it is
 * made and locked, and what is reconstructed is put there; 0: it is only read,
 * and need not be there. */
int feedback_cache_open(struct feedback_cache **out, const char *dir, int lock,
    struct err *e);
void feedback_cache_free(struct feedback_cache *c);
/* feedback_cache_begin(c, sh, sc, to, e): 0: the shard is not a difference; 1: it
 * is one to a history that dir holds, or to none; -ERR_REFUSED: it is one to
 * another history.  to: what is reconstructed is written there, and owned from now
 * on; NULL: it becomes a file of dir. */
int feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct io *to, struct err *e);
/* feedback_cache_group: x f32[n], decoded, and zeros if the group was not sent,
 * becomes what the receiver reconstructs. */
int feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent,
    float *x, size_t n, struct err *e);
/* feedback_cache_commit: at the shard's end, before its end is written: makes
 * what was reconstructed the history of the next shard, or, where the caller said
 * where to write, ends it there. */
int feedback_cache_commit(struct feedback_cache *c, enum io_sync sync,
    struct err *e);
/* feedback_cache_was(c): the file that the shard was a difference to; "": none. */
const char *feedback_cache_was(const struct feedback_cache *c);

#endif
