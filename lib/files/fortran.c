#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/temp.h"
#include "files/fortran.h"
#include "files/seekable.h"

enum { FORTRAN_WINDOW = 256 * 1024 };

/*
 * Rows are the first index; `rest' is all others.  A block is some rows of the
 * rest, or a part of one row, in C order.
 */
struct fortran {
	const struct schema_tensor *t;
	size_t size;			/* bytes per value */
	uint64_t rows, rest;

	unsigned char *block;		/* cap values */
	size_t cap, have, at;		/* in values */
	uint64_t row, col;		/* where the next block begins */

	unsigned char *all;		/* the tensor, when it fits a block */
	size_t nall;
	int fd;				/* or the file it is in, */
	struct io *io;			/* while it is written, */
	unsigned char *window;		/* and some of its bytes */
	uint64_t wat, last;
	size_t wn;
};

int
fortran_open(struct fortran **out, const struct schema_tensor *t, size_t size,
    size_t block, struct err *e)
{
	struct fortran *f = alloc_get(1, sizeof(*f), e);
	int r = 0;

	*out = NULL;
	if (f == NULL)
		return -ERR_SYS;
	f->t = t;
	f->size = size;
	f->fd = -1;
	f->rows = t->ndim != 0 ? t->dim[0] : 1;
	f->rest = f->rows != 0 ? t->numel / f->rows : 0;
	f->cap = (block != 0 ? block : FORTRAN_BLOCK) / size;
	if (t->numel < f->cap)
		f->cap = (size_t)t->numel;
	if ((f->block = alloc_get(f->cap, size, e)) == NULL)
		r = -ERR_SYS;
	else if (t->numel <= f->cap)
		r = (f->all = alloc_get(f->cap, size, e)) == NULL ?
		    -ERR_SYS : 0;
	else if ((f->window = alloc_get(FORTRAN_WINDOW, 1, e)) == NULL)
		r = -ERR_SYS;
	else if ((r = temp_open(&f->fd, e)) == 0)
		r = io_create_fd(&f->io, f->fd, "<temporary>", e);
	if (r < 0)
		fortran_free(f);
	else
		*out = f;
	return r;
}

int
fortran_put(struct fortran *f, const void *p, size_t n, struct err *e)
{
	if (f->all == NULL)
		return io_write(f->io, p, n, e);
	memcpy(f->all + f->nall, p, n);
	f->nall += n;
	return 0;
}

/* The n bytes from `from' on; more with them when the runs come close after
 * one another. */
static int
fortran_run(struct fortran *f, uint64_t from, size_t n,
    const unsigned char **p, struct err *e)
{
	uint64_t end = f->t->numel * f->size;
	size_t want = n;
	int r;

	if (f->all != NULL) {
		*p = f->all + from;
		return 0;
	}
	if (from < f->wat || from + n > f->wat + f->wn) {
		if (from >= f->last && from - f->last < FORTRAN_WINDOW / 4)
			want = end - from < FORTRAN_WINDOW ?
			    (size_t)(end - from) : FORTRAN_WINDOW;
		f->wn = 0;
		if ((r = seekable_pread(f->fd, f->window, want, from,
		    "<temporary>", e)) < 0)
			return r;
		f->wat = from;
		f->wn = want;
	}
	f->last = from + n;
	*p = f->window + (from - f->wat);
	return 0;
}

/* Where value `col' of a row lies, in whole columns of rows. */
static uint64_t
fortran_column(const struct fortran *f, uint64_t col)
{
	uint64_t at = 0, stride[SCHEMA_MAX_DIM], m = 1;
	unsigned d;

	for (d = 1; d < f->t->ndim; d++) {
		stride[d] = m;
		m *= f->t->dim[d];
	}
	for (d = f->t->ndim; d-- > 1;) {
		at += col % f->t->dim[d] * stride[d];
		col /= f->t->dim[d];
	}
	return at;
}

/* nr rows of nc columns from (row, col), columns read in runs of rows. */
static int
fortran_gather(struct fortran *f, size_t nr, size_t nc, struct err *e)
{
	size_t most = FORTRAN_WINDOW / f->size, c, i, k, n;
	const unsigned char *p;
	uint64_t from;
	int r;

	for (c = 0; c < nc; c++)
		for (i = 0; i < nr; i += n) {
			n = nr - i < most ? nr - i : most;
			from = fortran_column(f, f->col + c) * f->rows +
			    f->row + i;
			if ((r = fortran_run(f, from * f->size, n * f->size,
			    &p, e)) < 0)
				return r;
			for (k = 0; k < n; k++)
				memcpy(f->block + ((i + k) * nc + c) * f->size,
				    p + k * f->size, f->size);
		}
	return 0;
}

static int
fortran_fill(struct fortran *f, struct err *e)
{
	uint64_t nr = 1, nc = f->rest - f->col;
	int r;

	if (f->io != NULL) {		/* all was put */
		if ((r = io_flush(f->io, e)) < 0)
			return r;
		io_free(f->io);
		f->io = NULL;
	}
	if (f->rest <= f->cap) {
		nr = f->cap / f->rest;
		if (nr > f->rows - f->row)
			nr = f->rows - f->row;
	} else if (nc > f->cap) {
		nc = f->cap;
	}
	if ((r = fortran_gather(f, (size_t)nr, (size_t)nc, e)) < 0)
		return r;
	f->have = (size_t)(nr * nc);
	f->at = 0;
	f->col += nc;
	if (f->col == f->rest) {
		f->col = 0;
		f->row += nr;
	}
	return 0;
}

int
fortran_get(struct fortran *f, void *p, size_t n, struct err *e)
{
	unsigned char *to = p;
	size_t k;
	int r;

	for (; n != 0; n -= k) {
		if (f->at == f->have && (r = fortran_fill(f, e)) < 0)
			return r;
		k = f->have - f->at < n ? f->have - f->at : n;
		memcpy(to, f->block + f->at * f->size, k * f->size);
		to += k * f->size;
		f->at += k;
	}
	return 0;
}

void
fortran_free(struct fortran *f)
{
	if (f == NULL)
		return;
	io_free(f->io);
	if (f->fd >= 0)
		(void)close(f->fd);
	alloc_free(f->block);
	alloc_free(f->all);
	alloc_free(f->window);
	alloc_free(f);
}
