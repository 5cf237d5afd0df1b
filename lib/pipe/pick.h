/*
 * Which shards are meant: by step, device and kind, as the options --step,
 * --device and --kind say.
 */
#ifndef ACE_PICK_H
#define ACE_PICK_H

#include <stdint.h>

#include "base/opt.h"

struct err;
struct filter;
struct reader;
struct shard;

/* For OPT_PART, with struct pick: all three, and but for the kind. */
extern const struct opt pick_opts[], pick_step_opts[];

struct pick {
	uint64_t lo, hi;	/* steps, both included */
	const char *device;	/* a shell pattern, or NULL */
	int kind;		/* enum shard_kind, or -1 */
};
#define PICK_INIT { 0, UINT64_MAX, NULL, -1 }

/* pick_given(p): 1 unless all shards are meant. */
int pick_given(const struct pick *p);
/* pick_wants(p, s): 1 when the shard is meant. */
int pick_wants(const struct pick *p, const struct shard *s);
/* pick_tensor(glob, name): 1 when a tensor of this name is meant; glob NULL:
 * all are. */
int pick_tensor(const char *glob, const char *name);
/* pick_pass(r, e): reads the shard that r stands at to its end, and as little of
 * it as can be. */
int pick_pass(struct reader *r, struct err *e);

/* pick_each(p, f, path, fn, arg, e): calls fn for each shard that is meant of an
 * operand (pipe/source.h) of program f; fn reads it to its end.  from: the file
 * that it stands in. */
typedef int pick_fn(void *arg, struct reader *r, const char *from,
    struct err *e);
int pick_each(const struct pick *p, const struct filter *f, const char *path,
    pick_fn *fn, void *arg, struct err *e);

#endif
