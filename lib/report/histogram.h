/*
 * Shows, as bars or as JSON, how many of a shard's decoded values have a
 * magnitude in each octave (from one power of two to the next): for the whole
 * shard, or for each tensor that --tensor names.
 */
#ifndef ACE_HISTOGRAM_H
#define ACE_HISTOGRAM_H

struct err;
struct reader;
struct report;

int histogram_stream(struct report *p, struct reader *r, struct err *e);

#endif
