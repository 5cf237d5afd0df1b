/*
 * Temporary storage of bytes: in memory up to a limit, beyond it in a file, by default one
 * without a name.
 */
#ifndef ACE_SCRATCH_H
#define ACE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

struct scratch {
	size_t most;		/* most bytes in memory */
	/* opens the file, which may be written from *from on; NULL: temp_open */
	int (*file)(void *arg, int *fd, uint64_t *from, struct err *e);
	void *arg;
	const char *name;	/* for messages; NULL: values that wait for a plan */
	/* private */
	struct buf mem;
	uint64_t n;		/* bytes stored, in memory and in the file */
	uint64_t from;		/* position in the file of byte 0, which may be in memory instead */
	int fd, open;
};
#define SCRATCH_INIT(most) { (most), NULL, NULL, NULL, BUF_INIT, 0, 0, -1, 0 }

/* Store n bytes; *at is their position for scratch_get. */
int scratch_put(struct scratch *h, const void *p, size_t n, uint64_t *at,
    struct err *e);
/* Set *p to the place in memory where the next n bytes will be stored, so that the caller
 * can produce them there and scratch_put need not copy; or to NULL if the file will have them.
 * all: the bytes still to come, for which room is made; 0: unknown. */
int scratch_next(struct scratch *h, size_t n, uint64_t all, void **p,
    struct err *e);
/* Read n bytes, of one item or several, from position `at'. */
int scratch_get(const struct scratch *h, uint64_t at, void *p, size_t n,
    struct err *e);
/* Return the bytes at a position if they are in memory, valid until the next scratch_next,
 * scratch_put or scratch_clear; NULL if they are in the file. */
void *scratch_at(const struct scratch *h, uint64_t at);
/* Forget all bytes, close the file and keep the memory for the next use. */
void scratch_clear(struct scratch *h);
void scratch_release(struct scratch *h);

#endif
