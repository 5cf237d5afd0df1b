/*
 * The shards of one step from many devices, in lockstep.
 *
 * Several inputs: each gives one shard a step.  One input: it holds the
 * devices' shards one after another (cat, GNU parallel); they are set aside in
 * an unnamed temporary file first, since their sums go group by group.
 * Shards are ordered by device id, never by arrival.
 *
 * With a rule for the intake no input is waited for alone, and what is
 * damaged or does not belong is passed over instead of an error.
 */
#ifndef ACE_GATHER_H
#define ACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "format/reader.h"
#include "pipe/intake.h"

struct array_names;
struct err;
struct gather;
struct text_kv;

/* gather_open(out, paths, n, expect, to, o, e): n == 0 is standard input.
 * expect: contributions a step must have, 0 for as many as there are.  to: what
 * must be read by somebody while it waits (wait_orphan), or -1.
 * gather_patient: by the rule q. */
int gather_open(struct gather **out, char **paths, size_t n, uint64_t expect,
    int to, const struct reader_opts *o, struct err *e);
int gather_patient(struct gather **out, char **paths, size_t n,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e);
/* gather_many(out, paths, n, room, o, e): one step, a file each, of which no more
 * than `room' are open at a time. */
int gather_many(struct gather **out, char **paths, size_t n, size_t room,
    const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

/* gather_blame(g, i, r): the error r is the fault of contribution i, unless it
 * is the system's; returns r.  gather_blamed: the place of that one among the
 * paths, plus one; 0: an error that is nobody's.  Only of gather_many. */
int gather_blame(struct gather *g, size_t i, int r);
size_t gather_blamed(const struct gather *g);

/* gather_twice: before the first step, each step's shards may be read again,
 * pipes too: all are set aside, whole and verified. */
void gather_twice(struct gather *g);
/* gather_again: back to the first group of this step; schemas and shards have
 * to be asked for anew. */
int gather_again(struct gather *g, struct err *e);

/* gather_step: 1 the shards of the next step are here: their heads agree on
 * run, step and schema (else -ERR_DATA, "mismatch: ..." with both names; a
 * device twice is -ERR_REFUSED); 0 all inputs ended. */
int gather_step(struct gather *g, struct err *e);
size_t gather_count(const struct gather *g);
const struct shard *gather_shard(const struct gather *g, size_t i);
const struct schema *gather_schema(const struct gather *g);
/* gather_leave: shard i is (left 0) or is not among the contributors that
 * gather_members and gather_norm speak of. */
void gather_leave(struct gather *g, size_t i, int left);
/* After gather_finish: the names of all contributors come to l; those of a
 * contribution that is an aggregate are the ones it lists. */
int gather_members(const struct gather *g, struct array_names *l,
    struct err *e);
/* gather_left: see gather_leave.  gather_policy: what its policies say, after
 * gather_finish. */
int gather_left(const struct gather *g, size_t i);
const struct text_kv *gather_policy(const struct gather *g, size_t i);

/*
 * Of gather_many the contributions come in windows of `room'; of the others all
 * are in one.  gather_window(g, w, e): window w, from its first group on; the
 * first one is open after gather_step.  gather_range: the contributions of the
 * window, [lo, hi).  gather_group and gather_finish are for these.
 */
size_t gather_windows(const struct gather *g);
int gather_window(struct gather *g, size_t w, struct err *e);
void gather_range(const struct gather *g, size_t *lo, size_t *hi);
/* *x = f32[n] of group g from shard i, or NULL when it was not sent.  Every
 * group must be asked for, in order. */
int gather_group(struct gather *g, size_t i, uint32_t group, float **x,
    struct err *e);
/* gather_last(g, i): what gather_group gave last. */
const float *gather_last(const struct gather *g, size_t i);
/* After the last group: all shards are whole and verified. */
int gather_finish(struct gather *g, struct err *e);

#endif
