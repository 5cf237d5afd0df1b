/*
 * Bytes that wait: in memory up to a limit, then in a file without a name.
 */
#ifndef ACE_HOLD_H
#define ACE_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

struct hold {
	size_t most;		/* bytes in memory */
	/* scratch(arg, fd, e): that file; NULL: temp_open's */
	int (*scratch)(void *arg, int *fd, struct err *e);
	void *arg;
	/* private */
	struct buf mem;
	uint64_t n;		/* bytes, those in the file too */
	int fd, open;
};
#define HOLD_INIT(most) { (most), NULL, NULL, BUF_INIT, 0, -1, 0 }

/* hold_put(h, p, n, at, e): *at is where they are. */
int hold_put(struct hold *h, const void *p, size_t n, uint64_t *at,
    struct err *e);
int hold_get(const struct hold *h, uint64_t at, void *p, size_t n,
    struct err *e);
/* hold_clear(h): nothing waits any more. */
void hold_clear(struct hold *h);
void hold_release(struct hold *h);

#endif
