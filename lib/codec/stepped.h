/*
 * What the bodies of ECQ and TCQ have in common: a step as the knob, the forms of a
 * body without a code, and what stands before a code.
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
#include "codec/ecq_code.h"

struct err;

enum { STEPPED_SAME = 4 };	/* bytes of a body whose values are one */

/* stepped_bits(plan): the step as a body holds it, the nearest that can be. */
uint32_t stepped_bits(const struct codec_plan *plan);

/* The forms without a code, into out and in->y: stepped_nothing: all are 0.
 * stepped_same: 1 when all values are one, and out has it; else 0.
 * stepped_store: as they are. */
void stepped_nothing(const struct codec_in *in);
int stepped_same(const struct codec_in *in, struct buf *out);
void stepped_store(const struct codec_in *in, struct buf *out);

/* stepped_put_side(p, bits, s, two): writes the step and what a body says before
 * its code, and returns where that ends.
 * stepped_side(b, s, two): reads what follows the step; -1 when it is not what
 * stepped_put_side writes. */
unsigned char *stepped_put_side(unsigned char *p, uint32_t bits,
    const struct ecq_side *s, unsigned two);
int stepped_side(struct bytes *b, struct ecq_side *s, unsigned two);

/* stepped_decode(name, two, o, b, e): the decode of codec_impl.h. */
int stepped_decode(const char *name, unsigned two, const struct codec_out *o,
    struct bytes *b, struct err *e);

/* Of the table (codec_impl.h). */
int stepped_parse(const char *arg, struct codec_plan *plan, struct err *e);
void stepped_format(const struct codec_plan *plan, char buf[CODEC_ARG]);
void stepped_turn(struct codec_plan *plan, double f);
int stepped_turned(struct codec_plan *plan, const unsigned char *body, size_t len);

#endif
