#include <math.h>
#include <string.h>

#include "base/err.h"
#include "codec/arg.h"
#include "codec/stepped.h"

/* Steps are the upper 24 bits of an f32, from 2^-125 to 2^100, so that 1 / step and |q| *
 * step are finite. */
enum { STEP_MIN = 0x010000, STEP_MAX = 0x718000 };

uint32_t
stepped_bits(const struct codec_plan *plan)
{
	uint32_t bits = (bytes_u32(plan->arg) + 128) >> 8;

	if (bits < STEP_MIN || !(plan->arg > 0))
		return STEP_MIN;
	return bits > STEP_MAX ? STEP_MAX : bits;
}

void
stepped_nothing(const struct codec_in *in)
{
	if (in->y != NULL)
		memset(in->y, 0, in->n * sizeof(*in->y));
}

static void
exact(const struct codec_in *in)
{
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
}

int
stepped_same(const struct codec_in *in, struct buf *out)
{
	size_t i;

	for (i = 1; i < in->n && in->x[i] == in->x[0]; i++)
		continue;
	if (i != in->n)
		return 0;
	bytes_put_f32(out->p + out->n, in->x, 1);
	out->n += STEPPED_SAME;
	exact(in);
	return 1;
}

void
stepped_store(const struct codec_in *in, struct buf *out)
{
	unsigned char *p = out->p + out->n;

	memset(p, 0, 3);
	bytes_put_f32(p + 3, in->x, in->n);
	out->n += 3 + 4 * in->n;
	exact(in);
}

/* If the body has one of the forms without a code, decode it into o->x and return 1.
 * Otherwise set *bits to its step and return 0. Return -ERR_DATA if it is corrupt. */
static int
get_form(const char *name, const struct codec_out *o, struct bytes *b,
    uint32_t *bits, struct err *e)
{
	const unsigned char *p;
	size_t i;

	if (b->n == 0) {
		memset(o->x, 0, o->n * sizeof(*o->x));
		return 1;
	}
	if (b->n == STEPPED_SAME) {
		bytes_get_f32(o->x, bytes_take(b, STEPPED_SAME), 1);
		for (i = 1; i < o->n; i++)
			o->x[i] = o->x[0];
		return 1;
	}
	*bits = bytes_u16(b);
	*bits |= (uint32_t)bytes_u8(b) << 16;
	if (b->bad)
		return codec_corrupt(name, "the body is too short", e);
	if (*bits == 0) {
		p = bytes_take(b, 4 * o->n);
		if (p == NULL)
			return codec_corrupt(name, "the body is too short", e);
		bytes_get_f32(o->x, p, o->n);
		return 1;
	}
	if (*bits < STEP_MIN || *bits > STEP_MAX)
		return codec_corrupt(name, "the quantiser step is out of range", e);
	return 0;
}

unsigned char *
stepped_put_side(unsigned char *p, uint32_t bits, const struct ecq_side *s,
    unsigned two)
{
	unsigned u;

	bytes_set16(p, (uint16_t)bits);
	p[2] = (unsigned char)(bits >> 16);
	p += 3;
	for (u = 0; u <= two; u++) {
		*p++ = (unsigned char)s->delta[u][0];
		*p++ = (unsigned char)((s->delta[u][1] & 15) |
		    (s->delta[u][2] & 15) << 4);
	}
	*p++ = (unsigned char)(s->mode << 6 | s->level);
	*p++ = (unsigned char)(s->states << 4 | s->top);
	if (s->top >= KERN_ECQ_ESCAPE - two)
		*p++ = s->fine;
	return p;
}

int
stepped_side(struct bytes *b, struct ecq_side *s, unsigned two)
{
	unsigned d, u;

	for (u = 0; u <= two; u++) {
		s->delta[u][0] = (int8_t)bytes_u8(b);
		d = bytes_u8(b);
		s->delta[u][1] = (int8_t)(((d & 15) ^ 8) - 8);
		s->delta[u][2] = (int8_t)((d >> 4 ^ 8) - 8);
	}
	d = bytes_u8(b);
	s->mode = (uint8_t)(d >> 6);
	s->level = d & 63;
	d = bytes_u8(b);
	s->states = (uint8_t)(d >> 4);
	s->top = d & 15;
	s->fine = s->top >= KERN_ECQ_ESCAPE - two ? bytes_u8(b) : 0;
	return b->bad || s->fine > ECQ_FINE || s->level >= KERN_ECQ_LEVELS ||
	    s->mode >= KERN_ECQ_MODES || s->states > ECQ_STATES ||
	    s->top == 0 ? -1 : 0;
}

int
stepped_decode(const char *name, unsigned two, const struct codec_out *o,
    struct bytes *b, struct err *e)
{
	struct ecq_out out = { o->kern, o->ctx, o->x, o->n, 0 };
	struct ecq_side s;
	uint32_t step;
	int r;

	if ((r = get_form(name, o, b, &step, e)) != 0)
		return r < 0 ? r : 0;
	if (stepped_side(b, &s, two) < 0)
		return codec_corrupt(name, "the head is incomplete or out of range", e);
	out.step = bytes_f32(step << 8);
	r = ecq_code_get(&out, &s, two, b->p + b->at, b->n - b->at, e);
	b->at = b->n;
	if (r == 0)
		return codec_corrupt(name, "the coded values are damaged", e);
	return r < 0 ? r : 0;
}

int
stepped_parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	int r = arg_number(arg, 0, 1e30f, &plan->arg, e);

	if (r == 0 && !(plan->arg > 0))
		return err_set(e, ERR_USAGE, "expected a step from 1e-45 to 1e30");
	return r;
}

void
stepped_format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	arg_print(plan->arg, buf);
}

void
stepped_turn(struct codec_plan *plan, double f)
{
	plan->arg = (float)fmax(fmin((double)plan->arg * f, 1e30), 0x1p-126);
}

int
stepped_turned(struct codec_plan *plan, const unsigned char *body, size_t len)
{
	uint32_t step;

	if (len <= STEPPED_SAME)
		return 0;
	step = (uint32_t)body[0] | (uint32_t)body[1] << 8 | (uint32_t)body[2] << 16;
	plan->arg = bytes_f32(step << 8);
	return step >= STEP_MIN && step <= STEP_MAX;
}
