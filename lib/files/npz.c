/*
 * npz: a zip of .npy entries.  The CRC of every entry that is read to its end is
 * checked.  The heads of all entries are needed before the first value, so the
 * file is read twice; a pipe is copied to a temporary file first.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/err.h"
#include "files/backend.h"
#include "files/dtype.h"
#include "files/npy.h"
#include "files/seekable.h"
#include "files/zipend.h"

struct npz {
	struct arc *a;
	struct io *io;			/* reading: the file */
	struct arc_entry entry;
};

static int
npz_new(struct npz **out, struct err *e)
{
	*out = alloc_get(1, sizeof(**out), e);
	return *out != NULL ? 0 : -ERR_SYS;
}

static void
npz_free(struct npz *z)
{
	if (z == NULL)
		return;
	arc_free(z->a);
	io_free(z->io);
	alloc_free(z);
}

/* ---- reading ---- */

/* From the beginning. */
static int
npz_start(struct format_source *s, struct err *e)
{
	struct npz *z = s->own;
	int r;

	arc_free(z->a);
	z->a = NULL;
	if (z->io == NULL && (r = io_open_fd(&z->io, s->fd, s->name, e)) < 0)
		return r;
	if ((r = io_seek(z->io, 0, e)) < 0)
		return r;
	return arc_open(&z->a, z->io, ARC_ZIP, e);
}

/* The next entry's name without ".npy"; "" at the end. */
static int
npz_entry(struct format_source *s, char *name, size_t cap, struct err *e)
{
	struct npz *z = s->own;
	struct arc_entry *en = &z->entry;
	size_t n;
	int k = arc_next(z->a, en, e);

	name[0] = '\0';
	if (k <= 0)
		return k;
	n = strlen(en->name);
	if (!en->file || n <= 4 || strcmp(en->name + n - 4, ".npy") != 0)
		return err_set(e, ERR_DATA, "unsupported: %s is no npy array",
		    en->what);
	if (en->locked)
		return err_set(e, ERR_DATA, "unsupported: %s is encrypted",
		    en->what);
	if (n - 4 >= cap)
		return err_set(e, ERR_DATA, "limit: the name of %s is longer "
		    "than %zu bytes", en->what, cap - 1);
	memcpy(name, en->name, n - 4);
	name[n - 4] = '\0';
	return 0;
}

static int
npz_get(void *arg, void *p, size_t n, size_t *got, struct err *e)
{
	const struct npz *z = arg;

	return arc_read(z->a, p, n, got, e);
}

static int
npz_head(struct format_source *s, struct npy_head *h, struct err *e)
{
	struct npz *z = s->own;

	return npy_read(h, npz_get, z, z->entry.what, e);
}

static int
npz_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	char name[SCHEMA_MAX_NAME + 1];
	struct schema_tensor t;
	struct npy_head h;
	uint64_t size, entries = 0;
	size_t cap = 0;
	struct npz *z = NULL;
	int r;

	(void)o;
	r = npz_new(&z, e);
	s->own = z;
	if (r == 0 && (r = seekable_open(&s->fd, &size, s->path, e)) == 0 &&
	    (r = zipend_check(s->fd, size, s->name, &entries, e)) == 0) {
		if (entries == 0)	/* libarchive knows no such zip */
			return 0;
		r = npz_start(s, e);
	}
	while (r == 0 && (r = npz_entry(s, name, sizeof(name), e)) == 0 &&
	    name[0] != '\0') {
		if ((r = npz_head(s, &h, e)) < 0)
			break;
		memset(&t, 0, sizeof(t));
		t.dtype = (uint8_t)h.dtype;
		t.ndim = (uint8_t)h.ndim;
		memcpy(t.dim, h.dim, sizeof(t.dim));
		if ((r = backend_add(s, &t, name, e)) == 0 &&
		    (r = alloc_grow(&s->swap, &cap, s->schema.n, 1, e)) == 0)
			s->swap[s->schema.n - 1] = h.swap;
	}
	/* two entries at one place are one to libarchive */
	if (r == 0 && s->schema.n != entries)
		r = err_set(e, ERR_DATA, "corrupt: '%s' should have %llu "
		    "entries, %zu can be read", s->name,
		    (unsigned long long)entries, s->schema.n);
	return r == 0 ? npz_start(s, e) : r;
}

/* In the second reading the entries must be the same as in the first; otherwise
 * the file was changed in between. */
static int
npz_begin(struct format_source *s, struct err *e)
{
	const struct schema_tensor *t = &s->schema.t[s->cur];
	char name[SCHEMA_MAX_NAME + 1];
	struct npy_head h;
	int r;

	if ((r = npz_entry(s, name, sizeof(name), e)) < 0)
		return r;
	if (strcmp(name, t->name) == 0) {
		if ((r = npz_head(s, &h, e)) < 0)
			return r;
		if (h.dtype == t->dtype && h.ndim == t->ndim &&
		    h.swap == s->swap[s->cur] &&
		    memcmp(h.dim, t->dim, h.ndim * sizeof(h.dim[0])) == 0)
			return 0;
	}
	return err_set(e, ERR_DATA, "mismatch: '%s' changed while it was read",
	    s->name);
}

static int
npz_bytes(struct format_source *s, void *p, size_t n, struct err *e)
{
	const struct npz *z = s->own;
	size_t got = 0;
	int r = arc_read(z->a, p, n, &got, e);

	if (r < 0 || got == n)
		return r;
	return err_set(e, ERR_DATA, "truncated: %s has fewer values than its "
	    "shape", z->entry.what);
}

/* Reading to the end of the entry is what makes the CRC be checked. */
static int
npz_end(struct format_source *s, struct err *e)
{
	const struct npz *z = s->own;
	unsigned char c;
	size_t got = 0;
	int r = arc_read(z->a, &c, 1, &got, e);

	if (r < 0 || got == 0)
		return r;
	return err_set(e, ERR_DATA, "corrupt: %s has more values than its "
	    "shape", z->entry.what);
}

static void
npz_close(struct format_source *s)
{
	npz_free(s->own);
}

const struct backend_in npz_in = {
	npz_open, npz_begin, npz_bytes, npz_end, NULL, npz_close
};

/* ---- writing ---- */

static int
npz_create(struct format_sink *s, struct err *e)
{
	const struct arc_opts o = { "zip", NULL, s->opts->deflate ?
	    "zip:compression=deflate" : "zip:compression=store" };
	struct npz *z = NULL;
	size_t i;
	int r = npz_new(&z, e);

	s->own = z;
	if (r < 0)
		return r;
	for (i = 0; i < s->schema->n; i++)
		if (!npy_has(s->dtype[i]))
			s->dtype[i] = SCHEMA_F32;
	return arc_create(&z->a, s->io, &o, e);
}

static int
npz_put_bytes(struct format_sink *s, const void *p, size_t n, struct err *e)
{
	struct npz *z = s->own;

	return arc_write(z->a, p, n, e);
}

static int
npz_put_begin(struct format_sink *s, struct err *e)
{
	const struct schema_tensor *t = &s->schema->t[s->cur];
	unsigned dtype = s->dtype[s->cur];
	char path[SCHEMA_MAX_NAME + sizeof(".npy")];
	struct npz *z = s->own;
	struct buf b = BUF_INIT;
	int r;

	if (arc_leaves(t->name))
		return err_set(e, ERR_DATA, "unsupported: tensor '%.200s' has a "
		    "name that leaves the folder of whoever unpacks an npz",
		    t->name);
	(void)snprintf(path, sizeof(path), "%s.npy", t->name);
	if ((r = npy_make(&b, t, dtype, e)) == 0 &&
	    (r = arc_put(z->a, path, b.n + t->numel * dtype_size(dtype),
	    e)) == 0)
		r = arc_write(z->a, b.p, b.n, e);
	buf_release(&b);
	return r;
}

static int
npz_put_end(struct format_sink *s, struct err *e)
{
	struct npz *z = s->own;

	return arc_put_end(z->a, e);
}

static int
npz_put_finish(struct format_sink *s, struct err *e)
{
	struct npz *z = s->own;

	return arc_finish(z->a, e);
}

static void
npz_put_close(struct format_sink *s)
{
	npz_free(s->own);
}

const struct backend_out npz_out = {
	npz_create, npz_put_begin, npz_put_bytes, npz_put_end, npz_put_finish,
	npz_put_close
};
