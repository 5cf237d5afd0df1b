/*
 * Statistics of the decoded values of each tensor.  Values that were not sent
 * count as zero.
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

/* Print the table's headings and a line of it.  Neither ends the line, so that
 * the caller can add columns at the right. */
void stats_columns(const struct report *p);
void stats_line(struct report *p, const char *name, const struct moments *m,
    const struct tally *y);
/* Writes the JSON members of one tensor. */
void stats_members(struct report *p, const struct moments *m);

#endif
