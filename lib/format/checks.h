/*
 * What ace-stream(5) says of the annotations of a shard, checked for who lets in
 * or verifies what others wrote.  Who only passes one on, or has no use for it,
 * does not look into it.
 */
#ifndef ACE_CHECKS_H
#define ACE_CHECKS_H

#include <stdint.h>

struct err;
struct reader;

/* Of one shard; zeros before it. */
struct checks {
	uint64_t names;			/* of contributors */
	int sign;			/* a signature came: it is the last */
};

/* checks_note(c, r, e): the annotation that r stands at.  -ERR_DATA, with where. */
int checks_note(struct checks *c, const struct reader *r, struct err *e);
/* checks_data(c, r, e): the same of DATA: none follows a signature. */
int checks_data(const struct checks *c, const struct reader *r, struct err *e);

#endif
