/*
 * What the bodies of ECQ and TCQ have in common: a step as the knob, and the forms
 * of a body without a code.
 *
 *   body := nothing               all values are 0
 *         | f32                   all are that
 *         | 00 00 00  f32[n]      as they are
 *         | step[3]  ...          the upper 24 bits of an f32, least first
 */
#ifndef ACE_STEPPED_H
#define ACE_STEPPED_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "codec/codec_impl.h"

struct err;

enum { STEPPED_SAME = 4 };	/* bytes of a body whose values are one */

/* stepped_bits(plan): the step as a body holds it, the nearest that can be. */
uint32_t stepped_bits(const struct codec_plan *plan);
/* stepped_set(p, bits): the three bytes of it. */
void stepped_set(unsigned char *p, uint32_t bits);

/* The forms without a code, into out and in->y: stepped_nothing: all are 0.
 * stepped_same: 1 when all values are one, and out has it; else 0.
 * stepped_store: as they are. */
void stepped_nothing(const struct codec_in *in);
int stepped_same(const struct codec_in *in, struct buf *out);
void stepped_store(const struct codec_in *in, struct buf *out);

/* stepped_get(name, o, b, bits, e): 1 when the body was one of these, and o->x is
 * there; 0 when *bits is its step; -ERR_DATA. */
int stepped_get(const char *name, const struct codec_out *o, struct bytes *b,
    uint32_t *bits, struct err *e);

/* Of the table (codec_impl.h). */
int stepped_parse(const char *arg, struct codec_plan *plan, struct err *e);
void stepped_format(const struct codec_plan *plan, char buf[CODEC_ARG]);
void stepped_turn(struct codec_plan *plan, double f);
int stepped_turned(struct codec_plan *plan, const unsigned char *body, size_t len);

#endif
