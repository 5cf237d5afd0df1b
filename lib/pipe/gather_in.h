/*
 * One contribution to a step: where its shard lies, opened and shut as often as
 * need be, and what is known of it in between.
 */
#ifndef ACE_GATHER_IN_H
#define ACE_GATHER_IN_H

#include <stddef.h>
#include <stdint.h>

#include "format/array.h"
#include "format/reader.h"
#include "format/values.h"
#include "pipe/aside.h"

struct err;

struct gather_in {
	size_t at;		/* its place among the inputs */
	struct reader *r;	/* while it is open: stands at the shard */
	int lent;		/* r is somebody else's and always open; else it
				 * is opened from one of these: */
	const char *path;	/* a file, NULL: none */
	uint64_t skip;		/* in which so many shards come before it */
	const struct aside *aside;	/* what was set aside, */
	uint64_t place;		/* and where in it */
	struct shard head;	/* of one that is not lent */
	int left;		/* left out of the names */
	struct values v;
	struct text_kv policy;	/* of this step's shard */
	struct array_names members;
};

void gather_in_init(struct gather_in *in, size_t at);
void gather_in_release(struct gather_in *in);

/* gather_in_open(in, o, e): opens it, if it is not lent: 1, or 0 where the file
 * has no further shard. */
int gather_in_open(struct gather_in *in, const struct reader_opts *o,
    struct err *e);
/* gather_in_values(in, e): the values from the first group on; what is noted
 * between them goes to policy and members. */
int gather_in_values(struct gather_in *in, struct err *e);
/* gather_in_shut(in): the opposite of both. */
void gather_in_shut(struct gather_in *in);

const struct shard *gather_in_head(const struct gather_in *in);

/* gather_in_group(in, group, lists, e): the next group, into in->v.
 * gather_in_value(in, at): its value `at'. */
int gather_in_group(struct gather_in *in, uint32_t group, int lists,
    struct err *e);
float gather_in_value(const struct gather_in *in, size_t at);
/* gather_in_names(in, l, e): appends the names of those that are in it. */
int gather_in_names(const struct gather_in *in, struct array_names *l,
    struct err *e);

/* gather_in_next(r, e): to the next shard of a stream: 1, or 0 at the end. */
int gather_in_next(struct reader *r, struct err *e);

#endif
