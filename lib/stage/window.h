/*
 * The groups that have passed and wait for what is decided of them, with their
 * values, oldest first.
 */
#ifndef ACE_WINDOW_H
#define ACE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sync/price.h"

struct err;
struct reader;
struct record;

struct window {
	struct window_group {
		uint32_t group;
		size_t at, n;		/* its values */
		int looked;		/* own is known */
		struct price_own own;
	} *g;
	size_t n, cap;
	struct buf values;
};
#define WINDOW_INIT { NULL, 0, 0, BUF_INIT }

/* window_add(w, r, rec, most, e): a record of r's current frame, of at most
 * `most' values. */
int window_add(struct window *w, const struct reader *r,
    const struct record *rec, size_t most, struct err *e);
/* window_values(w, i): f32[w->g[i].n], until the next window_add. */
const float *window_values(const struct window *w, size_t i);
/* window_drop(w, k): the oldest k are decided. */
void window_drop(struct window *w, size_t k);
void window_release(struct window *w);

#endif
