/*
 * The stage of ace-select: write the codec of each group into an annotation, and pass on
 * the values unchanged.  The plan is one of three:
 *
 *   - the most important groups up to a share of all importance or values, equation (2);
 *   - the least weighted error within a budget of bytes (sync/allot.h);
 *   - a plan that the user gives.
 *
 * A plan of the first two kinds follows the values, one of the third kind precedes them.
 */
#ifndef ACE_STAGE_SELECT_H
#define ACE_STAGE_SELECT_H

#include "codec/codec.h"
#include "format/plan_text.h"
#include "stage/stage.h"

struct err;

enum { STAGE_SELECT_MOST = 32 };	/* most codecs in --levels, and in -p */

enum stage_select_mode {
	STAGE_SELECT_UNSAID, STAGE_SELECT_SHARE, STAGE_SELECT_GIVEN,
	/* a budget for the coded shard: in bytes, in bits per value, or of the policy */
	STAGE_SELECT_BYTES, STAGE_SELECT_BITS, STAGE_SELECT_POLICY
};

/* An item of -p: the codec of the most important groups up to a share. */
struct stage_select_upto {
	double share;
	struct codec_plan codec;
	uint32_t every;		/* send these groups every `every' steps; >= 1 */
};

struct stage_select_opts {
	enum stage_select_mode mode;
	uint64_t bytes;			/* of STAGE_SELECT_BYTES */
	double bits;			/* of STAGE_SELECT_BITS */
	struct codec_plan level[STAGE_SELECT_MOST + 1];	/* [m]: CODEC_NONE, codecs of --levels */
	size_t m;			/* 0: use the default levels */
	uint32_t shared;		/* the codec of --levels with a free step
					 * (codec_shares), or CODEC_NONE */
	uint64_t effort;		/* of --effort; 0: not given */
	struct stage_select_upto upto[STAGE_SELECT_MOST];	/* [shares] in rising order */
	size_t shares;
	int count;			/* 1: shares of the number of values, not of importance */
	int kept;			/* 1: values that are not sent are kept; -1: they
					 * are lost; 0: this is not known here */
	struct plan_text given;
	const struct filter *f;		/* filter of the program; stage_new sets it */
};
extern const struct opt stage_select_rows[];	/* options of the stage */

extern const struct stage_kind stage_select;
/* Return 1 if some groups are sent only every few steps, so that their values must be
 * kept until then. */
int stage_select_waits(const struct stage_select_opts *o);

#endif
