/*
 * Everything decoded and held against what the ends of the shards say.
 */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

struct err;
struct report;
struct report_in;

/* verify_file(p, in, e): one line when all is well (none if p->quiet).
 * Damage is -ERR_DATA; sums that disagree with the end of a shard, -ERR_NO. */
int verify_file(struct report *p, struct report_in *in, struct err *e);

#endif
