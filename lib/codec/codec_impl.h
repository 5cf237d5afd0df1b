/*
 * What a codec consists of: the row that its own file defines and the table of
 * codec.h names.  Other layers do not include this; examples/README.md tells how
 * a codec is added.
 */
#ifndef ACE_CODEC_IMPL_H
#define ACE_CODEC_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/codec.h"

struct estimate;
struct kern;

/* One group on its way into a body.  n > 0, x is finite. */
struct codec_in {
	const struct codec_plan *plan;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	const float *x;
	size_t n;
	uint32_t max_bits;	/* of the largest magnitude */
	const struct codec_last *last;	/* or NULL */
	float *y;		/* or NULL: see tells */
	const struct kern_stat *seen;	/* of x; or NULL: see codec_seen */
};

/* codec_seen(in, s): the statistics of in->x: those that are known, or *s, which
 * becomes them. */
const struct kern_stat *codec_seen(const struct codec_in *in,
    struct kern_stat *s);

/* One body on its way to a group; n > 0, param was accepted. */
struct codec_out {
	uint8_t param;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	float *x;
	size_t n;
};

/* Another name for some of a codec's plans.  The record keeps the codec's own
 * number; parse turns the name's argument into the plan. */
struct codec_alias {
	const char *name;
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
};

/*
 * The row.  name, bound, encode, and decode or list, are required.  A property
 * left 0 does not hold; what a function left NULL means is said beside it.
 */
struct codec_impl {
	const char *name;	/* at most 9 characters */

	/* ---- the argument ---- */
	/* 0, or -ERR_USAGE; arg is what follows the colon, NULL when there
	 * is no colon.  NULL: nobody chooses the codec by its name */
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
	/* writes what follows the name, ":0.01" or "", into buf */
	void (*format)(const struct codec_plan *plan, char buf[CODEC_ARG]);
	/* the other names, ended by an entry without a name; title returns
	 * the name under which a plan is shown, with format's argument */
	const struct codec_alias *alias;
	const char *(*title)(const struct codec_plan *plan);
	/* makes the plan coarser by f > 0, within the codec's range; NULL
	 * when the argument is no knob (codec_knob) */
	void (*turn)(struct codec_plan *plan, double f);
	/* the plan that this body was coded by: 1, or 0 where the body does not
	 * say; NULL: none does */
	int (*turned)(struct codec_plan *plan, const unsigned char *body,
	    size_t len);

	/* of a codec without bias: codec_contracting */
	void (*contract)(struct codec_plan *plan);

	/* ---- the bytes ---- */
	size_t (*bound)(const struct codec_plan *plan, size_t n);
	/* the bytes of a body of values that are not all 0; NULL when the
	 * bound is exact, or when the size depends on the values */
	size_t (*size)(const struct codec_plan *plan,
	    const struct codec_ctx *ctx, size_t n);
	/* appends to out; room for bound() bytes is there, *param is the plan's,
	 * or 0 where encode says it (open) */
	int (*encode)(const struct codec_in *in, struct buf *out,
	    uint8_t *param, struct err *e);
	/* b holds the body; the caller refuses a body of which decode leaves
	 * bytes unread */
	int (*decode)(const struct codec_out *o, struct bytes *b,
	    struct err *e);
	/* of a sparse codec, instead of decode: the values that are in the
	 * body; o->x is NULL */
	int (*list)(const struct codec_out *o, struct bytes *b,
	    struct codec_list *l, struct err *e);
	/* optional: y f32[n] becomes what decode makes of body b, which encode
	 * made of in, bit for bit and sooner; 1: decode has to */
	int (*again)(const struct codec_in *in, struct bytes *b, float *y,
	    struct err *e);
	uint8_t min_param, max_param;	/* others: unsupported */
	uint8_t flag_param;	/* bits that any of them may have, too */
	uint8_t raw;		/* may carry values that are not finite */
	uint8_t open;		/* encode may write another param than the
				 * plan's, and that is at most this; or 0 */
	uint8_t after;		/* encode looks at the last body */
	uint8_t sums;		/* encode calls codec_seen: what is largest is
				 * taken from there, too */
	uint8_t tells;		/* encode fills y[n], where it is not NULL, with
				 * what decode makes of the body, bit for bit */

	/* ---- what it is, what it costs ---- */
	uint8_t dense;		/* every value takes 8 bits or more */
	uint8_t effort;		/* the argument is a step that all groups of a shard
				 * can share, and from this effort on it does:
				 * codec_shared; 0: it is none */
	uint8_t fixed;		/* size, or the bound, is exact */
	float sparse_below;	/* most values, or all small ones, become zero
				 * where the plan's argument is below this */
	/* predicts bytes and error as estimate_coding promises them.  On entry
	 * the bytes are set where they are fixed, and -1 otherwise; the error
	 * is -1.  NULL leaves them so */
	void (*foretell)(const struct codec_plan *plan,
	    const struct estimate *m, int64_t *bytes, double *error);
};

/* codec_row(codec): the row of that number; one without a name, of which nothing
 * else holds, when there is none. */
const struct codec_impl *codec_row(uint32_t codec);

/* codec_corrupt(codec, what, e): the error for a body that cannot have come
 * from the encoder. */
int codec_corrupt(const char *codec, const char *what, struct err *e);

/* codec_list_room(l, k, e): l->k = k, and room for so many; -ERR_SYS. */
int codec_list_room(struct codec_list *l, size_t k, struct err *e);

/* codec_no_arg: the parse of codecs that take no argument. */
int codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e);

#define CODEC_ROW(number, name, row) extern const struct codec_impl row;
CODEC_TABLE(CODEC_ROW)
#undef CODEC_ROW

#endif
