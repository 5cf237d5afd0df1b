/*
 * The shards of one step from many devices, read side by side, group by group.
 *
 * Several inputs give one shard each to a step.  A single input holds the
 * devices' shards one after another (cat, GNU parallel), which are first set
 * aside in an unnamed temporary file.  Either way the shards are in the order of
 * the devices' ids, and not in that in which they came.
 *
 * Files, when there are many, and what was set aside are opened some at a time,
 * so that neither memory nor open files grow with their number; with whole = 1
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

/* gather_open(out, paths, n, expect, to, o, e): n == 0 is standard input.
 * expect: how many contributions each step must have, 0: as many as there are.
 * to: a descriptor; waiting ends with an error when nobody reads it
 * (wait_orphan); -1: none. */
int gather_open(struct gather **out, char **paths, size_t n, int whole,
    uint64_t expect, int to, const struct reader_opts *o, struct err *e);
/* gather_many(out, step, paths, n, whole, o, e): one step, whose contributions are
 * the n files, with one shard each.  Shards of steps before it count as if they had
 * been left over at their device and had come with its shard of this step: those of
 * one device are added up to one contribution, with the annotations of the newest. */
int gather_many(struct gather **out, uint64_t step, char **paths, size_t n, int whole,
    const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

/* Of gather_many only.  gather_blame(g, i, r): remembers that the error r is
 * the fault of contribution i, unless it is -ERR_SYS; returns r.
 * gather_blamed: the place of that contribution among the paths, plus one; 0:
 * no one's fault. */
int gather_blame(struct gather *g, size_t i, int r);
size_t gather_blamed(const struct gather *g);

/* gather_twice: to be called before the first step, if the shards of a step
 * are to be read more than once: then all are set aside, whole and verified. */
void gather_twice(struct gather *g);
/* gather_again: goes back to the first group of this step.  What gather_shard
 * and gather_schema gave before is no longer valid. */
int gather_again(struct gather *g, struct err *e);

/* gather_step: 1 the shards of the next step are here: their heads agree on
 * run, step and schema (else -ERR_DATA, "mismatch: ..." with both names; a
 * device twice is -ERR_REFUSED); 0 all inputs ended. */
int gather_step(struct gather *g, struct err *e);
size_t gather_count(const struct gather *g);
const struct shard *gather_shard(const struct gather *g, size_t i);
const struct schema *gather_schema(const struct gather *g);
/* gather_leave(g, i, left): left 1: contribution i is not among those that
 * gather_members and merged_norm speak of; 0: it is. */
void gather_leave(struct gather *g, size_t i, int left);
/* gather_members, after gather_finish: appends the names of all contributors
 * to l, sorted; for a contribution that is itself an aggregate, the names that
 * it lists.  -ERR_REFUSED: one is in two contributions. */
int gather_members(struct gather *g, struct array_names *l,
    struct err *e);
/* gather_left: what gather_leave said.  gather_policy: the policy in
 * contribution i's shard, after gather_finish. */
int gather_left(const struct gather *g, size_t i);
const struct text_kv *gather_policy(const struct gather *g, size_t i);

/*
 * The contributions come in windows; several pipes, all of which are open
 * anyway, in one.  gather_window(g, w, e): window w, from its first group
 * on; none is open after gather_step.  gather_window_range: the
 * contributions of the window, [lo, hi).  gather_group and gather_finish are
 * for these.
 */
size_t gather_windows(const struct gather *g);
int gather_window(struct gather *g, size_t w, struct err *e);
/* gather_window_memory(g): about how many bytes an open file takes.
 * gather_opens(g): how many files are open when all contributions are, each one or,
 * of a difference in a spool, two.  gather_fits(g, files): how many contributions, the
 * first that came, need no more than so many. */
uint64_t gather_window_memory(const struct gather *g);
size_t gather_opens(const struct gather *g);
size_t gather_fits(const struct gather *g, size_t files);
void gather_window_range(const struct gather *g, size_t *lo, size_t *hi);
/* *x = f32[n] of group g from shard i, or NULL when it was not sent.  Every
 * group must be asked for, in order. */
int gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    struct err *e);
/* gather_part(g, i, group, x, l, e): as gather_group, but where the codec lists
 * its values *l is that list and *x is NULL; otherwise *l is NULL.  Both NULL:
 * not sent.  Several threads may ask for different i; whose fault an error is
 * the caller says (gather_blame). */
int gather_part(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e);
/* gather_last(g, i, at): value `at' of what was given last. */
float gather_last(const struct gather *g, size_t i, size_t at);
/* After the last group: all shards are whole and verified. */
int gather_finish(struct gather *g, struct err *e);

#endif
