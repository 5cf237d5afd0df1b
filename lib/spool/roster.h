/*
 * The devices that a run has now, as far as somebody said it: the file
 * DIR/RUN/devices, a name in a line.  Where there is one, a step is over when
 * each of them has a shard in it; a device that joins is added, one that left
 * is taken out, and nothing has to be started again.
 */
#ifndef ACE_ROSTER_H
#define ACE_ROSTER_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct inbox;

struct roster {
	char **name;		/* sorted */
	size_t n, cap;
};
#define ROSTER_INIT { NULL, 0, 0 }
void roster_release(struct roster *t);

/* roster_read(t, s, run, e): 1 and the names, or 0: there is no list. */
int roster_read(struct roster *t, const struct inbox *s, const char *run,
    struct err *e);
/* roster_sort(t): in order, each name once.  It is due after roster_each_file(t, name,
 * e), for scan of a step's directory, which adds the device of a shard's file. */
void roster_sort(struct roster *t);
int roster_each_file(void *t, const char *name, struct err *e);
/* roster_missing(t, s, run, step, out, e): adds to out those of t that have no
 * shard in the step. */
int roster_missing(const struct roster *t, const struct inbox *s,
    const char *run, uint64_t step, struct roster *out, struct err *e);
/* roster_expect(s, run, step, n, expect, e): n shards of the step are there;
 * where there is a list, *expect becomes n and those that are missing. */
int roster_expect(const struct inbox *s, const char *run, uint64_t step,
    size_t n, size_t *expect, struct err *e);

/* roster_change(s, run, device, joins, e): adds the device to the list, or
 * takes it out.  Without a list, one is made of the devices seen so far. */
int roster_change(const struct inbox *s, const char *run, const char *device,
    int joins, struct err *e);

#endif
