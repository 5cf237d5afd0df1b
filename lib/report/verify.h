/* Verify that a stream is as it was written. */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

struct err;
struct reader;
struct report;

/* Read r, whose input is p->io. Decode each shard that p->pick selects, as far as struct walk
 * calls `group', and compare it with the sums at its end. Print one line if all are intact
 * (none with p->quiet); in JSON always print an object. Return -ERR_DATA if the stream is
 * damaged, -ERR_NO if only sums disagree. */
int verify_file(struct report *p, struct reader *r, struct err *e);

#endif
