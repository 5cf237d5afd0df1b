/*
 * Bytes that are put down and fetched again: in memory up to a limit, and
 * beyond it in a file without a name.
 */
#ifndef ACE_SCRATCH_H
#define ACE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

struct scratch {
	size_t most;		/* bytes in memory */
	/* file(arg, fd, from, e): opens that file, which is ours from byte *from
	 * on; NULL: temp_open does */
	int (*file)(void *arg, int *fd, uint64_t *from, struct err *e);
	void *arg;
	const char *name;	/* for messages; NULL: values that wait */
	/* private */
	struct buf mem;
	uint64_t n;		/* bytes, those in the file too */
	uint64_t from;		/* in the file, where the first of all would be */
	int fd, open;
};
#define SCRATCH_INIT(most) { (most), NULL, NULL, NULL, BUF_INIT, 0, 0, -1, 0 }

/* scratch_put(h, p, n, at, e): puts down n bytes; *at is where, for scratch_get. */
int scratch_put(struct scratch *h, const void *p, size_t n, uint64_t *at,
    struct err *e);
/* scratch_next(h, n, all, p, e): *p is where the next n bytes will be in memory, so
 * that they can be made there; scratch_put does not copy them then.  NULL when they
 * will be in the file.  all: as many bytes as will come, as far as is known,
 * for which there is room then. */
int scratch_next(struct scratch *h, size_t n, uint64_t all, void **p,
    struct err *e);
/* scratch_get(h, at, p, n, e): n bytes from there, of one item or of several. */
int scratch_get(const struct scratch *h, uint64_t at, void *p, size_t n,
    struct err *e);
/* scratch_at(h, at): where the bytes put down there are in memory, until more are put down
 * or all are forgotten; NULL when they are in the file. */
void *scratch_at(const struct scratch *h, uint64_t at);
/* scratch_clear(h): forgets all bytes. */
void scratch_clear(struct scratch *h);
void scratch_release(struct scratch *h);

#endif
