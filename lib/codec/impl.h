/*
 * What a codec is: the row that its own file has, and table.h names.  Not for
 * other layers; examples/README.md tells how a codec is added.
 */
#ifndef ACE_CODEC_IMPL_H
#define ACE_CODEC_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/codec.h"

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
};

/* One body on its way to a group; n > 0, param was accepted. */
struct codec_out {
	uint8_t param;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	float *x;
	size_t n;
};

/* Another name for some of a codec's plans: the number is the codec's, parse
 * says what it means. */
struct codec_alias {
	const char *name;
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
};

/*
 * The row.  What is left out (0, NULL) is not so, or is as said here; name,
 * parse, bound, encode and decode are always there.
 */
struct codec_impl {
	const char *name;	/* at most 9 characters */

	/* ---- the argument ---- */
	/* 0, or -ERR_USAGE; what follows the colon, NULL when there is none */
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
	/* what follows the name, ":0.01" or "", into buf */
	void (*format)(const struct codec_plan *plan, char buf[CODEC_ARG]);
	/* other names, the last without one; which of them a plan has, whose
	 * argument format's text is */
	const struct codec_alias *alias;
	const char *(*title)(const struct codec_plan *plan);
	/* the knob: the same, coarser by f > 0, within its range.  NULL: there
	 * is none */
	void (*turn)(struct codec_plan *plan, double f);

	/* ---- the bytes ---- */
	size_t (*bound)(const struct codec_plan *plan, size_t n);
	/* of values that are not all 0; NULL: the bound, or they matter */
	size_t (*size)(const struct codec_plan *plan,
	    const struct codec_ctx *ctx, size_t n);
	/* appends to out; room for bound() bytes is there, *param is 0 */
	int (*encode)(const struct codec_in *in, struct buf *out,
	    uint8_t *param, struct err *e);
	/* b holds the body; may leave bytes, which the table refuses */
	int (*decode)(const struct codec_out *o, struct bytes *b,
	    struct err *e);
	uint8_t max_param;	/* greater: unsupported */
	uint8_t raw;		/* may carry values that are not finite */
	uint8_t open;		/* encode may write another param than the
				 * plan's */
	uint8_t after;		/* encode looks at the last body */

	/* ---- what it is, what it costs ---- */
	uint8_t dense;		/* every value takes 8 bits or more */
	uint8_t fixed;		/* size, or the bound, is exact */
	float sparse_below;	/* most values, or all small ones, become zero
				 * where the plan's argument is below this */
	/* rate and error as codec_foretell's, which has set the rate, where it
	 * is fixed, and otherwise both to -1; NULL: so they stay */
	void (*foretell)(const struct codec_plan *plan,
	    const struct estimate *m, int64_t *rate, double *error);
};

/* The error of a body that lies. */
int codec_corrupt(const char *codec, const char *what, struct err *e);

/* impl_... of codecs without an argument */
int codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e);

#define CODEC_ROW(number, name, row) extern const struct codec_impl row;
CODEC_TABLE(CODEC_ROW)
#undef CODEC_ROW

#endif
