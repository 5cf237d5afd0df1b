#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/temp.h"
#include "pipe/scratch.h"

/* The first items are in memory and the others in the file, which has a hole in place of
 * the first ones. */

static const char *
scratch_name(const struct scratch *h)
{
	return h->name != NULL ? h->name : "values that wait for their plan";
}

static int
scratch_open(struct scratch *h, struct err *e)
{
	int r;

	h->from = 0;
	r = h->file != NULL ? h->file(h->arg, &h->fd, &h->from, e) :
	    temp_open(NULL, &h->fd, e);
	h->open = r == 0;
	return r;
}

/* Return 1 if the next n bytes go into memory. */
static int
scratch_fits(const struct scratch *h, size_t n)
{
	return h->n == h->mem.n && n <= h->most - h->mem.n;
}

int
scratch_next(struct scratch *h, size_t n, uint64_t all, void **p, struct err *e)
{
	const size_t most = h->most - h->mem.n, had = h->mem.cap;
	int r;

	*p = NULL;
	if (!scratch_fits(h, n))
		return 0;
	if (all < n)
		all = n;
	if ((r = buf_room(&h->mem, all < most ? (size_t)all : most, e)) < 0)
		return r;
	if (h->mem.cap != had)
		alloc_whole(h->mem.p, h->mem.cap);
	*p = h->mem.p + h->mem.n;
	return 0;
}

int
scratch_put(struct scratch *h, const void *p, size_t n, uint64_t *at, struct err *e)
{
	int r;

	*at = h->n;
	if (h->mem.p != NULL && p == h->mem.p + h->mem.n) {
		h->mem.n += n;			/* the bytes are there: scratch_next */
		r = 0;
	} else if (scratch_fits(h, n))
		r = buf_put(&h->mem, p, n, e);
	else if (!h->open && (r = scratch_open(h, e)) < 0)
		return r;
	else
		r = fd_write_at(h->fd, (off_t)(h->from + h->n), p, n,
		    scratch_name(h), e);
	if (r == 0)
		h->n += n;
	return r;
}

int
scratch_get(const struct scratch *h, uint64_t at, void *p, size_t n, struct err *e)
{
	const size_t left = at < h->mem.n ? h->mem.n - (size_t)at : 0;
	const size_t k = n < left ? n : left;

	if (k > 0)
		memcpy(p, h->mem.p + at, k);
	return k == n ? 0 : fd_read_all(h->fd, (off_t)(h->from + at + k),
	    (char *)p + k, n - k, scratch_name(h), e);
}

void *
scratch_at(const struct scratch *h, uint64_t at)
{
	return at < h->mem.n ? h->mem.p + at : NULL;
}

void
scratch_clear(struct scratch *h)
{
	h->mem.n = 0;
	h->n = 0;
	if (h->open)
		(void)close(h->fd);
	h->open = 0;
	h->fd = -1;
}

void
scratch_release(struct scratch *h)
{
	scratch_clear(h);
	buf_release(&h->mem);
}
