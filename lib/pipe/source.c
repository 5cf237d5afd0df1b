#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "base/magic.h"
#include "base/scan.h"
#include "base/temp.h"
#include "format/frame.h"
#include "pipe/source.h"

enum { SOURCE_DEPTH = 8 };	/* limit on folders in folders */

struct source {
	const char *path;	/* the operand; NULL: standard input */
	char *name;		/* name of the file returned last */
	struct io *io;		/* an input that is not a folder, not yet returned */
	struct arc *arc;	/* an archive, read from io */
	struct arc_entry entry;
	unsigned char head[4];	/* first bytes of the entry, already read */
	size_t nhead, at;	/* head[at .. nhead) is still to be returned */
	int folder;
	const char *packed;	/* name of the packed format, or NULL */
	char **file;		/* files of a folder, sorted; `now' is next */
	size_t n, cap, now;
	size_t given;		/* number of files or entries returned or refused */
};

/* ---- folders ---- */

/* Compare names, with shorter numbers before longer ones: 9 before 10. */
static int
source_order(const void *pa, const void *pb)
{
	const unsigned char *a = *(unsigned char *const *)pa;
	const unsigned char *b = *(unsigned char *const *)pb;
	size_t n, m;
	int d;

	while (*a != '\0' && *b != '\0') {
		n = strspn((const char *)a, "0123456789");
		m = strspn((const char *)b, "0123456789");
		if (n == 0 || m == 0) {
			if (*a != *b)
				break;
			a++;
			b++;
			continue;
		}
		if (n != m)
			return n < m ? -1 : 1;
		if ((d = memcmp(a, b, n)) != 0)
			return d;
		a += n;
		b += m;
	}
	/* '/' sorts first: "a/x" before "a-b/x" */
	return (*a == '/' ? 1 : *a) - (*b == '/' ? 1 : *b);
}

/* Return 1 if path is the run's model, which a spool keeps as a shard of step 0 that
 * nobody sent. */
static int
source_is_schema(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash != NULL ? slash + 1 : path, "schema.aceg") == 0;
}

struct source_walk {
	struct source *s;
	int depth;
};

static int source_folder(struct source *s, const char *dir, int depth, struct err *e);

/* Return 1 if path is longer than `end' and ends with it. So a stream with damaged first bytes,
 * also the residual of a state, is recognised by its name. */
static int
source_named(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

/* Return 1 if the file begins as a stream or, possibly packed, has the name of a stream. */
static int
source_is_stream(const char *path, struct err *e)
{
	static const char *const ends[] = { ".aceg", ".aceg.gz", ".aceg.xz",
	    ".aceg.zst", ".aceg.bz2", ".aceg.lz4", "/residual", NULL };
	unsigned char p[4];
	size_t got;
	struct io *io;
	int i, k;

	for (i = 0; ends[i] != NULL; i++)
		if (source_named(path, ends[i]))
			return 1;
	if ((k = io_open_kept(&io, path, e)) <= 0)
		return k;
	if ((k = io_read(io, p, sizeof(p), &got, e)) == 0)
		k = got == sizeof(p) && bytes_le32(p) == FRAME_SYNC;
	io_free(io);
	return k;
}

static int
source_each(void *arg, const char *path, const char *name, struct err *e)
{
	const struct source_walk *w = arg;
	struct source *s = w->s;
	struct stat st;
	int k = 0;

	/* files being written have a temporary name */
	if (source_is_schema(name) || temp_named(name))
		return 0;
	if (lstat(path, &st) < 0)
		/* removed meanwhile: the spool is in use */
		k = errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	else if (S_ISDIR(st.st_mode))
		k = source_folder(s, path, w->depth + 1, e);
	else if (S_ISREG(st.st_mode) && (k = source_is_stream(path, e)) > 0 &&
	    (k = alloc_grow(&s->file, &s->cap, s->n + 1, sizeof(*s->file), e)) == 0) {
		if ((s->file[s->n] = alloc_dup(path, e)) == NULL)
			return -ERR_SYS;
		s->n++;
	}
	return k < 0 ? k : 0;
}

static int
source_folder(struct source *s, const char *dir, int depth, struct err *e)
{
	struct source_walk w = { s, depth };

	if (depth > SOURCE_DEPTH)
		return err_set(e, ERR_DATA, "limit: '%s' is more than %d "
		    "folders below '%s'", dir, SOURCE_DEPTH, s->path);
	return scan(dir, 0, source_each, &w, e);
}

/* List the streams in the folder and its subfolders, sorted by source_order. */
static int
source_list(struct source *s, struct err *e)
{
	char *dir = alloc_dup(s->path, e);
	size_t n = dir != NULL ? strlen(dir) : 0;
	int k = -ERR_SYS;

	while (n > 1 && dir[n - 1] == '/')
		dir[--n] = '\0';
	if (dir != NULL)
		k = source_folder(s, dir, 0, e);
	alloc_free(dir);
	if (k == 0 && s->n > 0)
		qsort(s->file, s->n, sizeof(*s->file), source_order);
	return k;
}

static int
source_next_file(struct source *s, struct io **io, struct err *e)
{
	struct err own = ERR_INIT;
	int k;

	while (s->now < s->n) {
		alloc_free(s->name);
		if ((s->name = alloc_dup(s->file[s->now++], e)) == NULL)
			return -ERR_SYS;
		own = (struct err)ERR_INIT;
		k = source_io(io, s->name, &own);
		if (k < 0 && errno == ENOENT && own.code == ERR_SYS)
			continue;	/* removed meanwhile: the spool is in use */
		s->given++;
		return k < 0 ? err_move(e, &own) : 1;
	}
	if (s->given == 0)
		return err_set(e, ERR_DATA, "mismatch: folder '%s' has no stream: "
		    "expected a spool or a state that has a shard, or files of shards",
		    s->path);
	return 0;
}

int
source_left(const struct source *s)
{
	return s->folder && s->now < s->n;
}

/* ---- archives ---- */

static int
source_get(void *arg, void *p, size_t n, size_t *got, struct err *e)
{
	struct source *s = arg;
	size_t left = s->nhead - s->at;

	if (left == 0)
		return arc_read(s->arc, p, n, got, e);
	*got = left < n ? left : n;
	memcpy(p, s->head + s->at, *got);
	s->at += *got;
	return 0;
}

static void
source_got(void *arg)
{
	(void)arg;	/* the archive still owns the entry */
}

static int
source_entry(struct source *s, struct io **io, struct err *e)
{
	const struct io_from from = { source_get, source_got, s };
	const char *at = s->path != NULL ? s->path : "<stdin>";
	size_t n = strlen(at) + ARC_NAME + 2;

	alloc_free(s->name);
	if ((s->name = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(s->name, n, "%s%s%s", at,
	    s->entry.name[0] != '\0' ? ":" : "", s->entry.name);
	s->given++;
	return io_open_from(io, &from, s->name, e) < 0 ? -ERR_SYS : 1;
}

/* Return 1 if a name is hidden, such as ._NAME that macOS adds to each NAME; folders
 * omit these too. */
static int
source_hidden(const char *name)
{
	size_t n;

	for (; name != NULL; name = strchr(name, '/')) {
		name += *name == '/';
		n = strcspn(name, "/");
		if (name[0] == '.' && n > 1 && (n > 2 || name[1] != '.'))
			return 1;
	}
	return 0;
}

static int
source_next_entry(struct source *s, struct io **io, struct err *e)
{
	int k;

	while ((k = arc_next(s->arc, &s->entry, e)) > 0) {
		if ((k = arc_safe(s->arc, &s->entry, e)) < 0)
			return k;
		if (!s->entry.file || source_is_schema(s->entry.name) ||
		    source_hidden(s->entry.name))
			continue;
		s->at = 0;
		if ((k = arc_read(s->arc, s->head, sizeof(s->head), &s->nhead,
		    e)) < 0)
			return k;
		/* return a single packed file in any case: the reader tells if it is no stream */
		if (s->entry.name[0] == '\0' ||
		    source_named(s->entry.name, ".aceg") ||
		    (s->nhead == 4 && bytes_le32(s->head) == FRAME_SYNC))
			return source_entry(s, io, e);
		/* this entry is skipped, but its damage is an error */
		if ((k = arc_verify(s->arc, e)) < 0)
			return k;
	}
	if (k == 0 && s->given == 0)
		return err_file(e, err_set(e, ERR_DATA, "corrupt: no entry of the archive is "
		    "a gradient-shard stream (ace-import reads .npz)"), s->path);
	return k;
}

static int
source_packed(struct io *io, const char **packed, struct err *e)
{
	unsigned char p[MAGIC_SIZE];
	size_t got;
	int r = io_peek(io, p, 4, &got, e);

	*packed = NULL;
	if (r < 0 || (got == 4 && bytes_le32(p) == FRAME_SYNC))
		return r;
	if ((r = io_peek(io, p, sizeof(p), &got, e)) == 0 && magic_packed(p, got))
		*packed = magic_name(p, got);
	return r;
}

int
source_open(struct source **out, const char *path, struct err *e)
{
	struct source *s = alloc_get(1, sizeof(*s), e);
	struct stat st;
	int r = -ERR_SYS;

	*out = NULL;
	if (s == NULL)
		return r;
	s->path = path != NULL && strcmp(path, "-") != 0 ? path : NULL;
	s->folder = s->path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (s->folder)
		r = 0;
	else if ((r = io_open(&s->io, path, e)) == 0 &&
	    (r = source_packed(s->io, &s->packed, e)) == 0 && s->packed != NULL)
		r = (s->name = alloc_dup(io_name(s->io), e)) == NULL ? -ERR_SYS :
		    arc_open(&s->arc, s->io, ARC_ANY, e);
	if (r < 0)
		source_free(s);
	else
		*out = s;
	return r;
}

int
source_next(struct source *s, struct io **io, struct err *e)
{
	int r;

	*io = NULL;
	if (s->folder) {
		if (s->file == NULL && s->now == 0 && (r = source_list(s, e)) < 0) {
			s->now = s->n;	/* a part of the files, not sorted */
			return r;
		}
		return source_next_file(s, io, e);
	}
	if (s->packed != NULL)		/* s->name is still that of the entry before */
		return (r = source_next_entry(s, io, e)) < 0 ?
		    err_file(e, r, io_name(s->io)) : r;
	if (s->io == NULL)
		return 0;
	alloc_free(s->name);
	if ((s->name = alloc_dup(io_name(s->io), e)) == NULL)
		return -ERR_SYS;
	*io = s->io;
	s->io = NULL;
	return 1;
}

const char *
source_name(const struct source *s)
{
	return s->name;
}

int
source_many(const struct source *s)
{
	return s->folder || s->packed != NULL;
}

void
source_free(struct source *s)
{
	size_t i;

	if (s == NULL)
		return;
	arc_free(s->arc);
	io_free(s->io);
	for (i = 0; i < s->n; i++)
		alloc_free(s->file[i]);
	alloc_free(s->file);
	alloc_free(s->name);
	alloc_free(s);
}

/* ---- all files of one operand as one ---- */

struct source_join {
	struct source *s;
	struct io *io;		/* the file being read */
};

static int
source_join_read(void *arg, void *p, size_t n, size_t *got, struct err *e)
{
	struct source_join *j = arg;
	int k;

	for (;;) {
		*got = 0;
		if (j->io == NULL && (k = source_next(j->s, &j->io, e)) <= 0)
			return k;
		if ((k = io_take(j->io, p, n, -1, got, e)) < 0 || k == IO_GOT)
			return k < 0 ? k : 0;
		io_free(j->io);
		j->io = NULL;
	}
}

static void
source_join_free(void *arg)
{
	struct source_join *j = arg;

	if (j == NULL)
		return;
	io_free(j->io);
	source_free(j->s);
	alloc_free(j);
}

/* If the input is packed, let io return the streams in it. Call it before the first byte is
 * read. */
static int
source_before(struct io *io, struct err *e)
{
	struct source_join *j;
	struct io_from from = { source_join_read, source_join_free, NULL };
	const char *packed;
	int r = source_packed(io, &packed, e);

	if (r < 0 || packed == NULL)
		return r;
	from.arg = j = alloc_get(1, sizeof(*j), e);
	if (j == NULL || (j->s = alloc_get(1, sizeof(*j->s), e)) == NULL ||
	    (r = io_below(io, &j->s->io, &from, e)) < 0) {
		source_join_free(j);
		return -ERR_SYS;
	}
	/* from here on io frees j */
	j->s->packed = packed;
	j->s->path = io_name(io);
	return arc_open(&j->s->arc, j->s->io, ARC_ANY, e);
}

static int
source_join(struct io **out, const char *path, struct err *e)
{
	struct source_join *j = alloc_get(1, sizeof(*j), e);
	const struct io_from from = { source_join_read, source_join_free, j };
	int r;

	*out = NULL;
	if (j == NULL)
		return -ERR_SYS;
	if ((r = source_open(&j->s, path, e)) < 0) {
		source_join_free(j);
		return r;
	}
	return io_open_from(out, &from, path, e);
}

int
source_io(struct io **out, const char *path, struct err *e)
{
	struct stat st;
	int r;

	if (path != NULL && strcmp(path, "-") != 0 && stat(path, &st) == 0 &&
	    S_ISDIR(st.st_mode))
		return source_join(out, path, e);
	if ((r = io_open(out, path, e)) < 0)
		return r;
	if (!io_can_seek(*out)) {
		io_before(*out, source_before);	/* do not wait for input here */
		return 0;
	}
	if ((r = source_before(*out, e)) < 0) {
		io_free(*out);
		*out = NULL;
	}
	return r;
}
