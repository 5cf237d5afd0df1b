#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/temp.h"
#include "pipe/scratch.h"

/* The first bytes are kept in memory, in whole items, and the rest in the
 * file. */

static int
scratch_write(const struct scratch *h, const unsigned char *p, size_t n,
    uint64_t at, struct err *e)
{
	ssize_t k;

	while (n > 0) {
		if ((k = pwrite(h->fd, p, n, (off_t)at)) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(e, "values that wait for their plan");
		}
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return 0;
}

static int
scratch_read(const struct scratch *h, unsigned char *p, size_t n, uint64_t at,
    struct err *e)
{
	ssize_t k;

	while (n > 0) {
		if ((k = pread(h->fd, p, n, (off_t)at)) < 0 && errno == EINTR)
			continue;
		if (k == 0)
			errno = EIO;
		if (k <= 0)
			return err_sys(e, "values that wait for their plan");
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return 0;
}

static int
scratch_open(struct scratch *h, struct err *e)
{
	int r = h->file != NULL ? h->file(h->arg, &h->fd, e) :
	    temp_open(&h->fd, e);

	h->open = r == 0;
	return r;
}

/* The next n bytes go into memory. */
static int
scratch_fits(const struct scratch *h, size_t n)
{
	return h->n == h->mem.n && n <= h->most - h->mem.n;
}

int
scratch_next(struct scratch *h, size_t n, uint64_t all, void **p, struct err *e)
{
	const size_t most = h->most - h->mem.n;
	int r;

	*p = NULL;
	if (!scratch_fits(h, n))
		return 0;
	if (all < n)
		all = n;
	if ((r = buf_room(&h->mem, all < most ? (size_t)all : most, e)) == 0)
		*p = h->mem.p + h->mem.n;
	return r;
}

int
scratch_put(struct scratch *h, const void *p, size_t n, uint64_t *at, struct err *e)
{
	int r;

	*at = h->n;
	if (h->mem.p != NULL && p == h->mem.p + h->mem.n) {
		h->mem.n += n;			/* scratch_next said there */
		r = 0;
	} else if (scratch_fits(h, n))
		r = buf_put(&h->mem, p, n, e);
	else if (!h->open && (r = scratch_open(h, e)) < 0)
		return r;
	else
		r = scratch_write(h, p, n, h->n - h->mem.n, e);
	if (r == 0)
		h->n += n;
	return r;
}

int
scratch_get(const struct scratch *h, uint64_t at, void *p, size_t n, struct err *e)
{
	if (n == 0)
		return 0;
	if (at >= h->mem.n)
		return scratch_read(h, p, n, at - h->mem.n, e);
	memcpy(p, h->mem.p + at, n);
	return 0;
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
