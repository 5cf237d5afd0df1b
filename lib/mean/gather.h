/*
 * Read the shards of one step from many devices in lockstep, group by group.
 *
 * Each of several inputs gives one shard to a step.  A single input has the devices'
 * shards one after another (cat, GNU parallel); they are first copied into an unnamed
 * temporary file.  Either way the shards are in the order of the devices' ids, whatever
 * the order of arrival.
 *
 * Files and copied shards are opened in windows, so that neither memory nor the number of
 * open files grows with the number of shards.  With GATHER_WHOLE all shards are open
 * together, for rules that need all values of a group.
 *
 * gather_open is for inputs: it waits for each input, and damage is an error.
 * gather_many is for the files of a step in a spool.
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
	GATHER_WHOLE = 1,	/* all contributions are open together */
	GATHER_TWICE = 2	/* a step's shards are read more than once */
};

/* gather_open(out, paths, n, how, expect, to, o, e): open n inputs; 0: standard input.
 * expect: contributions that each step must have; 0: any number.  to: the output pipe;
 * waiting for input fails once that pipe has no reader (wait_orphan); -1: none. */
int gather_open(struct gather **out, char **paths, size_t n, int how,
    uint64_t expect, int to, const struct reader_opts *o, struct err *e);
/* gather_many(out, step, paths, n, how, o, e): prepare one step of n files with one
 * shard each.  Shards of earlier steps count as if their devices had kept them for this
 * step: all shards of one device are added up to one contribution, with the annotations
 * of the newest shard. */
int gather_many(struct gather **out, uint64_t step, char **paths, size_t n, int how,
    const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

/* For gather_many only.  gather_blame(g, i, r): note that contribution i causes the
 * error r, unless r is -ERR_SYS; return r.  gather_blamed: return the index of that
 * contribution among the paths plus one, or 0. */
int gather_blame(struct gather *g, size_t i, int r);
size_t gather_blamed(const struct gather *g);

/* gather_step: go to the next step.  Return 1, or 0 if all inputs ended.  -ERR_DATA,
 * "mismatch: ..." with both names: the heads of two shards differ in run, step or schema.
 * -ERR_REFUSED: a device has two shards. */
int gather_step(struct gather *g, struct err *e);
size_t gather_count(const struct gather *g);
const struct shard *gather_shard(const struct gather *g, size_t i);
const struct schema *gather_schema(const struct gather *g);
/* gather_opens: return how many files a contribution takes: 1, or 2 if some are
 * differences in a spool.  gather_memory: return the approximate memory, in bytes, that
 * all contributions take while they are open. */
size_t gather_opens(const struct gather *g);
uint64_t gather_memory(const struct gather *g);

/*
 * Contributions are opened in windows. Pipes, which are always open, are all in one.
 * gather_window(g, w, e): open window w at its first group; none is open after
 * gather_step.  gather_window_range: get the contributions of the open window, [lo, hi).
 * gather_group and gather_finish are for this range.
 */
size_t gather_windows(const struct gather *g);
int gather_window(struct gather *g, size_t w, struct err *e);
void gather_window_range(const struct gather *g, size_t *lo, size_t *hi);
/* gather_group(g, i, group, x, l, e): *x becomes the values f32[n] of the group from
 * contribution i, or NULL if it was not sent.  If l is not NULL and the group's codec
 * lists its values, *l becomes that list and *x NULL; otherwise *l becomes NULL.  Ask for
 * every group, in order.  Several threads may ask for different i; after an error the
 * caller then calls gather_blame. */
int gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e);
/* After the last group: verify that all shards are whole. */
int gather_finish(struct gather *g, struct err *e);

/* gather_leave(g, i, left): with left 1, leave contribution i out of gather_members, the
 * merged policy and the norm; with left 0, count it there.  gather_left: return left. */
void gather_leave(struct gather *g, size_t i, int left);
int gather_left(const struct gather *g, size_t i);
/* After gather_finish.  gather_policy: return the policy in contribution i's shard.
 * gather_members: append the names of all contributors to l, sorted; an aggregate
 * contributes the names that it lists.  -ERR_REFUSED: a name is in two contributions. */
const struct text_kv *gather_policy(const struct gather *g, size_t i);
int gather_members(struct gather *g, struct array_names *l, struct err *e);

#endif
