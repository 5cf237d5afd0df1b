/*
 * Read the shards of one step from many devices in lockstep, group by group.
 *
 * Each of several inputs gives one shard to a step.  A single input has the devices'
 * shards one after another (cat, GNU parallel); they are first copied into an unnamed
 * temporary file.  Either way the shards are in the order of the devices' ids, whatever
 * the order of arrival.
 *
 * A window is a range of contributions that are open together.  Files and copied shards
 * are read window by window, so that neither memory nor the number of open files grows
 * with the number of shards.  With GATHER_WHOLE one window has all shards, for rules that
 * need all values of a group.
 *
 * gather_open is for inputs: it waits for each input, and damage is an error.
 * gather_many is for the files of a step in a spool.
 */
#ifndef ACE_GATHER_H
#define ACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "device/dense.h"
#include "format/array.h"
#include "format/reader.h"
#include "format/values.h"

struct err;

enum {
	GATHER_WHOLE = 1,	/* one window has all contributions */
	GATHER_TWICE = 2	/* a step's shards are read more than once */
};

/* One contribution to a step: where its shard is, and what stays in memory while it is
 * closed. */
struct gather_in {
	struct shard head;
	int left;		/* 1: the contribution does not count: it is left out of the
				 * names, the merged policy and the norm; set by the caller */
	struct text_kv policy;	/* after gather_read: the policy in the shard */
	struct array_names members;	/* after gather_read: the names that it lists */
	/* below: private */
	size_t at;		/* its index among the inputs */
	struct reader *r;	/* stands at the shard while the contribution is open */
	int stays;		/* 1: r belongs to an input, which stays open */
	const char *path;	/* file with the shard after `place' others; NULL: none */
	uint64_t place;		/* path NULL: position of the shard in g->fd */
	int summed;		/* 1: made by gather_sum; policy and members are known */
	struct values v;
	struct dense made;	/* the spool's reconstruction of a difference; made.r
				 * NULL: the shard is not a difference */
};

struct gather {
	struct gather_in *in;	/* this step's contributions, by device */
	size_t n;
	size_t lo, hi;		/* contributions [lo, hi) are open */
	struct schema schema;	/* model of all contributions */
	size_t blame;		/* index + 1 of the input that caused an error; 0: none */
	size_t opens;		/* files that a contribution takes: 1, or 2 if some are
				 * differences in a spool */
	/* below: private */
	struct reader_opts o;
	int how;		/* GATHER_WHOLE, GATHER_TWICE */
	uint64_t expect;
	char **path;		/* the inputs */
	size_t nsrc;
	struct reader **src;	/* readers that stay open for all steps; NULL: files,
				 * which are opened for each step */
	uint64_t done;		/* steps that are over */
	int once;		/* 1: files of a spool, with one shard each */
	int ahead;		/* 1: the only input stands at a shard of another step */
	unsigned char run[SHARD_ID];	/* for a single input: run of the last step read */
	uint64_t step;		/* number of that step; in a spool: the step to make */
	int was;		/* 1: run and step are set */
	int fd;			/* file of copied shards, each a stream; -1: none */
	uint64_t bytes;		/* approximate coded size of this step's contributions */
	size_t cap;		/* of in */
	size_t room;		/* contributions of a window */
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

/* gather_blame(g, i, r): note in g->blame that contribution i causes the error r, if r is
 * -ERR_DATA or -ERR_REFUSED and the first such error; return r. */
int gather_blame(struct gather *g, size_t i, int r);

/* gather_step: go to the next step; none of its contributions is open.  Return 1, or 0 if
 * all inputs ended.  -ERR_DATA, "mismatch: ...": two shards differ in run, step or schema.
 * -ERR_REFUSED: a device has two shards, or a shard is missing. */
int gather_step(struct gather *g, struct err *e);
/* gather_memory: return the approximate memory, in bytes, that all contributions take
 * while they are open. */
uint64_t gather_memory(const struct gather *g);

/* gather_rewind(g, e): open the first window of contributions at their first group.  Pipes,
 * which are always open, are all in one window.
 * gather_read(g, each, arg, e), after gather_rewind: for each window call `each' for every
 * group in order, then verify that its shards are whole.  `each' asks for the group from
 * the contributions [g->lo, g->hi). */
typedef int gather_fn(void *arg, uint32_t group, const struct schema_span *span,
    struct err *e);
int gather_rewind(struct gather *g, struct err *e);
int gather_read(struct gather *g, gather_fn *each, void *arg, struct err *e);
/* gather_group(g, i, group, x, l, e): *x becomes the values f32[n] of the group from
 * contribution i, or NULL if it was not sent.  If l is not NULL and the group's codec
 * lists its values, *l becomes that list and *x NULL; otherwise *l becomes NULL.
 * Several threads may ask for different i; after an error the caller then calls
 * gather_blame. */
int gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e);

/* gather_members, after gather_read: append the names of all contributors to l, sorted; an
 * aggregate contributes the names that it lists.  -ERR_REFUSED: a name is in two
 * contributions. */
int gather_members(struct gather *g, struct array_names *l, struct err *e);

#endif
