/*
 * A stream as a picture: how the magnitudes are spread over the octaves, how
 * many bits a value each tensor took, and each shard.  SVG, nothing else needed
 * to make it; the same stream gives the same bytes.
 */
#ifndef ACE_PLOT_H
#define ACE_PLOT_H

struct err;
struct io;
struct reader;
struct report;

/* plot_stream(p, r, out, e): all shards of r together, to out; only tensors
 * that p->glob names.  Shards of several models: -ERR_DATA, "mismatch". */
int plot_stream(struct report *p, struct reader *r, struct io *out,
    struct err *e);

#endif
