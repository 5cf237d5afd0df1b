/*
 * Bytes that are put down and fetched again: in memory up to a limit, and
 * beyond it in a file without a name.
 */
#ifndef ACE_HOLD_H
#define ACE_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

struct hold {
	size_t most;		/* bytes in memory */
	/* scratch(arg, fd, e): opens that file; NULL: temp_open does */
	int (*scratch)(void *arg, int *fd, struct err *e);
	void *arg;
	/* private */
	struct buf mem;
	uint64_t n;		/* bytes, those in the file too */
	int fd, open;
};
#define HOLD_INIT(most) { (most), NULL, NULL, BUF_INIT, 0, -1, 0 }

/* hold_put(h, p, n, at, e): puts down n bytes; *at is where, for hold_get. */
int hold_put(struct hold *h, const void *p, size_t n, uint64_t *at,
    struct err *e);
/* hold_next(h, n, all, p, e): *p is where the next n bytes will be in memory, so
 * that they can be made there; hold_put does not copy them then.  NULL when they
 * will be in the file.  all: as many bytes as will come, as far as is known,
 * for which there is room then. */
int hold_next(struct hold *h, size_t n, uint64_t all, void **p,
    struct err *e);
int hold_get(const struct hold *h, uint64_t at, void *p, size_t n,
    struct err *e);
/* hold_at(h, at): where the bytes put down there are in memory, until more are put down
 * or all are forgotten; NULL when they are in the file. */
void *hold_at(const struct hold *h, uint64_t at);
/* hold_clear(h): forgets all bytes. */
void hold_clear(struct hold *h);
void hold_release(struct hold *h);

#endif
