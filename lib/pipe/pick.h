/*
 * Which shards are meant: by step, device and kind, as the options --step,
 * --device and --kind say.
 */
#ifndef ACE_PICK_H
#define ACE_PICK_H

#include <stdint.h>

#include "base/cli.h"

struct err;
struct reader;
struct shard;

enum { PICK_STEP = CLI_LONG + 950, PICK_DEVICE, PICK_KIND };

#define PICK_OPTS \
	{ PICK_STEP, "step", "A-B", \
	    "only shards of step A, or of steps A-B, A-, -B" }, \
	{ PICK_DEVICE, "device", "GLOB", \
	    "only shards of devices whose name matches" }, \
	{ PICK_KIND, "kind", "KIND", "only gradient, delta, sum, mean, " \
	    "residual, model or history" }

struct pick {
	int given;		/* some option was */
	uint64_t lo, hi;	/* steps, both included */
	const char *device;	/* a shell pattern, or NULL */
	int kind;		/* enum shard_kind, or -1 */
};
#define PICK_INIT { 0, 0, UINT64_MAX, NULL, -1 }

/* pick_set(p, key, val, e): 1 the option was one of ours, 0 it was not, < 0 an
 * error. */
int pick_set(struct pick *p, int key, const char *val, struct err *e);
/* pick_wants(p, s): 1 when the shard is meant. */
int pick_wants(const struct pick *p, const struct shard *s);
/* pick_tensor(glob, name): 1 when a tensor of this name is meant; glob NULL:
 * all are. */
int pick_tensor(const char *glob, const char *name);
/* pick_pass(r, e): reads the shard that r stands at to its end, and as little of
 * it as can be. */
int pick_pass(struct reader *r, struct err *e);

#endif
