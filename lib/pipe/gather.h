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

/* gather_open(out, paths, n, expect, to, o, e): n == 0 is standard input.
 * expect: contributions a step must have, 0 for as many as there are.  to: what
 * must be read by somebody while it waits (wait_orphan), or -1.
 * gather_patient: by the rule q. */
int gather_open(struct gather **out, char **paths, size_t n, uint64_t expect,
    int to, const struct reader_opts *o, struct err *e);
int gather_patient(struct gather **out, char **paths, size_t n,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

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
/* Mean of the norms of the contributors' models (SHARD_KEY_NORM), when each
 * says it: what a policy divides the aggregate's energy by. */
int gather_norm(const struct gather *g, struct text_kv *kv, struct err *e);
/* What the policies of the contributors ask for, after gather_finish: the most
 * steps of delay, the fewest between synchronisations, and whether one of them
 * wants the next at once; and the cuts of the one whose backward pass is said to
 * take longest, since all wait for that one.  Keys KEYS_DELAY, KEYS_INTERVAL,
 * KEYS_FORCE, KEYS_CUTS and KEYS_CUTS_SECONDS, each if somebody asks. */
int gather_policy(const struct gather *g, struct text_kv *kv, struct err *e);
/* *x = f32[n] of group g from shard i, or NULL when it was not sent.  Every
 * group must be asked for, in order. */
int gather_group(struct gather *g, size_t i, uint32_t group, float **x,
    struct err *e);
/* After the last group: all shards are whole and verified. */
int gather_finish(struct gather *g, struct err *e);

#endif
