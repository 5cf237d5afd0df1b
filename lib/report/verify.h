/*
 * Decodes a whole stream and compares it with the sums that the end of each
 * shard states.
 */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

struct err;
struct report;
struct report_in;

/* verify_file(p, in, e): prints one line when all is well (none if p->quiet).
 * -ERR_DATA: the file is damaged.  -ERR_NO: the sums disagree with the end of a
 * shard. */
int verify_file(struct report *p, struct report_in *in, struct err *e);

#endif
