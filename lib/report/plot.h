/*
 * Draws a stream as a picture: how many values have a magnitude in each octave,
 * and how many bits per value each tensor and each shard took.
 */
#ifndef ACE_PLOT_H
#define ACE_PLOT_H

struct err;
struct io;
struct reader;
struct report;

/* plot_stream(p, r, out, e): draws all shards of r in one picture, written to
 * out, with only the tensors that p->glob names.  Shards of different models:
 * -ERR_DATA, "mismatch". */
int plot_stream(struct report *p, struct reader *r, struct io *out,
    struct err *e);

#endif
