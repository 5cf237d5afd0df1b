/*
 * How the magnitudes of the decoded values are spread over the octaves, drawn
 * or as JSON: for the whole shard, or for each tensor that --tensor names.
 */
#ifndef ACE_HISTOGRAM_H
#define ACE_HISTOGRAM_H

struct err;
struct reader;
struct report;

int histogram_stream(struct report *p, struct reader *r, struct err *e);

#endif
