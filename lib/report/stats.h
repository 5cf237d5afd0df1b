/*
 * Statistics of the decoded values, tensor by tensor.  What was not sent
 * counts as zero.
 */
#ifndef ACE_STATS_H
#define ACE_STATS_H

struct err;
struct moments;
struct reader;
struct report;
struct schema_tensor;
struct tally;

int stats_stream(struct report *p, struct reader *r, struct err *e);

/* The table, for who adds columns at its right: each leaves the line open. */
void stats_columns(const struct report *p);
void stats_line(struct report *p, const char *name, const struct moments *m,
    const struct tally *y);
/* JSON members of one tensor. */
void stats_members(struct report *p, const struct moments *m);

#endif
