/*
 * Read the shards of one step from many devices, group by group.
 *
 * Each of several inputs gives one shard to a step.  A single input has the devices'
 * shards one after another (cat, GNU parallel).  In both cases the shards are in the order
 * of the devices' ids, whatever the order of arrival.
 *
 * First every shard of the step is read once and verified, and a table says where the bytes
 * of each group are: in the input (for a difference in a spool: in its reconstruction), if
 * this is a file that stays open and the frame is not packed, else in one unnamed temporary
 * file.  Inputs that are pipes are read at the same time, by one thread each.  Then gather_read
 * visits the groups in order, as often as needed; contributions may be read in any order.
 * So neither the number of open files nor the memory for values grows with the number of
 * shards.  The table takes 32 bytes per group that was sent.
 *
 * gather_open is for inputs with any number of steps; it waits for each input.
 * gather_many is for the files of one step in a spool.  After an error, gather.blame names
 * the file that the caller may leave out to try again.
 */
#ifndef ACE_GATHER_H
#define ACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "format/array.h"
#include "format/reader.h"
#include "sync/robust.h"

struct err;
struct pool;

/* Where the body of a group is.  at: its position in the file; hash: its hash_64. */
struct gather_record {
	uint64_t at, hash;
	uint32_t group, len;
	uint8_t codec, param;
	uint8_t copied;		/* 1: in the temporary file; 0: in the file of the input's `fd' */
};

/* A shard of this step. */
struct gather_shard {
	struct shard head;
	struct text_kv policy;		/* the policy in the shard */
	struct array_names members;	/* devices that the shard lists (mEMb); empty: its own */
	/* below: private */
	size_t input;			/* index of its input */
	uint64_t step;			/* the step that it states */
	struct gather_record *rec;	/* [n], by group */
	size_t n, cap;
	size_t at;			/* index of the first record that may still be read */
	uint64_t nonzero;		/* nonzero values that the shard's end states */
	uint64_t decoded, found;	/* in this pass: records decoded; their nonzero values */
};

/* The contribution of one device: one shard or, in a spool, all shards of the device that have
 * no average yet, the newest first.  Their values are added up. */
struct gather_in {
	struct gather_shard *s;	/* [n] */
	size_t n;
	int left;		/* set by the caller; 1: leave the contribution out of the average's
				 * values, sums, members, policy and keys; gather_read reads it */
	size_t bad;		/* private: index of the shard that failed */
};

struct gather {
	struct gather_in *in;	/* [n], this step's contributions, by device */
	size_t n;
	struct schema schema;	/* model of all contributions */
	size_t blame;		/* 1 + index of the input that caused an error; 0: none */
	/* below: private */
	struct reader_opts o;
	uint64_t expect;
	int to;
	struct gather_input *input;
	size_t ninput;
	struct pool *pool;	/* threads that read pipes; NULL: at most one input is a pipe */
	size_t held, most;	/* number of inputs whose `fd' is open; its limit (GATHER_OPEN) */
	int once;		/* 1: files of a spool, with one shard each */
	unsigned char run[SHARD_ID];	/* for a single input: run of the last step read */
	uint64_t step;		/* number of that step; in a spool: the step to make */
	int was;		/* 1: run and step are set */
	int fd;			/* temporary file with copied groups; -1: none */
	uint64_t end;		/* end of this step's groups in it; the next step overwrites them */
	struct gather_shard *shard;	/* all shards of this step, by device */
	size_t nshard, cap;
};

/* gather_open(out, paths, n, expect, to, o, e): open n inputs; 0: standard input.
 * expect: contributions that each step must have; 0: any number.  to: the output pipe, or
 * -1; waiting for input fails once that pipe has no reader (wait_orphan).  Call
 * gather_free(*out) also after errors. */
int gather_open(struct gather **out, char **paths, size_t n, uint64_t expect, int to,
    const struct reader_opts *o, struct err *e);
/* gather_many(out, step, paths, n, o, e): prepare one step of n files with one shard each.
 * Shards of earlier steps count as if their devices had kept them for this step: all shards
 * of one device make one contribution, the sum of their values (the newest values, for a type
 * without a mean) with the annotations of the newest shard.  The paths must outlive *out.
 * Call gather_free(*out) also after errors. */
int gather_many(struct gather **out, uint64_t step, char **paths, size_t n,
    const struct reader_opts *o, struct err *e);
void gather_free(struct gather *g);

/* gather_blame(g, i, r): note in g->blame that contribution i causes the error r, if r is
 * -ERR_DATA or -ERR_REFUSED and the first such error; return r. */
int gather_blame(struct gather *g, size_t i, int r);

/* gather_step: read and verify the shards of the next step.  Return 1, or 0 if all inputs
 * ended.  -ERR_DATA: a shard is damaged, or two shards differ in run, step or schema; in a
 * spool their steps may differ.  -ERR_REFUSED: a device has two shards of one step, the number
 * of contributions is not the expected one, or some of several inputs ended. */
int gather_step(struct gather *g, struct err *e);

/* gather_came(g, i): return when the file with the newest shard of contribution i was
 * written, in ns since 1970; 0 if that is unknown. */
uint64_t gather_came(const struct gather *g, size_t i);

/* gather_read(g, each, arg, e): call `each' for every group in order.  `each' calls
 * gather_group for the contributions that it needs.  -ERR_DATA: a shard of which all groups
 * were read has another number of nonzero values than it states. */
typedef int gather_fn(void *arg, uint32_t group, const struct schema_span *span,
    struct err *e);
int gather_read(struct gather *g, gather_fn *each, void *arg, struct err *e);

/* One group of a contribution, with its memory.  Zero it before the first gather_group. */
struct gather_part {
	const float *x;			/* f32[n]; NULL: not sent, or in l */
	const struct codec_list *l;	/* the values that are not zero; NULL: not sent, or in x */
	int r;				/* what gather_group returned */
	/* below: private */
	struct buf body;
	float *room;
	size_t cap;
	struct codec_list list;
	struct robust_sum sum;
};
void gather_part_release(struct gather_part *p);

/* gather_group(g, i, group, lists, p, e): set p->x to the values of the group from contribution
 * i or, if lists is 1, i has one shard and the group's codec lists its values, set p->l.
 * Threads may call it for different i; after an error their caller calls gather_blame. */
int gather_group(struct gather *g, size_t i, uint32_t group, int lists,
    struct gather_part *p, struct err *e);

/* gather_members: append to l, sorted, the members of the contributions that are not `left': the
 * devices that the shard lists, else its own.  -ERR_REFUSED: a name is in two contributions. */
int gather_members(struct gather *g, struct array_names *l, struct err *e);

#endif
