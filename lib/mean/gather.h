/*
 * The shards of one step from many devices, read side by side, group by group.
 *
 * Several inputs give one shard each to a step.  A single input holds the
 * devices' shards one after another (cat, GNU parallel), which are first set
 * aside in an unnamed temporary file.  Either way the shards are in the order of
 * the devices' ids, and not in that in which they came.
 *
 * Files, when there are many, and what was set aside are opened some at a time,
 * so that neither memory nor open files grow with their number; with GATHER_WHOLE
 * all of them at once, for rules that have to see all values of a group.
 *
 * There are two ways to open one.  gather_open waits for each input, and damage
 * is an error.  gather_many reads a step's files in a spool, any number of them, some
 * open at a time.
 */
#ifndef ACE_GATHER_H
#define ACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "format/reader.h"

struct array_names;
struct err;
struct gather;
struct text_kv;

enum {
	GATHER_WHOLE = 1,	/* all contributions are open at a time */
	GATHER_TWICE = 2	/* a step's shards are read more than once */
};

/* gather_open(out, paths, n, how, expect, to, o, e): n == 0 is standard input.
 * expect: how many contributions each step must have, 0: as many as there are.
 * to: a descriptor; waiting ends with an error when nobody reads it
 * (wait_orphan); -1: none. */
int gather_open(struct gather **out, char **paths, size_t n, int how,
    uint64_t expect, int to, const struct reader_opts *o, struct err *e);
/* gather_many(out, step, paths, n, how, o, e): one step, whose contributions are
 * the n files, with one shard each.  Shards of steps before it count as if they had
 * been left over at their device and had come with its shard of this step: those of
 * one device are added up to one contribution, with the annotations of the newest. */
int gather_many(struct gather **out, uint64_t step, char **paths, size_t n, int how,
    const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

/* Of gather_many only.  gather_blame(g, i, r): remembers that the error r is
 * the fault of contribution i, unless it is -ERR_SYS; returns r.
 * gather_blamed: the place of that contribution among the paths, plus one; 0:
 * no one's fault. */
int gather_blame(struct gather *g, size_t i, int r);
size_t gather_blamed(const struct gather *g);

/* gather_step: 1 the shards of the next step are here: their heads agree on
 * run, step and schema (else -ERR_DATA, "mismatch: ..." with both names; a
 * device twice is -ERR_REFUSED); 0 all inputs ended. */
int gather_step(struct gather *g, struct err *e);
size_t gather_count(const struct gather *g);
const struct shard *gather_shard(const struct gather *g, size_t i);
const struct schema *gather_schema(const struct gather *g);
/* gather_opens: how many files each contribution may take, 2 where some are
 * differences in a spool.  gather_memory: about how many bytes all of them take when
 * they are open. */
size_t gather_opens(const struct gather *g);
uint64_t gather_memory(const struct gather *g);

/*
 * The contributions come in windows; several pipes, all of which are open
 * anyway, in one.  gather_window(g, w, e): window w, from its first group
 * on; none is open after gather_step.  gather_window_range: the
 * contributions of the window, [lo, hi).  gather_group and gather_finish are
 * for these.
 */
size_t gather_windows(const struct gather *g);
int gather_window(struct gather *g, size_t w, struct err *e);
void gather_window_range(const struct gather *g, size_t *lo, size_t *hi);
/* gather_group(g, i, group, x, l, e): *x = f32[n] of the group from contribution i, or
 * NULL when it was not sent.  Where the codec lists its values and l is not NULL, *l
 * is that list and *x is NULL; otherwise *l is NULL.  Every group must be asked for, in
 * order.  Several threads may ask for different i, so that the caller says whose fault
 * an error is (gather_blame). */
int gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e);
/* After the last group: all shards are whole and verified. */
int gather_finish(struct gather *g, struct err *e);

/* gather_leave(g, i, left): left 1: contribution i is not among those that
 * gather_members and merged_norm speak of; 0: it is.  gather_left: what was said. */
void gather_leave(struct gather *g, size_t i, int left);
int gather_left(const struct gather *g, size_t i);
/* After gather_finish.  gather_policy: the policy in contribution i's shard.
 * gather_members: appends the names of all contributors to l, sorted; for a
 * contribution that is itself an aggregate, the names that it lists.  -ERR_REFUSED:
 * one is in two contributions. */
const struct text_kv *gather_policy(const struct gather *g, size_t i);
int gather_members(struct gather *g, struct array_names *l, struct err *e);

#endif
