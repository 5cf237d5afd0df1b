#include "base/fd.h"
#include "base/io_impl.h"
#include "base/io_share.h"
#include "base/share.h"

int
io_share(struct io *io, const struct io *to)
{
	if (io->share == NULL && io->pipe && io->fd >= 0 && to->writing)
		io->share = share_new(io->fd, to->fd);
	return io->share != NULL;
}

void
io_share_keep(struct io *io, size_t n)
{
	if (io->share != NULL)
		share_begin(io->share, io->at == io->have &&
		    io->rec_at == io->rec.n ? n : 0);
}

int
io_share_pass(struct io *io, struct io *from, const void *p, size_t n, struct err *e)
{
	size_t done = 0;
	int r;

	if (from->share != NULL && share_has(from->share, io->fd, n)) {
		if ((r = io_flush(io, e)) < 0)
			return r;
		done = share_pass(from->share, n);
		io->count += done;
	}
	return io_write(io, (const unsigned char *)p + done, n - done, e);
}

int
io_share_move(struct io *io, struct io *from, size_t n, size_t *got, struct err *e)
{
	int r;

	*got = 0;
	if (from->share == NULL || from->at != from->have || from->marked)
		return 0;
	if ((r = io_flush(io, e)) < 0 || ((from->silence > 0 ||
	    from->until > 0) && (r = io_await(from, e)) < 0))
		return r;
	r = share_move(from->share, from->watch, n, got, from->name, e);
	from->count += *got;
	io->count += *got;
	return r;
}
