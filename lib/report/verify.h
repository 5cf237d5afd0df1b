/* Verify that a stream is as it was written. */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

struct err;
struct reader;
struct report;

/* Decode the whole stream p->io, compare it with the sums at the end of each shard, and
 * print one line if it is intact (none with p->quiet). Return -ERR_DATA if the file is
 * damaged, -ERR_NO if the sums disagree. */
int verify_file(struct report *p, struct reader *r, struct err *e);

#endif
