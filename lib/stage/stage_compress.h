/*
 * The stage of ace-compress: code every group by the plan. If the plan has a budget,
 * adjust the codecs' rates until the coded shard fills it. With a state, store the coding
 * error (error feedback) and the coded shard in one commit, before the end of the shard
 * is written. Before the commit, only segments whose plan is known or estimated
 * (device/shares.h) are written. Error feedback is:
 *
 *   acc = g + gamma e        C = code(acc)        e' = acc - dec(C)
 *
 * This is always the last stage, because it writes the coded shard itself.
 */
#ifndef ACE_STAGE_COMPRESS_H
#define ACE_STAGE_COMPRESS_H

#include "codec/codec.h"
#include "device/error_feedback.h"
#include "stage/stage.h"

struct err;
struct writer;

struct stage_compress_opts {
	const char *dir;		/* state directory, or NULL */
	int have_codec;			/* 1: code all groups with `codec' (-c) */
	struct codec_plan codec;
	struct feedback_opts fb;
	/* 0: make unbiased codes contracting (codec_contracting).  1: they stay unbiased, so the
	 * residual grows without bound if a code's relative variance is above 1 */
	int raw;
	const struct filter *f;		/* filter of the program; stage_new sets it */
};
#define STAGE_COMPRESS_INIT { .fb = { .gamma = 1, .decay = 0.9 } }
/* Options of the stage; a program adds FILTER_OPT_SYNC and FILTER_OPT_THREADS. */
extern const struct opt stage_compress_rows[];

/* The stage locks its state. */
extern const struct stage_kind stage_compress;
/* Set the writer of the coded shards, before any other call; stage_free frees the
 * writer. */
void stage_compress_to(struct stage *s, struct writer *w);

#endif
