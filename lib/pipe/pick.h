/* Select shards by step, device and kind: options --step, --device and --kind. */
#ifndef ACE_PICK_H
#define ACE_PICK_H

#include <stdint.h>

#include "base/opt.h"

struct err;
struct filter;
struct reader;
struct shard;

/* The three options, for OPT_PART with a struct pick. */
extern const struct opt pick_opts[];

struct pick {
	uint64_t lo, hi;	/* steps, both included */
	const char *device;	/* a shell pattern of names; NULL: any device */
	int kind;		/* enum shard_kind; -1: any kind */
};
#define PICK_INIT { 0, UINT64_MAX, NULL, -1 }

/* Return 1 unless all shards are selected. */
int pick_given(const struct pick *p);
int pick_wants(const struct pick *p, const struct shard *s);
/* Return 1 if a tensor of this name is selected; glob NULL: all tensors are. */
int pick_tensor(const char *glob, const char *name);
/* Return -ERR_NO, as grep does, for a program that selected nothing. glob: the --tensor
 * that matched no tensor, or NULL if no shard was selected by p. */
int pick_none(const struct pick *p, const char *glob, struct err *e);
/* Go to the end of the shard at which r stands, skipping as much as possible. */
int pick_pass(struct reader *r, struct err *e);

/* Call fn for each selected shard of an operand (pipe/source.h) of program f. fn must read
 * the shard to its end. from: the shard's file. */
typedef int pick_fn(void *arg, struct reader *r, const char *from, struct err *e);
int pick_each(const struct pick *p, const struct filter *f, const char *path,
    pick_fn *fn, void *arg, struct err *e);

#endif
