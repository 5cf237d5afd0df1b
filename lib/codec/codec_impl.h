/*
 * The row of the table in codec.h, which each codec's file defines. Only this folder
 * includes this header. examples/README.md tells how to add a codec.
 */
#ifndef ACE_CODEC_IMPL_H
#define ACE_CODEC_IMPL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/codec.h"

struct estimate;
struct kern;

/* One group, for encode and again; n > 0, x is finite. */
struct codec_in {
	const struct codec_plan *plan;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	const float *x;
	size_t n;
	uint32_t max_bits;	/* f32 bits of the largest magnitude; 0 for again */
	const struct codec_last *last;	/* last body of the group, or NULL */
	float *y;		/* [n] receives the decoded values, or NULL: see gives_y */
	const struct kern_stat *seen;	/* statistics of x, or NULL: see codec_seen */
};

/* Return the statistics of in->x: in->seen or, if that is NULL, s, which is filled in. */
const struct kern_stat *codec_seen(const struct codec_in *in, struct kern_stat *s);

/* One body to decode; n > 0, the parameter was checked. */
struct codec_out {
	uint32_t codec;
	uint8_t param;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	float *x;
	size_t n;
};

/* The row. name, parse, bound, encode, and decode or list, are required. A property that is
 * 0 does not hold. The comments of the other function pointers say what NULL means. */
struct codec_impl {
	const char *name;	/* at most 9 characters */

	/* ---- the argument ---- */
	/* parse arg, the text after the colon, or NULL; return 0 or -ERR_USAGE */
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
	/* write what follows the name, ":0.01" or "", into buf; NULL: "" */
	void (*format)(const struct codec_plan *plan, char buf[CODEC_ARG]);
	/* another name for some plans, or NULL, and the parser of its argument. title:
	 * return the name under which a plan is shown, without its argument; NULL: name */
	const char *alias;
	int (*parse_alias)(const char *arg, struct codec_plan *plan, struct err *e);
	const char *(*title)(const struct codec_plan *plan);
	/* make the plan coarser by the factor f > 0, within the codec's range; NULL if the argument
	 * cannot be changed gradually (codec_rate) */
	void (*turn)(struct codec_plan *plan, double f);
	/* set plan->arg to the argument that the body was coded with and return 1; if the
	 * body does not contain it, return 0. NULL: no body contains it */
	int (*turned)(struct codec_plan *plan, const unsigned char *body, size_t len);

	/* ---- encoding and decoding ---- */
	size_t (*bound)(const struct codec_plan *plan, size_t n);	/* see codec_bound */
	/* size of the body of values that are not all 0; NULL if the bound is exact or
	 * the size depends on the values */
	size_t (*size)(const struct codec_plan *plan,
	    const struct codec_ctx *ctx, size_t n);
	/* append the body to out, which has room for bound() bytes. On entry *param is
	 * the plan's, or 0 if encode chooses it (see open) */
	int (*encode)(const struct codec_in *in, struct buf *out,
	    uint8_t *param, struct err *e);
	/* decode b; the caller refuses the body if bytes are left over */
	int (*decode)(const struct codec_out *o, struct bytes *b, struct err *e);
	/* for a sparse codec, in place of decode: list the body's values; o->x is NULL */
	int (*list)(const struct codec_out *o, struct bytes *b,
	    struct codec_list *l, struct err *e);
	/* set y f32[n] to exactly what decode returns for body b, which encode made from
	 * in, but faster. Return 1 if the caller must decode instead. NULL: always decode */
	int (*again)(const struct codec_in *in, struct bytes *b, float *y,
	    struct err *e);
	uint8_t min_param, max_param;	/* other parameters are unsupported */
	/* 1: unbiased, or contracting if the argument is CODEC_LEAST (codec_contracting) */
	uint8_t unbiased;
	uint8_t raw;		/* 1: decode accepts values that are not finite */
	/* if not 0, encode chooses the record's parameter; a plan's is at most `open' */
	uint8_t open;
	uint8_t after;		/* 1: encode uses in->last */
	/* 1: in->seen is never NULL in encode; it gives max_bits without another pass over x */
	uint8_t sums;
	/* 1: encode sets y[n], unless it is NULL, to exactly the decoded values */
	uint8_t gives_y;

	/* ---- properties and estimates ---- */
	uint8_t dense;		/* 1: every value is coded, as precisely as by q8 or better */
	/* least effort at which codec_shared may return this codec; 0: it never does */
	uint8_t effort;
	/* 1: unless all values are 0, a body has size() bytes or, if size is NULL, bound() bytes */
	uint8_t fixed;
	/* if the plan's argument is below this, most values, or all small ones, become 0
	 * (codec_sparse) */
	float sparse_below;
	/* estimate bytes and error for estimate_coding. On entry *bytes is the size if that is
	 * fixed, else -1; *error is 0 if codec_exact, else -1. NULL: both keep these values */
	void (*estimate)(const struct codec_plan *plan,
	    const struct estimate *m, int64_t *bytes, double *error);
};

/* Return the row with that number, or an empty row without a name. */
const struct codec_impl *codec_row(uint32_t codec);

/* Set e for a body that no encoder can have written, and return -ERR_DATA. */
#define CODEC_LENGTH "the body has another length than its values"
int codec_corrupt(const char *codec, const char *what, struct err *e);

/* Make room for k values and set l->k. Return 0 or -ERR_SYS. */
int codec_list_room(struct codec_list *l, size_t k, struct err *e);

/* The parse function of codecs without an argument. */
int codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e);
/* The parse and format functions of codecs whose argument is the parameter byte. */
int codec_param_parse(const char *arg, struct codec_plan *plan, struct err *e);
void codec_param_format(const struct codec_plan *plan, char buf[CODEC_ARG]);

/* Argument of a plan made by codec_contracting: use the scale with the least error. Streams
 * cannot hold it. */
#define CODEC_LEAST INFINITY

#define CODEC_ROW(number, name, row) extern const struct codec_impl row;
CODEC_TABLE(CODEC_ROW)
#undef CODEC_ROW

#endif
