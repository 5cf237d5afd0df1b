#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/magic.h"

enum {
	ARC_BLOCK = 64 * 1024,
	ARC_TAR = 512,		/* a tar ends with at least this many zero bytes */
	ARC_FREE = 1 << 28,	/* unpacked bytes that are always allowed */
	/* limit on unpacked / packed bytes above ARC_FREE; of a file of zeros this is 1000 in
	 * gzip, 7000 in xz */
	ARC_RATIO = 4000,
	ARC_AHEAD = 1 << 24	/* limit on bytes read without output */
};

struct arc {
	struct archive *a;
	/* The current entry when reading. We allocate it, since libarchive does not check
	 * whether the allocation of its own entry failed. */
	struct archive_entry *entry;
	struct io *io;
	locale_t utf8;
	struct err *e;		/* where a failed write stores its error */
	int failed;		/* 1: arc_in_read or arc_in_seek failed with `why' */
	struct err why;
	int drop;		/* 1: write nothing more */
	int lost;		/* < 0: the error of a failed write */
	int single;		/* 1: one packed file, not an archive */
	int ended;		/* 1: the input was read to its end */
	int over;		/* 1: arc_read has reached the end of the entry */
	uint64_t took, gave;	/* took: bytes read from io; gave: bytes of entries unpacked */
	int64_t place;		/* last position in the filter's output */
	uint64_t ahead;		/* packed bytes read since that position last changed */
	/* position in the filter's output at which the entry's content ends (begins, if its size
	 * is unknown or it is sparse); 0: no entry yet */
	uint64_t past;
	uint64_t *seen;		/* [room] hash table, open addressing: hashes of files' names */
	size_t nseen, room;	/* nseen: names in it; room: 0 or a power of 2 */
	char what[ARC_WHAT];	/* for messages: the archive's name, then also the entry's */
	unsigned char block[ARC_BLOCK];
};

/* libarchive converts names to the locale's character set and back; only UTF-8 preserves
 * all names. Return a UTF-8 locale, or 0 if none is needed or installed. */
static locale_t
arc_locale(void)
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

/* Switch to a->utf8, and return the locale for arc_leave. Clear errno: if it still is ENOMEM
 * when a name cannot be converted, libarchive ends the process, as if memory ran out. */
static locale_t
arc_enter(const struct arc *a)
{
	errno = 0;
	return a->utf8 != (locale_t)0 ? uselocale(a->utf8) : (locale_t)0;
}

static void
arc_leave(const struct arc *a, locale_t was)
{
	if (a->utf8 != (locale_t)0)
		(void)uselocale(was);
}

static int
arc_new(struct arc **out, struct io *io, struct err *e)
{
	if ((*out = alloc_get(1, sizeof(**out), e)) == NULL)
		return -ERR_SYS;
	(*out)->utf8 = arc_locale();
	(*out)->io = io;
	(*out)->e = e;
	(void)snprintf((*out)->what, ARC_WHAT, "'%s'", io_name(io));
	return 0;
}

/* After a failure archive_free still writes the directory. Drop that output: with it a
 * truncated file would look complete. (archive_write_fail would leak memory.) */
void
arc_free(struct arc *a)
{
	if (a == NULL)
		return;
	a->drop = 1;
	archive_entry_free(a->entry);
	(void)archive_free(a->a);
	if (a->utf8 != (locale_t)0)
		freelocale(a->utf8);
	alloc_free(a->seen);
	alloc_free(a);
}

/* ---- reading ---- */

/* After got more bytes of input, refuse more than ARC_AHEAD bytes without output. They are a
 * header: libarchive keeps it in memory, and the file name in a gzip header may have any
 * length. */
static int
arc_in_ahead(struct arc *a, size_t got)
{
	const int64_t place = archive_filter_bytes(a->a, 0);

	a->ahead = place == a->place ? a->ahead + got : got;
	a->place = place;
	return a->ahead <= ARC_AHEAD ? 0 : err_set(&a->why, ERR_DATA, "limit: %s has a header, "
	    "or other bytes without data, of more than %d bytes: unpack the archive first",
	    a->what, ARC_AHEAD);
}

/* Read input for libarchive, whose own reader of descriptors would report a failed read as
 * a truncated archive. */
static la_ssize_t
arc_in_read(struct archive *la, void *arg, const void **p)
{
	struct arc *a = arg;
	size_t got;

	if (io_take(a->io, a->block, ARC_BLOCK, -1, &got, &a->why) < 0 ||
	    arc_in_ahead(a, got) < 0) {
		a->failed = 1;
		archive_set_error(la, EIO, "read failed");
		return ARCHIVE_FATAL;
	}
	a->took += got;
	a->ended = got == 0;
	*p = a->block;
	return (la_ssize_t)got;
}

static la_int64_t
arc_in_seek(struct archive *la, void *arg, la_int64_t to, int whence)
{
	struct arc *a = arg;
	la_int64_t size = (la_int64_t)io_size(a->io);
	la_int64_t from = whence == SEEK_CUR ? (la_int64_t)io_bytes(a->io) :
	    whence == SEEK_END ? size : 0;

	if (to < -from || to > size - from)
		return ARCHIVE_FATAL;
	if (io_seek(a->io, (uint64_t)(from + to), &a->why) < 0) {
		a->failed = 1;
		archive_set_error(la, EIO, "seek failed");
		return ARCHIVE_FATAL;
	}
	return from + to;
}

static int
arc_fail(const struct arc *a, const char *what, struct err *e)
{
	const char *why = archive_error_string(a->a);

	if (a->failed)
		return err_move(e, &a->why);
	if (why == NULL)
		why = "unreadable";
	/* libarchive sets ENOMEM for names above a megabyte, too */
	if (archive_errno(a->a) == ENOMEM && strstr(why, "malformed") == NULL)
		return err_set(e, ERR_SYS, "%s: %s", what, why);
	/* libarchive discards the filter's message when it looks for the format */
	if (strncmp(why, "Unrecognized", 12) == 0 &&
	    archive_filter_code(a->a, 0) != ARCHIVE_FILTER_NONE)
		why = a->ended ? "the compressed data is empty, incomplete or damaged" :
		    "the compressed data is damaged";
	/* some of its messages end with a line end */
	return err_set(e, ERR_DATA, strstr(why, "runcated") != NULL ?
	    "truncated: %s: %.*s" : strstr(why, "nsupported") != NULL ?
	    "unsupported: %s: %.*s" : "corrupt: %s: %.*s", what,
	    (int)strcspn(why, "\n"), why);
}

/* Enable tar, zip and single packed files. Return 1, or 0 if libarchive fails. */
static int
arc_formats(struct archive *la)
{
	return archive_read_support_format_tar(la) == ARCHIVE_OK &&
	    archive_read_support_format_zip(la) == ARCHIVE_OK &&
	    archive_read_support_format_raw(la) == ARCHIVE_OK;
}

static int
arc_filters(struct archive *la)
{
	return archive_read_support_filter_bzip2(la) == ARCHIVE_OK &&
	    archive_read_support_filter_xz(la) == ARCHIVE_OK &&
	    archive_read_support_filter_zstd(la) == ARCHIVE_OK &&
	    archive_read_support_filter_lz4(la) == ARCHIVE_OK;
}

/* Enable formats and filters; for ARC_ZIP only zip, without filters. Allow gzip only as the
 * sole filter: libarchive also unpacks packed files inside packed files, and it reads a whole
 * gzip header into memory, which an outer filter may have compressed a thousandfold. */
static int
arc_support(struct archive *la, struct io *io, enum arc_how how, struct err *e)
{
	unsigned char p[2];
	size_t got;
	int ok, r;

	if (how == ARC_ZIP) {
		ok = archive_read_support_format_zip_seekable(la) == ARCHIVE_OK;
	} else {
		if ((r = io_peek(io, p, sizeof(p), &got, e)) < 0)
			return r;
		ok = arc_formats(la) && (got == 2 && p[0] == 0x1f &&
		    p[1] == 0x8b ? archive_read_append_filter(la,
		    ARCHIVE_FILTER_GZIP) == ARCHIVE_OK : arc_filters(la));
	}
	return ok ? 0 : err_set(e, ERR_SYS, "'%s': libarchive cannot be set up for tar, zip, gzip, "
	    "bzip2, xz, zstd and lz4: %s", io_name(io), archive_error_string(la) != NULL ?
	    archive_error_string(la) : "out of memory");
}

/* Skip skippable frames, which libarchive does not recognise at the beginning of a zstd
 * or lz4 file. Set *n to the number of skipped bytes. */
static int
arc_passed(struct io *io, uint64_t *n, struct err *e)
{
	unsigned char p[4096];
	size_t left, got, k;
	int r;

	for (*n = 0; (r = io_peek(io, p, 8, &got, e)) == 0 && got == 8 &&
	    (left = magic_passed(p)) != 0; *n += left)
		for (k = left; k != 0; k -= got) {
			r = io_read(io, p, k < sizeof(p) ? k : sizeof(p), &got, e);
			if (r < 0 || got == 0)
				return r < 0 ? r : err_data(e, io_bytes(io),
				    "truncated: '%s' ends inside a skippable frame "
				    "of zstd or lz4", io_name(io));
		}
	return r;
}

int
arc_open(struct arc **out, struct io *io, enum arc_how how, struct err *e)
{
	struct arc *a;
	uint64_t passed = 0;
	int r, ok;

	*out = NULL;
	if ((how != ARC_ZIP && (r = arc_passed(io, &passed, e)) < 0) ||
	    (r = arc_new(&a, io, e)) < 0)
		return r;
	if ((a->a = archive_read_new()) == NULL ||
	    (a->entry = archive_entry_new2(a->a)) == NULL) {
		arc_free(a);
		return err_set(e, ERR_SYS, "out of memory");
	}
	if ((r = arc_support(a->a, io, how, e)) < 0) {
		arc_free(a);
		return r;
	}
	ok = archive_read_set_read_callback(a->a, arc_in_read) == ARCHIVE_OK &&
	    (!io_can_seek(io) || passed != 0 || archive_read_set_seek_callback(a->a,
	    arc_in_seek) == ARCHIVE_OK) &&
	    archive_read_set_callback_data(a->a, a) == ARCHIVE_OK &&
	    archive_read_open1(a->a) == ARCHIVE_OK;
	if (!ok) {
		r = arc_fail(a, a->what, e);
		arc_free(a);
		return r;
	}
	*out = a;
	return 0;
}

/* Check the end of the archive. libarchive accepts a tar that was cut between two
 * entries and has no final zeros. After a gzip member it also accepts any bytes that do
 * not begin another member. */
static int
arc_whole(const struct arc *a, struct err *e)
{
	const uint64_t now = (uint64_t)archive_filter_bytes(a->a, 0);

	if (a->failed)
		return arc_fail(a, a->what, e);
	if (a->single && a->over && (uint64_t)archive_filter_bytes(a->a, -1) < a->took)
		return err_set(e, ERR_DATA, "corrupt: '%s' has bytes after the "
		    "compressed data", io_name(a->io));
	if ((archive_format(a->a) & ARCHIVE_FORMAT_BASE_MASK) !=
	    ARCHIVE_FORMAT_TAR || a->past == 0 || now >= a->past + ARC_TAR)
		return 0;
	return err_set(e, ERR_DATA, "truncated: '%s' lacks the end blocks of a tar "
	    "archive: copy or pack it again", io_name(a->io));
}

/* Check that the output, if above ARC_FREE, is at most ARC_RATIO times the input. Entries
 * that overlap in a seekable file are read again: count at most the file's size as input. */
static int
arc_bomb(const struct arc *a, struct err *e)
{
	const int64_t place = archive_filter_bytes(a->a, 0);
	const uint64_t all = place > 0 && (uint64_t)place > a->gave ?
	    (uint64_t)place : a->gave;
	uint64_t from = a->took;

	if (io_can_seek(a->io) && from > io_size(a->io))
		from = io_size(a->io);
	return all <= ARC_FREE || all / ARC_RATIO <= from ? 0 :
	    err_set(e, ERR_DATA, "limit: '%s' unpacks to more than %d times its size: "
	    "if that is intended, unpack it first", io_name(a->io), ARC_RATIO);
}

static int
arc_rest(struct arc *a, struct err *e)
{
	const void *p;
	la_int64_t at;
	size_t n;
	int r = 0, k = ARCHIVE_OK;

	while (r == 0 && (k = archive_read_data_block(a->a, &p, &n, &at)) ==
	    ARCHIVE_OK) {
		a->gave += n;
		r = arc_bomb(a, e);
	}
	return r < 0 ? r : k == ARCHIVE_EOF ? 0 : arc_fail(a, a->what, e);
}

/* Skip the rest of an entry. libarchive, which would unpack any amount in one call, may skip
 * it only if the input can seek and is not packed. */
static int
arc_pass(struct arc *a, struct err *e)
{
	const int packed = archive_filter_code(a->a, 0) != ARCHIVE_FILTER_NONE;

	return a->past == 0 || (!packed && io_can_seek(a->io)) ? 0 : arc_rest(a, e);
}

int
arc_verify(struct arc *a, struct err *e)
{
	return (archive_format(a->a) & ARCHIVE_FORMAT_BASE_MASK) ==
	    ARCHIVE_FORMAT_ZIP ? arc_rest(a, e) : 0;
}

/* Return 1 if `got', a result of libarchive, means an undamaged entry. libarchive only
 * warns about damage, such as missing bytes or contradictory heads, and goes on. A name
 * that our character set cannot show is not damage. */
static int
arc_sound(const struct arc *a, int got)
{
	const char *why = archive_error_string(a->a);

	return got == ARCHIVE_OK || (got == ARCHIVE_WARN && why != NULL &&
	    strstr(why, "be converted") != NULL);
}

/* Return the place in the table where the name's hash h (not 0) is or can be inserted. */
static uint64_t *
arc_place(const struct arc *a, uint64_t h)
{
	size_t i = (size_t)h & (a->room - 1);

	while (a->seen[i] != 0 && a->seen[i] != h)
		i = (i + 1) & (a->room - 1);
	return &a->seen[i];
}

static uint64_t
arc_name(const char *name)
{
	uint64_t h = hash_64(name, strlen(name));

	return h != 0 ? h : 1;
}

static int
arc_seen(const struct arc *a, const char *name)
{
	return a->room > 0 && *arc_place(a, arc_name(name)) != 0;
}

int
arc_next(struct arc *a, struct arc_entry *en, struct err *e)
{
	struct archive_entry *const ae = a->entry;
	const char *path;
	locale_t was;
	int got;

	if ((got = arc_pass(a, e)) < 0 || (got = arc_bomb(a, e)) < 0)
		return got;
	was = arc_enter(a);
	got = archive_read_next_header2(a->a, ae);
	errno = 0;
	path = arc_sound(a, got) ? archive_entry_pathname(ae) : NULL;
	arc_leave(a, was);
	memset(en, 0, sizeof(*en));
	(void)snprintf(en->what, ARC_WHAT, "'%s'", io_name(a->io));
	if (got == ARCHIVE_EOF)
		return arc_whole(a, e);
	if (path == NULL)
		return arc_fail(a, en->what, e);
	a->single = archive_format(a->a) == ARCHIVE_FORMAT_RAW;
	a->past = (uint64_t)archive_filter_bytes(a->a, 0) +
	    (archive_entry_size_is_set(ae) && archive_entry_sparse_count(ae) ==
	    0 ? (uint64_t)archive_entry_size(ae) : 0);
	if (!a->single)
		(void)snprintf(en->what, ARC_WHAT, "'%s', entry '%.300s'",
		    io_name(a->io), path);
	memcpy(a->what, en->what, ARC_WHAT);
	if (strlen(path) >= ARC_NAME)
		return err_set(e, ERR_DATA, "limit: %s: the name has %zu bytes, expected at most "
		    "%d: pack it under a shorter name", en->what, strlen(path), ARC_NAME - 1);
	if (!a->single)
		(void)snprintf(en->name, ARC_NAME, "%s", path);
	en->size = archive_entry_size_is_set(ae) ?
	    (uint64_t)archive_entry_size(ae) : UINT64_MAX;
	en->folder = archive_entry_filetype(ae) == AE_IFDIR;
	en->second = archive_entry_hardlink(ae) != NULL && (archive_format(a->a) &
	    ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR && en->size == 0 &&
	    arc_seen(a, archive_entry_hardlink(ae));
	en->link = (archive_entry_hardlink(ae) != NULL && !en->second) ||
	    archive_entry_symlink(ae) != NULL ||
	    archive_entry_filetype(ae) == AE_IFLNK;
	en->file = archive_entry_filetype(ae) == AE_IFREG && !en->link && !en->second;
	en->locked = archive_entry_is_encrypted(ae) > 0;
	return 1;
}

int
arc_read(struct arc *a, void *p, size_t n, size_t *got, struct err *e)
{
	la_ssize_t k = archive_read_data(a->a, p, n);

	*got = 0;
	if (k < 0 || a->failed)
		return arc_fail(a, a->what, e);
	*got = (size_t)k;
	a->over = k == 0;
	a->gave += *got;
	return arc_bomb(a, e);
}

/* '\' is treated as '/', because some programs that unpack archives do so. */
int
arc_leaves(const char *name)
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

/* Return 1 if a name with this name's hash was added before. If not, add it and return 0, or
 * -ERR_SYS if there is no memory. */
static int
arc_again(struct arc *a, const char *name, struct err *e)
{
	uint64_t h = arc_name(name), *old = a->seen, *at;
	size_t i, n = a->room;

	if (2 * (a->nseen + 1) > n) {
		a->room = n != 0 ? 2 * n : 64;
		if ((a->seen = alloc_get(a->room, sizeof(*a->seen), e)) == NULL) {
			a->seen = old;
			a->room = n;
			return -ERR_SYS;
		}
		for (i = 0; i < n; i++)
			if (old[i] != 0)
				*arc_place(a, old[i]) = old[i];
		alloc_free(old);
	}
	at = arc_place(a, h);
	if (*at == h)
		return 1;
	*at = h;
	a->nseen++;
	return 0;
}

int
arc_safe(struct arc *a, const struct arc_entry *en, struct err *e)
{
	int k;

	if (arc_leaves(en->name))
		return err_set(e, ERR_DATA, "unsupported: %s: the name begins with "
		    "a slash or has '..' (\\ counts as /): pack it under another name", en->what);
	if (en->link)
		return err_set(e, ERR_DATA, "unsupported: %s is a link: pack the file "
		    "itself", en->what);
	if (en->locked)
		return err_set(e, ERR_DATA, "unsupported: %s is encrypted: decrypt it first",
		    en->what);
	if (!en->file && !en->folder && !en->second)
		return err_set(e, ERR_DATA, "unsupported: %s is not a file or folder: "
		    "leave it out of the archive", en->what);
	if (!en->file)
		return 0;
	if ((k = arc_again(a, en->name, e)) <= 0)
		return k;
	return err_set(e, ERR_DATA, "corrupt: %s: another entry has the same name: pack "
	    "the file once", en->what);
}

/* ---- writing ---- */

/* Do not report a failed write to libarchive: it would leak memory, as with
 * archive_write_fail. arc_check reports it to the caller. */
static la_ssize_t
arc_out_write(struct archive *la, void *arg, const void *p, size_t n)
{
	struct arc *a = arg;

	if (!a->drop && (a->lost = io_write(a->io, p, n, a->e)) < 0)
		a->drop = 1;
	return (la_ssize_t)n;
}

/* Return 0, or the error of a call of libarchive whose result is got. A failed write has set
 * its message in e already. */
static int
arc_check(const struct arc *a, int got, struct err *e)
{
	const char *why = archive_error_string(a->a);

	if (a->lost < 0 || got == ARCHIVE_OK)
		return a->lost;
	why = why != NULL ? why : "failed";
	/* EILSEQ: the format cannot hold something, such as the name */
	if (archive_errno(a->a) == EILSEQ)
		return err_set(e, ERR_DATA, "unsupported: '%s': %s",
		    io_name(a->io), why);
	return err_set(e, ERR_SYS, "'%s': %s", io_name(a->io), why);
}

int
arc_create(struct arc **out, struct io *io, const struct arc_opts *o, struct err *e)
{
	struct arc *a;
	int r = arc_new(&a, io, e);

	*out = NULL;
	if (r < 0)
		return r;
	if ((a->a = archive_write_new()) == NULL)
		r = err_set(e, ERR_SYS, "out of memory");
	if (r == 0 && (r = arc_check(a, archive_write_set_format_by_name(a->a,
	    o->format), e)) == 0 && o->filter != NULL)
		r = arc_check(a, archive_write_add_filter_by_name(a->a,
		    o->filter), e);
	/* no time stamp: the same shards give the same bytes */
	if (r == 0 && o->filter != NULL && strcmp(o->filter, "gzip") == 0)
		r = arc_check(a, archive_write_set_filter_option(a->a, "gzip",
		    "timestamp", NULL), e);
	if (r == 0 && o->options != NULL)
		r = arc_check(a, archive_write_set_options(a->a, o->options),
		    e);
	if (r == 0 && (r = arc_check(a, archive_write_set_bytes_per_block(a->a,
	    0), e)) == 0)
		r = arc_check(a, archive_write_open2(a->a, a, NULL,
		    arc_out_write, NULL, NULL), e);
	if (r < 0)
		arc_free(a);
	else
		*out = a;
	return r;
}

int
arc_put(struct arc *a, const char *name, uint64_t size, struct err *e)
{
	struct archive_entry *ae = archive_entry_new2(a->a);
	locale_t was;
	int got;

	a->e = e;
	if (ae == NULL)
		return err_set(e, ERR_SYS, "out of memory");
	was = arc_enter(a);
	archive_entry_set_pathname(ae, name);
	archive_entry_set_filetype(ae, AE_IFREG);
	archive_entry_set_perm(ae, 0644);
	archive_entry_set_size(ae, (la_int64_t)size);
	got = archive_write_header(a->a, ae);
	arc_leave(a, was);
	archive_entry_free(ae);
	return arc_check(a, got, e);
}

int
arc_write(struct arc *a, const void *p, size_t n, struct err *e)
{
	la_ssize_t k;

	a->e = e;
	k = archive_write_data(a->a, p, n);
	return arc_check(a, k == (la_ssize_t)n ? ARCHIVE_OK : ARCHIVE_FATAL, e);
}

int
arc_put_end(struct arc *a, struct err *e)
{
	a->e = e;
	return arc_check(a, archive_write_finish_entry(a->a), e);
}

int
arc_finish(struct arc *a, struct err *e)
{
	a->e = e;
	return arc_check(a, archive_write_close(a->a), e);
}
