/*
 * The stage of ace-select: write the codec of each group into an annotation, and pass
 * the values unchanged.  The plan is one of three:
 *
 *   - the most important groups up to a share of all importance, equation (2);
 *   - the least weighted error within a budget of bytes (sync/allot.h);
 *   - a plan that the user gives.
 *
 * The first two follow the values, the third precedes them.
 */
#ifndef ACE_STAGE_SELECT_H
#define ACE_STAGE_SELECT_H

#include "codec/codec.h"
#include "format/plan_text.h"
#include "stage/stage.h"

struct err;

enum { STAGE_SELECT_MOST = 32 };	/* codecs in --levels, and in -p */

enum stage_select_mode {
	STAGE_SELECT_UNSAID, STAGE_SELECT_SHARE, STAGE_SELECT_BUDGET,
	STAGE_SELECT_GIVEN
};

/* How the bytes of a coded shard were asked for. */
enum stage_select_by { STAGE_SELECT_BY_BYTES, STAGE_SELECT_BY_BITS,
    STAGE_SELECT_BY_POLICY };

struct stage_select_budget {
	enum stage_select_by by;
	uint64_t bytes;
	double bits;		/* a value */
};

/* Of -p: the most important groups up to a share, how, and in which steps. */
struct stage_select_upto {
	double share;
	struct codec_plan codec;
	uint32_t every;		/* each so many steps; >= 1 */
};

struct stage_select_opts {
	enum stage_select_mode mode;
	const char *said;		/* name of the option that said so */
	struct stage_select_budget want;
	struct codec_plan level[STAGE_SELECT_MOST + 1];
	size_t m;			/* 0: the default */
	uint32_t shared;		/* of these one at any step (codec_shared), or
					 * CODEC_NONE */
	uint64_t effort;		/* 0: not said */
	struct stage_select_upto upto[STAGE_SELECT_MOST];	/* shares rise */
	size_t shares;
	int count;			/* they are of the values' number */
	int kept;			/* what is not sent: 1 is, -1 is not, 0
					 * who codes knows */
	struct plan_text given;
	const struct filter *f;		/* the program's: set by make */
};
extern const struct opt stage_select_rows[];	/* its options */

extern const struct stage_kind stage_select;
/* stage_select_waits(o): 1 when some groups leave at longer intervals, so that what
 * they have meanwhile has to be kept. */
int stage_select_waits(const struct stage_select_opts *o);
void stage_select_release(struct stage_select_opts *o);

#endif
