#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/codec_impl.h"
#include "kern/kern.h"

#define CODEC_AT(number, name, row) [number] = &row,
static const struct codec_impl *const table[CODEC_MAX] = {
	CODEC_TABLE(CODEC_AT)
};

const struct codec_impl *
codec_row(uint32_t codec)
{
	static const struct codec_impl none = { .open = 1 };	/* so codec_param returns -1 */

	return codec_known(codec) ? table[codec] : &none;
}

int
codec_corrupt(const char *codec, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: codec %s: %s", codec, what);
}

int
codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e)
{
	if (arg != NULL)
		return err_set(e, ERR_USAGE, "takes no argument");
	return 0;
}

int
codec_param_parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	const struct codec_impl *c = codec_row(plan->codec);
	float v = 0;
	int r = arg_number(arg, c->min_param, c->max_param, &v, e);

	plan->param = (uint8_t)v;
	if (r == 0 && (float)plan->param != v)
		return err_set(e, ERR_USAGE, "expected a whole number from %u to %u",
		    c->min_param, c->max_param);
	return r;
}

void
codec_param_format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	arg_print((float)plan->param, buf);
}

const char *
codec_name(uint32_t codec)
{
	return codec == CODEC_NONE ? "none" : codec_row(codec)->name;
}

const char *
codec_word(unsigned i)
{
	uint32_t k;

	for (k = 0; k < CODEC_MAX; k++) {
		if (table[k] == NULL)
			continue;
		if (i-- == 0)
			return table[k]->name;
		if (table[k]->alias != NULL && i-- == 0)
			return table[k]->alias;
	}
	return NULL;
}

uint32_t
codec_shared(unsigned effort)
{
	uint32_t k, best = CODEC_NONE;

	for (k = 0; k < CODEC_MAX; k++)
		if (table[k] != NULL && table[k]->effort != 0 &&
		    table[k]->effort <= effort && (best == CODEC_NONE ||
		    table[k]->effort > table[best]->effort))
			best = k;
	return best;
}

uint32_t
codec_shares(const char *name)
{
	uint32_t k;

	for (k = 0; k < CODEC_MAX; k++)
		if (table[k] != NULL && table[k]->effort != 0 &&
		    strcmp(table[k]->name, name) == 0)
			return k;
	return CODEC_NONE;
}

int
codec_known(uint64_t codec)
{
	return codec < CODEC_MAX && table[codec] != NULL;
}

/* Return 1 if a record of codec c may have this parameter byte. */
static int
takes(const struct codec_impl *c, uint8_t param)
{
	return param >= c->min_param && param <= c->max_param;
}

int
codec_takes(uint32_t codec, uint8_t param)
{
	const struct codec_impl *c = codec_row(codec);

	return c->name == NULL ? 0 : c->open != 0 ? param <= c->open : takes(c, param);
}

typedef int codec_parser(const char *, struct codec_plan *, struct err *);

/* Return the parser of codec c if the first len bytes of s are its name or its alias;
 * otherwise NULL. */
static codec_parser *
parser(const struct codec_impl *c, const char *s, size_t len)
{
	if (strlen(c->name) == len && memcmp(c->name, s, len) == 0)
		return c->parse;
	if (c->alias != NULL && strlen(c->alias) == len && memcmp(c->alias, s, len) == 0)
		return c->parse_alias;
	return NULL;
}

int
codec_parse(const char *s, struct codec_plan *plan, struct err *e)
{
	const char *colon = strchr(s, ':');
	size_t len = colon != NULL ? (size_t)(colon - s) : strlen(s);
	codec_parser *parse = NULL;
	uint32_t i;

	memset(plan, 0, sizeof(*plan));
	if (strcmp(s, "none") == 0) {
		plan->codec = CODEC_NONE;
		return 0;
	}
	for (i = 0; parse == NULL && i < CODEC_MAX; i++)
		if (table[i] != NULL) {
			parse = parser(table[i], s, len);
			plan->codec = i;
		}
	if (parse == NULL)
		return err_set(e, ERR_USAGE, "codec '%s' is unknown: see "
		    "ace-compress(1) for the names", s);
	if (parse(colon != NULL ? colon + 1 : NULL, plan, e) < 0)
		return err_before(e, -ERR_USAGE, "codec '%s': ", s);
	return 0;
}

const char *
codec_format(const struct codec_plan *plan, char buf[CODEC_TEXT])
{
	const struct codec_impl *c = codec_row(plan->codec);
	const char *name = codec_name(plan->codec);
	char arg[CODEC_ARG] = "";

	if (name == NULL) {
		(void)snprintf(buf, CODEC_TEXT, "codec-%lu",
		    (unsigned long)plan->codec);
		return buf;
	}
	if (c->title != NULL)
		name = c->title(plan);
	if (c->format != NULL)
		c->format(plan, arg);
	(void)snprintf(buf, CODEC_TEXT, "%.9s%.31s", name, arg);
	return buf;
}

int
codec_dense(const struct codec_plan *plan)
{
	return codec_row(plan->codec)->dense;
}

int
codec_sparse(const struct codec_plan *plan)
{
	return plan->arg < codec_row(plan->codec)->sparse_below;
}

int
codec_fixed(const struct codec_plan *plan)
{
	return plan->codec == CODEC_NONE || codec_row(plan->codec)->fixed;
}

struct codec_plan
codec_contracting(const struct codec_plan *plan)
{
	struct codec_plan p = *plan;

	if (codec_row(plan->codec)->unbiased)
		p.arg = CODEC_LEAST;
	return p;
}

int
codec_param(const struct codec_plan *plan)
{
	return codec_row(plan->codec)->open ? -1 : plan->param;
}

int
codec_after(const struct codec_plan *plan)
{
	return codec_row(plan->codec)->after;
}

int
codec_rate(const struct codec_plan *plan)
{
	return codec_row(plan->codec)->turn != NULL;
}

struct codec_plan
codec_turn(const struct codec_plan *plan, double f)
{
	struct codec_plan p = *plan;

	if (codec_rate(plan))
		codec_row(plan->codec)->turn(&p, f);
	return p;
}

int
codec_turned(const struct codec_last *last, struct codec_plan *plan)
{
	const struct codec_impl *c = codec_row(last->codec);

	*plan = (struct codec_plan){ last->codec, last->param, 0 };
	return c->turned != NULL && c->turned(plan, last->body, last->len);
}

size_t
codec_bound(const struct codec_plan *plan, size_t n)
{
	const struct codec_impl *c = codec_row(plan->codec);

	return c->name != NULL ? c->bound(plan, n) : 0;
}

size_t
codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx, size_t n)
{
	const struct codec_impl *c = codec_row(plan->codec);

	if (c->name == NULL || n == 0)
		return 0;
	return c->size != NULL ? c->size(plan, ctx, n) : c->bound(plan, n);
}

int
codec_encode(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, size_t n, struct buf *out, uint8_t *param, struct err *e)
{
	return codec_encode_after(plan, ctx, NULL, x, n, NULL, out, param, NULL, e);
}

const struct kern_stat *
codec_seen(const struct codec_in *in, struct kern_stat *s)
{
	if (in->seen != NULL)
		return in->seen;
	in->kern->stat(in->x, in->n, s);
	return s;
}

/* Set in->y to what a reader decodes from body b, or check that the encoder's y is finite. */
static int
fill_y(const struct codec_impl *c, const struct codec_in *in, uint8_t param,
    const unsigned char *b, size_t len, struct err *e)
{
	if (!c->gives_y)
		return codec_decode(in->plan->codec, param, in->ctx, b, len,
		    in->y, in->n, e);
	if (!c->raw && in->kern->max_bits(in->y, in->n) >= 0x7f800000)
		return err_set(e, ERR_DATA, "limit: codec %s rounds a value of the group beyond "
		    "the range of f32, 3.4e38: use codec f32, or smaller values", c->name);
	return 0;
}

int
codec_encode_after(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const struct codec_last *last, const float *x, size_t n,
    const struct kern_stat *seen, struct buf *out, uint8_t *param, float *y,
    struct err *e)
{
	const struct codec_impl *c = codec_row(plan->codec);
	struct codec_in in = { plan, ctx, kern_get(e), x, n, 0, last, y, seen };
	struct kern_stat s;
	size_t start = out->n;
	int r;

	if (in.kern == NULL)
		return -ERR_USAGE;
	if (c->name == NULL)
		return err_set(e, ERR_USAGE, "codec number %lu is unknown",
		    (unsigned long)plan->codec);
	if (!codec_takes(plan->codec, plan->param))
		return err_set(e, ERR_USAGE, "codec %s: parameter %u is out of range",
		    c->name, plan->param);
	if (c->sums)
		in.seen = codec_seen(&in, &s);
	in.max_bits = in.seen != NULL && in.seen->nonfinite == 0 ?
	    bytes_u32(in.seen->max_abs) : in.kern->max_bits(x, n);
	if (in.max_bits >= 0x7f800000)
		return err_set(e, ERR_DATA, "limit: value %zu of the group is NaN or infinite",
		    kern_first_nonfinite(x, n));
	*param = c->open != 0 ? 0 : plan->param;
	if (n == 0)
		return 0;			/* the body of no values is empty */
	if ((r = buf_room(out, c->bound(plan, n), e)) < 0)
		return r;
	r = c->encode(&in, out, param, e);
	if (r == 0 && y != NULL)
		r = fill_y(c, &in, *param, out->p + start, out->n - start, e);
	if (r < 0)
		out->n = start;
	return r;
}

/* Return the row that decodes a body, and set o->kern. If there are no kernels, or the codec
 * or its parameter is unknown, set *r to an error and return NULL. */
static const struct codec_impl *
decoder(uint32_t codec, uint8_t param, struct codec_out *o, int *r, struct err *e)
{
	const struct codec_impl *c = codec_row(codec);

	*r = 0;
	if ((o->kern = kern_get(e)) == NULL)
		*r = -ERR_USAGE;
	else if (c->name == NULL)
		*r = err_set(e, ERR_DATA, "unsupported: codec %lu is unknown: a "
		    "newer release of ace may read it", (unsigned long)codec);
	else if (!takes(c, param))
		*r = err_set(e, ERR_DATA,
		    "unsupported: parameter %u of codec %s is unknown: a newer "
		    "release of ace may read it", param, c->name);
	return *r == 0 ? c : NULL;
}

/* Check that the decoder has used all of b, and that x[n] is finite unless the codec may have
 * other values. */
static int
decoded(const struct codec_impl *c, const struct bytes *b,
    const struct kern *kern, const float *x, size_t n, struct err *e)
{
	if (b->bad || b->at != b->n)
		return codec_corrupt(c->name, CODEC_LENGTH, e);
	if (!c->raw && n > 0 && kern->max_bits(x, n) >= 0x7f800000)
		return codec_corrupt(c->name, "a value is NaN or infinite", e);
	return 0;
}

int
codec_decode(uint32_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e)
{
	struct codec_list l = CODEC_LIST_INIT;
	struct codec_out o = { codec, param, ctx, NULL, x, n };
	struct bytes b = BYTES(body, len);
	const struct codec_impl *c;
	size_t i;
	int r;

	if ((c = decoder(codec, param, &o, &r, e)) == NULL)
		return r;
	if (n == 0)
		return len == 0 ? 0 : codec_corrupt(c->name, CODEC_LENGTH, e);
	if (c->list == NULL)
		return (r = c->decode(&o, &b, e)) < 0 ? r :
		    decoded(c, &b, o.kern, x, n, e);
	r = codec_decode_list(codec, param, ctx, body, len, n, &l, e);
	if (r == 0)
		memset(x, 0, n * sizeof(*x));
	for (i = 0; r == 0 && i < l.k; i++)
		x[l.pos[i]] = l.x[i];
	codec_list_release(&l);
	return r;
}

int
codec_again(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, const struct kern_stat *seen, uint8_t param,
    const unsigned char *body, size_t len, float *y, size_t n, struct err *e)
{
	const struct codec_impl *c = codec_row(plan->codec);
	struct codec_in in = { .plan = plan, .ctx = ctx, .kern = kern_get(e),
	    .x = x, .n = n, .seen = seen };
	struct bytes b = { body, len, 0, 0 };
	int r = 1;

	if (in.kern == NULL)
		return -ERR_USAGE;
	if (c->again != NULL && n > 0)
		r = c->again(&in, &b, y, e);
	return r <= 0 ? r : codec_decode(plan->codec, param, ctx, body, len, y, n, e);
}

int
codec_lists(uint32_t codec)
{
	return codec_row(codec)->list != NULL;
}

int
codec_decode_list(uint32_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, size_t n, struct codec_list *l,
    struct err *e)
{
	struct codec_out o = { codec, param, ctx, NULL, NULL, n };
	struct bytes b = BYTES(body, len);
	const struct codec_impl *c;
	int r;

	l->k = 0;
	if ((c = decoder(codec, param, &o, &r, e)) == NULL)
		return r;
	if (n == 0)
		return len == 0 ? 0 : codec_corrupt(c->name, CODEC_LENGTH, e);
	return (r = c->list(&o, &b, l, e)) < 0 ? r :
	    decoded(c, &b, o.kern, l->x, l->k, e);
}

int
codec_list_room(struct codec_list *l, size_t k, struct err *e)
{
	size_t cap = 0;
	int r;

	l->k = k;
	if (k <= l->cap)
		return 0;
	if ((r = alloc_grow(&l->pos, &cap, k, sizeof(*l->pos), e)) < 0)
		return r;
	cap = 0;
	if ((r = alloc_grow(&l->x, &cap, k, sizeof(*l->x), e)) == 0)
		l->cap = k;
	return r;
}

void
codec_list_release(struct codec_list *l)
{
	alloc_free(l->pos);
	alloc_free(l->x);
	*l = (struct codec_list)CODEC_LIST_INIT;
}
