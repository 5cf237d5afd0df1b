/*
 * npz: a zip of .npy entries.  The CRC of every entry that is read to its end is
 * checked.  The heads of all entries are needed before the first value, so the
 * file is read twice; a pipe is copied to a temporary file first.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/magic.h"
#include "files/format_impl.h"
#include "files/dtype.h"
#include "files/npy.h"

struct npz {
	struct arc *a;
	struct arc_entry entry;
	size_t passed;			/* number of entries that npz_wants excluded */
};

/*
 * ---- the end of the file ----
 *
 * The end is checked before libarchive reads it, because libarchive does not notice that
 * an archive was cut inside its directory, and keeps the directory in memory, however
 * large it is. PKWARE, APPNOTE.TXT 6.3.10: 4.3.14 to 4.3.16.
 */
enum {
	NPZ_MAX_DIRECTORY = 16 << 20,	/* bytes, enough for some 150,000 entries */
	NPZ_END_SIZE = 22,		/* end of central directory record, no comment */
	NPZ_END_LOCATOR = 20,		/* zip64 locator, just before that record */
	NPZ_END_SIZE64 = 56		/* zip64 end record, no extensions */
};

struct npz_record {
	uint64_t at;			/* position of the first end record */
	uint64_t directory, size, entries;	/* the directory's position, bytes, entries */
};

static int
npz_end_bad(const char *name, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: the zip directory of '%s' is damaged, or "
	    "the file is not one zip file alone", name);
}

/* Read the n bytes at offset `at'. */
static int
npz_at(const struct format_source *s, uint64_t at, void *p, size_t n, struct err *e)
{
	size_t got = 0;
	int r;

	if ((r = io_seek(s->io, at, e)) < 0 || (r = io_read(s->io, p, n, &got, e)) < 0 ||
	    got == n)
		return r;
	return err_data(e, at, "truncated: '%s' became shorter while it was read: try again "
	    "when nothing writes it", s->name);
}

/* Read the zip64 record if the locator is present. */
static int
npz_end64(struct npz_record *z, const struct format_source *s, struct err *e)
{
	unsigned char b[NPZ_END_SIZE64];
	uint64_t at = z->at;
	int r;

	if (at < NPZ_END_LOCATOR + NPZ_END_SIZE64)
		return 0;
	if ((r = npz_at(s, at - NPZ_END_LOCATOR, b, NPZ_END_LOCATOR, e)) < 0)
		return r;
	if (memcmp(b, "PK\6\7", 4) != 0)
		return 0;
	z->at = bytes_le64(b + 8);
	if (z->at > at - NPZ_END_LOCATOR - NPZ_END_SIZE64)
		return npz_end_bad(s->name, e);
	if ((r = npz_at(s, z->at, b, NPZ_END_SIZE64, e)) < 0)
		return r;
	if (memcmp(b, "PK\6\6", 4) != 0 ||
	    bytes_le64(b + 4) != at - NPZ_END_LOCATOR - z->at - 12)
		return npz_end_bad(s->name, e);
	z->entries = bytes_le64(b + 32);
	z->size = bytes_le64(b + 40);
	z->directory = bytes_le64(b + 48);
	return 0;
}

/* Check that the file of `size' bytes ends with the end record of a zip without a comment,
 * directly after the directory.  Set *n to the number of entries that the record states. */
static int
npz_ends(const struct format_source *s, uint64_t size, uint64_t *n, struct err *e)
{
	struct npz_record z = { 0, 0, 0, 0 };
	const char *name = s->name;
	unsigned char b[MAGIC_SIZE];
	const size_t most = size < sizeof(b) ? (size_t)size : sizeof(b);
	int r;

	if ((r = npz_at(s, 0, b, most, e)) < 0)
		return r;
	if (size >= 4 && format_seen(b, most) != FORMAT_NPZ)
		return format_strange(s, "an npz file", b, most, e);
	if (size < NPZ_END_SIZE)
		return err_set(e, ERR_DATA, "truncated: '%s' has %llu B, expected a zip file "
		    "of %d B or more", name, (unsigned long long)size, NPZ_END_SIZE);
	z.at = size - NPZ_END_SIZE;
	if ((r = npz_at(s, z.at, b, NPZ_END_SIZE, e)) < 0)
		return r;
	if (memcmp(b, "PK\5\6", 4) != 0 || bytes_le16(b + 20) != 0)
		return err_set(e, ERR_DATA, "truncated: '%s' does not end with the end "
		    "record of a zip file, or has a zip comment", name);
	z.entries = bytes_le16(b + 10);
	z.size = bytes_le32(b + 12);
	z.directory = bytes_le32(b + 16);
	if ((r = npz_end64(&z, s, e)) < 0)
		return r;
	if (z.size > z.at || z.directory != z.at - z.size ||
	    (z.size == 0) != (z.entries == 0))
		return npz_end_bad(name, e);
	if (z.size > NPZ_MAX_DIRECTORY)
		return err_set(e, ERR_DATA, "limit: the zip directory of '%s' has "
		    "%llu bytes, expected at most %d", name, (unsigned long long)z.size,
		    NPZ_MAX_DIRECTORY);
	*n = z.entries;
	return 0;
}

static int
npz_start(struct format_source *s, struct err *e)
{
	struct npz *z = s->own;
	int r;

	arc_free(z->a);
	z->a = NULL;
	z->passed = 0;
	/* seek past the end to drop what is buffered, which may have changed in the file */
	if ((r = io_seek(s->io, io_size(s->io) + 1, e)) < 0 ||
	    (r = io_seek(s->io, 0, e)) < 0)
		return r;
	return arc_open(&z->a, s->io, ARC_ZIP, e);
}

/* Return 0 if the user has excluded the entry, or if macOS added it (._NAME); else 1. */
static int
npz_wants(const struct format_source *s, const char *entry, size_t n)
{
	const char *base = strrchr(entry, '/');
	char name[ARC_NAME];

	base = base != NULL ? base + 1 : entry;
	(void)snprintf(name, sizeof(name), "%.*s", n > 4 ? (int)n - 4 : 0, entry);
	return strncmp(base, "._", 2) != 0 && format_wants(s, name);
}

/* Set name[cap] to the next wanted entry's name without ".npy"; "" at the end. */
static int
npz_entry(struct format_source *s, char *name, size_t cap, struct err *e)
{
	struct npz *z = s->own;
	struct arc_entry *en = &z->entry;
	size_t n;
	int k;

	name[0] = '\0';
	for (;; z->passed++) {
		if ((k = arc_next(z->a, en, e)) <= 0)
			return k;
		n = strlen(en->name);
		if (npz_wants(s, en->name, n))
			break;
	}
	if (!en->file || n <= 4 || strcmp(en->name + n - 4, ".npy") != 0)
		return err_set(e, ERR_DATA, "unsupported: %s is not a file "
		    "named NAME.npy: make the npz file with numpy.savez", en->what);
	if (en->locked)
		return err_set(e, ERR_DATA, "unsupported: %s is encrypted: decrypt it first",
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
	struct npy_head h;
	uint64_t size, entries = 0;
	size_t cap = 0;
	struct npz *z = s->own = alloc_get(1, sizeof(*z), e);
	int r = z != NULL ? 0 : -ERR_SYS;

	if (r == 0 && (r = format_seekable(s, &size, e)) == 0 &&
	    (r = npz_ends(s, size, &entries, e)) == 0) {
		if (entries == 0)	/* libarchive does not recognise an empty zip */
			return 0;
		r = npz_start(s, e);
	}
	while (r == 0 && (r = npz_entry(s, name, sizeof(name), e)) == 0 &&
	    name[0] != '\0') {
		if ((r = npz_head(s, &h, e)) < 0)
			break;
		if ((r = format_add(s, &h.t, name, e)) == 0 &&
		    (r = alloc_grow(&s->swap, &cap, s->schema.n, 1, e)) == 0)
			s->swap[s->schema.n - 1] = h.swap;
	}
	/* if two entries of the directory have the same position, libarchive reads only one */
	if (r == 0 && s->schema.n + z->passed != entries)
		r = err_set(e, ERR_DATA, "corrupt: '%s' lists %llu entries, but "
		    "%zu can be read", s->name, (unsigned long long)entries,
		    s->schema.n + z->passed);
	return r == 0 ? npz_start(s, e) : r;
}

/* Begin the next entry.  It must be the same as in the first reading; otherwise the file
 * was changed in between. */
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
		if (h.t.dtype == t->dtype && h.t.ndim == t->ndim &&
		    h.swap == s->swap[s->cur] &&
		    memcmp(h.t.dim, t->dim, t->ndim * sizeof(t->dim[0])) == 0)
			return 0;
	}
	return err_set(e, ERR_DATA, "mismatch: '%s' changed while it was read: try "
	    "again when nothing writes it", s->name);
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

/* Read the entry to its end, which checks the CRC. */
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
	struct npz *z = s->own;

	if (z != NULL)
		arc_free(z->a);
	alloc_free(z);
}

const struct backend_in npz_in = {
	npz_open, npz_begin, npz_bytes, npz_end, NULL, npz_close
};

/* ---- writing ---- */

static int
npz_create(struct format_sink *s, struct err *e)
{
	const struct arc_opts o = { "zip", NULL, "zip:compression=store" };
	struct arc *a;
	size_t i;
	int r;

	for (i = 0; i < s->schema->n; i++)
		if (!npy_has(s->dtype[i]))
			s->dtype[i] = SCHEMA_F32;
	r = arc_create(&a, s->io, &o, e);
	s->own = a;
	return r;
}

static int
npz_put_bytes(struct format_sink *s, const void *p, size_t n, struct err *e)
{
	return arc_write(s->own, p, n, e);
}

static int
npz_put_begin(struct format_sink *s, struct err *e)
{
	const struct schema_tensor *t = &s->schema->t[s->cur];
	const char *base = strrchr(t->name, '/');
	unsigned dtype = s->dtype[s->cur];
	char path[SCHEMA_MAX_NAME + sizeof(".npy")];
	struct buf b = BUF_INIT;
	int r;

	if (arc_leaves(t->name) || strncmp(base != NULL ? base + 1 : t->name, "._", 2) == 0)
		return err_set(e, ERR_DATA, "unsupported: the name of tensor '%.200s' "
		    "begins with a slash, has '..' (\\ counts as /), or its last part "
		    "begins with ._: use -f safetensors", t->name);
	(void)snprintf(path, sizeof(path), "%s.npy", t->name);
	if ((r = npy_make(&b, t, dtype, e)) == 0 &&
	    (r = arc_put(s->own, path, b.n + t->numel * dtype_size(dtype),
	    e)) == 0)
		r = arc_write(s->own, b.p, b.n, e);
	buf_release(&b);
	return r;
}

static int
npz_put_end(struct format_sink *s, struct err *e)
{
	return arc_put_end(s->own, e);
}

static int
npz_put_finish(struct format_sink *s, struct err *e)
{
	return arc_finish(s->own, e);
}

static void
npz_put_close(struct format_sink *s)
{
	arc_free(s->own);
}

const struct backend_out npz_out = {
	npz_create, npz_put_begin, npz_put_bytes, npz_put_end, npz_put_finish,
	npz_put_close
};
