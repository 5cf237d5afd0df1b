/*
 * Error feedback as a state keeps it: the files, and the order in which they
 * change.  The arithmetic is in sync/compensate.h.
 *
 * A shard that was rejected (its receipt says so) never happened: its decoded
 * values are part of the next target, and for cache the history before it
 * counts again.
 *
 * Files: `residual' (the commit), and beside it `momentum.STEP' or
 * `history.STEP', written and synced before it, which it refers to by step.
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
	double gamma;		/* (7), when e is added here; 1 */
	double momentum;	/* m */
	double decay;		/* rho */
	int gap;		/* steps may be missing */
	unsigned window;	/* shards in flight; 0: delivery is taken for
				   granted until a receipt has been seen */
	double wait;		/* seconds for a receipt to make room */
	int piped;		/* to standard output: who waits for a receipt
				   leaves when nobody reads any more */
	enum io_sync sync;
};

struct feedback;

int feedback_open(struct feedback **out, const char *dir,
    const struct feedback_opts *o, struct err *e);
void feedback_free(struct feedback *f);

/* feedback_resume(f, before, w, e): sends again what is pending of steps
 * before `before' and has no receipt.  Once, before the first shard. */
int feedback_resume(struct feedback *f, uint64_t before, struct writer *w,
    struct err *e);

/* feedback_begin(f, sh, sc, e): a shard comes.  1: this step was coded before,
 * only feedback_send is left to do; 0: go on with the groups.  Refuses (5)
 * steps that are missing, repeated or compensated with another residual;
 * mismatches (3) of run, device, model. */
int feedback_begin(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* The coded shard that is being made: annotations go there. */
struct writer *feedback_writer(struct feedback *f);
/* feedback_scratch(f, fd, e): an unnamed temporary file in the state. */
int feedback_scratch(const struct feedback *f, int *fd, struct err *e);

/* feedback_last(f, g, c, e): 1 and *c is how group g was coded the last time,
 * 0: it was not. */
int feedback_last(struct feedback *f, uint32_t g, struct codec_last *c,
    struct err *e);

/* feedback_beside(f): 1 when something is kept beside the residual, u of
 * feedback_target and feedback_settle; 0: u is not used. */
int feedback_beside(const struct feedback *f);

/* feedback_target(f, g, v, n, a, u, e), in rising order: v f32[n], or NULL when
 * the input does not have the group; a f32[n] becomes what is to be coded, u
 * f32[n] what is kept beside it.  1: there is nothing to code and nothing to
 * keep.  For the others, when all is known, feedback_settle in rising order. */
int feedback_target(struct feedback *f, uint32_t g, const float *v, size_t n,
    float *a, float *u, struct err *e);

/* One coded group: what goes on the wire and what it decodes to. */
struct feedback_code {
	uint32_t codec;
	uint8_t param;
	const struct buf *body;
	const float *dec;
};
/* c NULL: not sent.  a and u are overwritten. */
int feedback_settle(struct feedback *f, uint32_t g, float *a, float *u,
    size_t n, const struct feedback_code *c, struct err *e);

/* feedback_commit(f, step, w, e): the commit of that step; after it, and not
 * before, the coded shard goes to w. */
int feedback_commit(struct feedback *f, uint64_t step, struct writer *w,
    struct err *e);
/* The shard of that step, as committed before, to w. */
int feedback_send(struct feedback *f, uint64_t step, struct writer *w,
    struct err *e);

/* ---- the receiver's side of ef21 and cache ---- */

/* Keys of a shard that is a difference to a history: the variant ("ef21",
 * "cache:0.9") and the stamp of the history it is a difference to. */
#define FEEDBACK_KEY "predict"
#define FEEDBACK_KEY_BASE "history"

struct feedback_cache;
/* feedback_cache_open: the receiver's directory; one for each device. */
int feedback_cache_open(struct feedback_cache **out, const char *dir,
    struct err *e);
void feedback_cache_free(struct feedback_cache *c);
/* feedback_cache_begin(c, sh, sc, e): 0 the shard is no difference; 1 it is, and
 * its history is ours; -ERR_REFUSED when it is another. */
int feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* x f32[n], decoded and zero if it was not sent, becomes r. */
int feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent,
    float *x, size_t n, struct err *e);
/* At the shard's end, before anything that depends on it is called done. */
int feedback_cache_commit(struct feedback_cache *c, enum io_sync sync,
    struct err *e);

#endif
