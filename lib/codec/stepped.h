/*
 * The parts that ECQ and TCQ bodies share: a step as the rate parameter, the three forms
 * without a code, and the fields before a code.
 *
 *   body := nothing               all values are 0
 *         | f32                   all values are equal to it
 *         | 00 00 00  f32[n]      the values unchanged
 *         | step[3]  ...          the upper 24 bits of an f32, least significant byte first
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

enum { STEPPED_SAME = 4 };	/* bytes of a body whose values are all equal, not 0 */

/* Return the 24 bits that a body has for the step, which is the valid one nearest to the plan's. */
uint32_t stepped_bits(const struct codec_plan *plan);

/* Write one of the forms without a code to out and, unless NULL, in->y. stepped_nothing: all
 * values become 0. stepped_same: if all values are equal, write the value and return 1; else
 * return 0. stepped_store: write the values unchanged. */
void stepped_nothing(const struct codec_in *in);
int stepped_same(const struct codec_in *in, struct buf *out);
void stepped_store(const struct codec_in *in, struct buf *out);

/* stepped_put_side: write the step, bits (stepped_bits), and the fields before the code;
 * return where they end.
 * stepped_side: read the fields after the step; return 0, or -1 if stepped_put_side cannot have
 * written them.
 * two: see stepped_decode. */
unsigned char *stepped_put_side(unsigned char *p, uint32_t bits,
    const struct ecq_side *s, unsigned two);
int stepped_side(struct bytes *b, struct ecq_side *s, unsigned two);

/* Decode a body for the decode function of a codec's row (codec_impl.h).  name: the codec, for
 * messages; two: 1 for TCQ, 0 for ECQ. */
int stepped_decode(const char *name, unsigned two, const struct codec_out *o,
    struct bytes *b, struct err *e);

/* Use these as members of a codec's row (codec_impl.h). */
int stepped_parse(const char *arg, struct codec_plan *plan, struct err *e);
void stepped_format(const struct codec_plan *plan, char buf[CODEC_ARG]);
void stepped_turn(struct codec_plan *plan, double f);
int stepped_turned(struct codec_plan *plan, const unsigned char *body, size_t len);

#endif
