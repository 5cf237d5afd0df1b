/*
 * npz: a zip of .npy entries, through libarchive, which checks the CRC of
 * every entry that is read to its end.  The heads of all entries are needed
 * before the first value, so the file is read twice; a pipe is copied to a
 * temporary file first.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "files/backend.h"
#include "files/dtype.h"
#include "files/npy.h"
#include "files/seekable.h"
#include "files/zipend.h"

enum { NPZ_BLOCK = 64 * 1024, NPZ_WHAT = 640 };

struct npz {
	struct archive *a;
	locale_t utf8;
	struct err *e;		/* where the write callback reports */
	struct format_sink *sink;
	int drop;		/* nothing is written any more */
	int fd;			/* reading: the file, */
	uint64_t at, size;	/* its position and length, */
	int failed;		/* errno of a read that failed */
	unsigned char block[NPZ_BLOCK];
};

/* libarchive converts names to the character set of the locale and back, and
 * only UTF-8 preserves all of them.  So a UTF-8 locale is set, for this thread
 * and for the length of a call. */
static locale_t
npz_locale(void)
{
	static const char *const names[] = { "C.UTF-8", "en_US.UTF-8", "UTF-8" };
	locale_t l;
	size_t i;

	if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
		return (locale_t)0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((l = newlocale(LC_CTYPE_MASK, names[i], (locale_t)0)) !=
		    (locale_t)0)
			return l;
	return (locale_t)0;
}

static locale_t
npz_enter(const struct npz *z)
{
	return z->utf8 != (locale_t)0 ? uselocale(z->utf8) : (locale_t)0;
}

static void
npz_leave(const struct npz *z, locale_t was)
{
	if (z->utf8 != (locale_t)0)
		(void)uselocale(was);
}

static int
npz_new(struct npz **out, struct err *e)
{
	if ((*out = alloc_get(1, sizeof(**out), e)) == NULL)
		return -ERR_SYS;
	(*out)->utf8 = npz_locale();
	return 0;
}

static void
npz_free(struct npz *z)
{
	if (z == NULL)
		return;
	(void)archive_free(z->a);
	if (z->utf8 != (locale_t)0)
		freelocale(z->utf8);
	alloc_free(z);
}

/* ---- reading ---- */

/* Used instead of libarchive's own reader of descriptors, which would report a
 * failed read as a truncated archive. */
static la_ssize_t
npz_in_read(struct archive *a, void *arg, const void **p)
{
	struct npz *z = arg;
	ssize_t n;

	do
		n = pread(z->fd, z->block, NPZ_BLOCK, (off_t)z->at);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		z->failed = errno;
		archive_set_error(a, errno, "read failed");
		return ARCHIVE_FATAL;
	}
	z->at += (uint64_t)n;
	*p = z->block;
	return n;
}

static la_int64_t
npz_in_seek(struct archive *a, void *arg, la_int64_t to, int whence)
{
	struct npz *z = arg;
	la_int64_t from = whence == SEEK_CUR ? (la_int64_t)z->at :
	    whence == SEEK_END ? (la_int64_t)z->size : 0;

	(void)a;
	if (to < -from || to > (la_int64_t)z->size - from)
		return ARCHIVE_FATAL;
	z->at = (uint64_t)(from + to);
	return from + to;
}

/* Data errors have no errno of their own; the words are libarchive's. */
static int
npz_fail(const struct npz *z, const char *what, struct err *e)
{
	const char *why = archive_error_string(z->a), *kind = "corrupt";

	if (z->failed != 0) {
		errno = z->failed;
		return err_sys(e, "%s", what);
	}
	if (why == NULL)
		why = "unreadable";
	if (archive_errno(z->a) == ENOMEM)
		return err_set(e, ERR_SYS, "%s: %s", what, why);
	if (strstr(why, "runcated") != NULL)
		kind = "truncated";
	else if (strstr(why, "nsupported") != NULL)
		kind = "unsupported";
	return err_set(e, ERR_DATA, "%s: %s: %s", kind, what, why);
}

static int
npz_start(struct format_source *s, struct err *e)
{
	struct npz *z = s->own;
	char what[NPZ_WHAT];

	(void)snprintf(what, sizeof(what), "'%s'", s->name);
	(void)archive_free(z->a);
	if ((z->a = archive_read_new()) == NULL)
		return err_set(e, ERR_SYS, "out of memory");
	z->fd = s->fd;
	z->at = 0;
	if (archive_read_support_format_zip_seekable(z->a) != ARCHIVE_OK ||
	    archive_read_set_read_callback(z->a, npz_in_read) != ARCHIVE_OK ||
	    archive_read_set_seek_callback(z->a, npz_in_seek) != ARCHIVE_OK ||
	    archive_read_set_callback_data(z->a, z) != ARCHIVE_OK ||
	    archive_read_open1(z->a) != ARCHIVE_OK)
		return npz_fail(z, what, e);
	return 0;
}

/* The next entry's name without ".npy", valid until the one after it; NULL at
 * the end.  what: the entry, for messages. */
static int
npz_entry(struct format_source *s, char *name, size_t cap, char what[NPZ_WHAT],
    struct err *e)
{
	struct npz *z = s->own;
	struct archive_entry *ae;
	const char *path;
	locale_t was = npz_enter(z);
	int got = archive_read_next_header(z->a, &ae);
	size_t n;

	path = got == ARCHIVE_OK ? archive_entry_pathname(ae) : NULL;
	npz_leave(z, was);
	(void)snprintf(what, NPZ_WHAT, "'%s'", s->name);
	name[0] = '\0';
	if (got == ARCHIVE_EOF)
		return 0;
	if (got != ARCHIVE_OK)
		return npz_fail(z, what, e);
	if (path == NULL)
		return err_set(e, ERR_DATA,
		    "unsupported: name of an entry in '%s'", s->name);
	(void)snprintf(what, NPZ_WHAT, "'%s', entry '%.300s'", s->name, path);
	n = strlen(path);
	if (archive_entry_filetype(ae) != AE_IFREG || n <= 4 ||
	    strcmp(path + n - 4, ".npy") != 0)
		return err_set(e, ERR_DATA, "unsupported: %s is no npy array",
		    what);
	if (archive_entry_is_encrypted(ae))
		return err_set(e, ERR_DATA, "unsupported: %s is encrypted",
		    what);
	if (n - 4 >= cap)
		return err_set(e, ERR_DATA, "limit: the name of %s is longer "
		    "than %zu bytes", what, cap - 1);
	memcpy(name, path, n - 4);
	name[n - 4] = '\0';
	return 0;
}

struct npz_from {
	struct npz *z;
	const char *what;
};

static int
npz_get(void *arg, void *p, size_t n, size_t *got, struct err *e)
{
	const struct npz_from *f = arg;
	la_ssize_t k = archive_read_data(f->z->a, p, n);

	if (k < 0)
		return npz_fail(f->z, f->what, e);
	*got = (size_t)k;
	return 0;
}

static int
npz_head(struct format_source *s, const char *what, struct npy_head *h,
    struct err *e)
{
	struct npz_from f = { s->own, what };

	return npy_read(h, npz_get, &f, what, e);
}

static int
npz_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	char name[SCHEMA_MAX_NAME + 1], what[NPZ_WHAT];
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
		z->size = size;
		r = npz_start(s, e);
	}
	while (r == 0 && (r = npz_entry(s, name, sizeof(name), what, e)) == 0 &&
	    name[0] != '\0') {
		if ((r = npz_head(s, what, &h, e)) < 0)
			break;
		memset(&t, 0, sizeof(t));
		t.dtype = (uint8_t)h.dtype;
		t.ndim = (uint8_t)h.ndim;
		memcpy(t.dim, h.dim, sizeof(t.dim));
		if ((r = backend_add(s, &t, name, e)) == 0 &&
		    (r = alloc_grow(&s->lay, &cap, s->schema.n, 1, e)) == 0)
			s->lay[s->schema.n - 1] = (unsigned char)h.lay;
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
	char name[SCHEMA_MAX_NAME + 1], what[NPZ_WHAT];
	struct npy_head h;
	int r;

	if ((r = npz_entry(s, name, sizeof(name), what, e)) < 0)
		return r;
	if (strcmp(name, t->name) == 0) {
		if ((r = npz_head(s, what, &h, e)) < 0)
			return r;
		if (h.dtype == t->dtype && h.ndim == t->ndim &&
		    h.lay == s->lay[s->cur] &&
		    memcmp(h.dim, t->dim, h.ndim * sizeof(h.dim[0])) == 0)
			return 0;
	}
	return err_set(e, ERR_DATA, "mismatch: '%s' changed while it was read",
	    s->name);
}

static void
npz_what(const struct format_source *s, char what[NPZ_WHAT])
{
	(void)snprintf(what, NPZ_WHAT, "'%s', entry '%.255s.npy'", s->name,
	    s->schema.t[s->cur].name);
}

static int
npz_bytes(struct format_source *s, void *p, size_t n, struct err *e)
{
	char what[NPZ_WHAT];
	struct npz_from f = { s->own, what };
	size_t got = 0;
	int r;

	npz_what(s, what);
	if ((r = npz_get(&f, p, n, &got, e)) < 0 || got == n)
		return r;
	return err_set(e, ERR_DATA, "truncated: %s has fewer values than its "
	    "shape", what);
}

/* Reading to the end of the entry is what makes libarchive check the CRC. */
static int
npz_end(struct format_source *s, struct err *e)
{
	char what[NPZ_WHAT];
	struct npz_from f = { s->own, what };
	unsigned char c;
	size_t got = 0;
	int r;

	npz_what(s, what);
	if ((r = npz_get(&f, &c, 1, &got, e)) < 0 || got == 0)
		return r;
	return err_set(e, ERR_DATA, "corrupt: %s has more values than its "
	    "shape", what);
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

static la_ssize_t
npz_write(struct archive *a, void *arg, const void *p, size_t n)
{
	struct npz *z = arg;

	if (!z->drop && io_write(z->sink->io, p, n, z->e) < 0) {
		archive_set_error(a, EIO, "write failed");
		return -1;
	}
	return (la_ssize_t)n;
}

/* A failed write has left its own message in e already. */
static int
npz_check(const struct npz *z, int got, struct err *e)
{
	if (got == ARCHIVE_OK)
		return 0;
	return err_set(e, ERR_SYS, "zip: %s",
	    archive_error_string(z->a) != NULL ?
	    archive_error_string(z->a) : "failed");
}

static int
npz_create(struct format_sink *s, struct err *e)
{
	const char *how = s->opts->deflate ? "deflate" : "store";
	struct npz *z = NULL;
	size_t i;
	int r = npz_new(&z, e);

	s->own = z;
	if (r < 0)
		return r;
	z->sink = s;
	z->e = e;
	for (i = 0; i < s->schema->n; i++)
		if (!npy_has(s->dtype[i]))
			s->dtype[i] = SCHEMA_F32;
	if ((z->a = archive_write_new()) == NULL)
		return err_set(e, ERR_SYS, "out of memory");
	if ((r = npz_check(z, archive_write_set_format_zip(z->a), e)) < 0 ||
	    (r = npz_check(z, archive_write_set_format_option(z->a, "zip",
	    "compression", how), e)) < 0 ||
	    (r = npz_check(z, archive_write_set_bytes_per_block(z->a, 0),
	    e)) < 0)
		return r;
	return npz_check(z, archive_write_open2(z->a, z, NULL, npz_write, NULL,
	    NULL), e);
}

/* Time, owner and mode are constants, so that the same values give the same
 * file. */
static int
npz_put_entry(struct npz *z, const char *path, uint64_t size, struct err *e)
{
	struct archive_entry *ae = archive_entry_new2(z->a);
	locale_t was;
	int got;

	if (ae == NULL)
		return err_set(e, ERR_SYS, "out of memory");
	was = npz_enter(z);
	archive_entry_set_pathname(ae, path);
	archive_entry_set_filetype(ae, AE_IFREG);
	archive_entry_set_perm(ae, 0644);
	archive_entry_set_size(ae, (la_int64_t)size);
	got = archive_write_header(z->a, ae);
	npz_leave(z, was);
	archive_entry_free(ae);
	return npz_check(z, got, e);
}

static int
npz_put_bytes(struct format_sink *s, const void *p, size_t n, struct err *e)
{
	struct npz *z = s->own;
	la_ssize_t k;

	z->e = e;
	k = archive_write_data(z->a, p, n);
	return npz_check(z, k == (la_ssize_t)n ? ARCHIVE_OK : ARCHIVE_FATAL, e);
}

/* Whether unpacking this name would write outside the folder that the archive
 * is unpacked in.  Some programs take \ for /. */
static int
npz_leaves(const char *name)
{
	size_t n;

	if (*name == '/' || *name == '\\')
		return 1;
	for (; *name != '\0'; name += n + (name[n] != '\0')) {
		n = strcspn(name, "/\\");
		if (n == 2 && name[0] == '.' && name[1] == '.')
			return 1;
	}
	return 0;
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

	z->e = e;
	if (npz_leaves(t->name))
		return err_set(e, ERR_REFUSED, "tensor '%.200s' has a name that "
		    "leaves the folder of whoever unpacks an npz", t->name);
	(void)snprintf(path, sizeof(path), "%s.npy", t->name);
	if ((r = npy_make(&b, t, dtype, e)) == 0 &&
	    (r = npz_put_entry(z, path, b.n + t->numel * dtype_size(dtype),
	    e)) == 0)
		r = npz_put_bytes(s, b.p, b.n, e);
	buf_release(&b);
	return r;
}

static int
npz_put_end(struct format_sink *s, struct err *e)
{
	struct npz *z = s->own;

	z->e = e;
	return npz_check(z, archive_write_finish_entry(z->a), e);
}

static int
npz_put_finish(struct format_sink *s, struct err *e)
{
	struct npz *z = s->own;

	z->e = e;
	return npz_check(z, archive_write_close(z->a), e);
}

/* After a failure archive_free still writes the directory.  That output is
 * dropped, because a truncated file would look complete with it.
 * (archive_write_fail would leak memory.) */
static void
npz_put_close(struct format_sink *s)
{
	struct npz *z = s->own;

	if (z != NULL)
		z->drop = 1;
	npz_free(z);
}

const struct backend_out npz_out = {
	npz_create, npz_put_begin, npz_put_bytes, npz_put_end, npz_put_finish,
	npz_put_close
};
