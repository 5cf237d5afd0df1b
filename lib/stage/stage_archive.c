#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/bar.h"
#include "base/err.h"
#include "base/pack.h"
#include "base/temp.h"
#include "pipe/source.h"
#include "spool/inbox.h"
#include "spool/ledger.h"
#include "stage/stage_archive.h"

enum { STAGE_ARCHIVE_BLOCK = 1 << 16 };

/* ---- names ---- */

/* The place of a shard in an archive or a folder.  `from' is the file that it
 * came from: a spool's aggregate keeps its name. */
static void
stage_archive_name(const struct shard *sh, const char *from, char out[ARC_NAME])
{
	const char *slash = strrchr(from, '/');
	char run[INBOX_NAME], file[INBOX_FILE];

	if (strcmp(slash != NULL ? slash + 1 : from, "aggregate.aceg") == 0)
		(void)snprintf(file, sizeof(file), "aggregate.aceg");
	else
		inbox_file(sh, "aceg", file);
	inbox_name(inbox_run_of(sh), run);
	(void)snprintf(out, ARC_NAME, "%s/%llu/%s", run,
	    (unsigned long long)sh->step, file);
}

/* ---- which format ---- */

struct stage_archive_kind {
	const char *name, *lib;	/* ours, and libarchive's */
};
static const struct stage_archive_kind stage_archive_formats[] = {
	{ "tar", "paxr" }, { "zip", "zip" }, { "7z", "7zip" },
	{ "cpio", "newc" }, { NULL, NULL }
};
static const struct stage_archive_kind stage_archive_filters[] = {
	{ "gz", "gzip" }, { "bz2", "bzip2" }, { "xz", "xz" },
	{ "zst", "zstd" }, { "lz4", "lz4" },
	{ "Z", "compress" }, { NULL, NULL }
};

/* Does name[0 .. *n) end with ".word"?  Then *n is what is before it. */
static int
stage_archive_ends(const char *name, size_t *n, const char *word)
{
	const size_t k = strlen(word);

	if (*n < k + 2 || name[*n - k - 1] != '.' ||
	    strncmp(name + *n - k, word, k) != 0)
		return 0;
	*n -= k + 1;
	return 1;
}

/* What a name says: "run.tar.zst" is a tar, packed with zstd. Returns how long
 * the name is without that. */
static size_t
stage_archive_by_name(const char *name, const char **format,
    const char **filter)
{
	const struct stage_archive_kind *k;
	size_t n = strlen(name);

	*format = *filter = NULL;
	if (stage_archive_ends(name, &n, "tgz")) {
		*format = "tar";
		*filter = "gzip";
		return n;
	}
	for (k = stage_archive_filters; k->name != NULL; k++)
		if (stage_archive_ends(name, &n, k->name)) {
			*filter = k->lib;
			break;
		}
	for (k = stage_archive_formats; k->name != NULL; k++)
		if (stage_archive_ends(name, &n, k->name)) {
			*format = k->name;
			break;
		}
	return n;
}

static const char *
stage_archive_lib(const char *format)
{
	const struct stage_archive_kind *k = stage_archive_formats;

	while (k->name != NULL && strcmp(k->name, format) != 0)
		k++;
	return k->lib;
}

static int
stage_archive_how(const struct stage_archive_opts *o, struct arc_opts *how,
    struct err *e)
{
	const char *format = NULL, *filter = NULL;
	char name[32];

	if (o->format != NULL) {
		(void)snprintf(name, sizeof(name), "a.%s", o->format);
		if (stage_archive_by_name(name, &format, &filter) != 1 ||
		    format == NULL)
			return err_set(e, ERR_USAGE, "--format '%.80s': tar or "
			    "cpio, which .gz, .bz2, .xz, .zst, .lz4 or .Z may "
			    "follow, zip or 7z", o->format);
	} else if (o->f->output != NULL) {
		(void)stage_archive_by_name(o->f->output, &format, &filter);
	}
	if (format == NULL)
		return err_set(e, ERR_USAGE, "which format? (--format, or a "
		    "name with -o such as run.tar.zst)");
	if (filter != NULL && (*format == 'z' || *format == '7'))
		return err_set(e, ERR_USAGE, "%s packs its entries itself: it "
		    "is not packed with %s", format, filter);
	memset(how, 0, sizeof(*how));
	how->format = stage_archive_lib(format);
	how->filter = filter;
	return 0;
}

/* ---- what is in the archive already ---- */

struct stage_archive_entry {
	unsigned char name[16];		/* its hash */
	unsigned char digest[16];	/* of the shard */
};

struct stage_archive {
	const struct stage_archive_opts *o;
	struct arc *out;
	int fd;				/* a temporary for one entry */
	struct stage_archive_entry *have;	/* sorted by name */
	size_t n, cap;
	uint64_t done, all;		/* bytes, for the bar */
	size_t again;
	struct bar bar;
	unsigned char block[STAGE_ARCHIVE_BLOCK];
};

enum stage_archive_known { STAGE_ARCHIVE_NEW, STAGE_ARCHIVE_SAME };

/* Is there an entry of this name?  An enum stage_archive_known; -ERR_REFUSED
 * when it has other bytes.  A new one is noted. */
static int
stage_archive_note(struct stage_archive *x, const char *name,
    const unsigned char digest[16], struct err *e)
{
	size_t lo = 0, hi = x->n, mid;
	unsigned char id[16];
	int c;

	pack_hash128(name, strlen(name), id);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if ((c = memcmp(x->have[mid].name, id, 16)) == 0)
			return memcmp(x->have[mid].digest, digest, 16) == 0 ?
			    STAGE_ARCHIVE_SAME : err_set(e, ERR_REFUSED,
			    "'%.300s' is there twice, with other bytes: two "
			    "shards of one name do not go into one archive",
			    name);
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (alloc_grow(&x->have, &x->cap, x->n + 1, sizeof(*x->have), e) < 0)
		return -ERR_SYS;
	memmove(x->have + lo + 1, x->have + lo,
	    (x->n - lo) * sizeof(*x->have));
	memcpy(x->have[lo].name, id, 16);
	memcpy(x->have[lo].digest, digest, 16);
	x->n++;
	return STAGE_ARCHIVE_NEW;
}

/* ---- writing entries ---- */

static int
stage_archive_fd(struct stage_archive *x, struct err *e)
{
	if (x->fd < 0)
		return temp_open(&x->fd, e);
	if (lseek(x->fd, 0, SEEK_SET) < 0 || ftruncate(x->fd, 0) < 0)
		return err_sys(e, "<temporary>");
	return 0;
}

static int
stage_archive_pour(struct stage_archive *x, struct err *e)
{
	ssize_t n;
	int k = 0;

	if (lseek(x->fd, 0, SEEK_SET) < 0)
		return err_sys(e, "<temporary>");
	while (k == 0 && (n = read(x->fd, x->block, sizeof(x->block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "<temporary>");
		k = arc_write(x->out, x->block, (size_t)n, e);
		x->done += (uint64_t)n;
		bar_show(&x->bar, x->done, x->all, "B");
	}
	return k;
}

/* What is in the temporary becomes an entry, unless it is there. */
static int
stage_archive_entry(struct stage_archive *x, const char *name,
    const unsigned char digest[16], struct err *e)
{
	struct stat st;
	int k = stage_archive_note(x, name, digest, e);

	if (k == STAGE_ARCHIVE_SAME)
		x->again++;
	if (k != STAGE_ARCHIVE_NEW)
		return k < 0 ? k : 0;
	if (fstat(x->fd, &st) < 0)
		return err_sys(e, "<temporary>");
	if ((k = arc_put(x->out, name, (uint64_t)st.st_size, e)) == 0 &&
	    (k = stage_archive_pour(x, e)) == 0)
		k = arc_put_end(x->out, e);
	return k;
}

/* The shard that r stands at, as a stream of its own. */
static int
stage_archive_shard(struct stage_archive *x, struct reader *r,
    const char *from, struct err *e)
{
	struct writer_opts wo = { x->o->f->tool, NULL, 0 };
	struct writer *w = NULL;
	unsigned char digest[16];
	char name[ARC_NAME];
	struct io *io;
	int k;

	stage_archive_name(reader_shard(r), from, name);
	if ((k = stage_archive_fd(x, e)) == 0 &&
	    (k = io_create_fd(&io, x->fd, "<temporary>", e)) == 0 &&
	    (k = writer_open(&w, io, &wo, e)) == 0 &&
	    (k = writer_history(w, reader_provenance(r), e)) == 0 &&
	    (k = filter_copy(r, w, e)) == 0) {
		memcpy(digest, reader_end_of_shard(r)->digest, 16);
		k = writer_finish(w, e);
	}
	writer_free(w);
	return k < 0 ? k : stage_archive_entry(x, name, digest, e);
}

/* ---- reading operands ---- */

typedef int stage_archive_fn(void *arg, struct reader *r, const char *from,
    struct err *e);

/* Calls fn for each shard of an operand that is meant; fn reads it to its
 * end. */
static int
stage_archive_each(const struct stage_archive_opts *o, const char *path,
    stage_archive_fn *fn, void *arg, struct err *e)
{
	struct source *s;
	struct reader *r;
	struct io *io;
	int k, j;

	if ((k = source_open(&s, path, e)) < 0)
		return k;
	while ((k = source_next(s, &io, e)) > 0) {
		if ((k = reader_open(&r, io, &o->f->in, e)) < 0)
			break;
		while ((j = reader_next(r, e)) > 0) {
			if (j != READER_SHARD)
				continue;
			j = pick_wants(&o->pick, reader_shard(r)) ?
			    fn(arg, r, source_name(s), e) : pick_pass(r, e);
			if (j < 0)
				break;
		}
		k = j < 0 ? err_file(e, j, source_name(s)) : 0;
		reader_free(r);
		if (k < 0)
			break;
	}
	source_free(s);
	return k;
}

static int
stage_archive_each_new(void *arg, struct reader *r, const char *from,
    struct err *e)
{
	return stage_archive_shard(arg, r, from, e);
}

/* ---- appending ---- */

/* The bytes of an entry of the old archive into the temporary. */
static int
stage_archive_take(struct stage_archive *x, struct arc *a, struct err *e)
{
	size_t got = 1, at;
	ssize_t n;
	int k = stage_archive_fd(x, e);

	while (k == 0 && got != 0) {
		if ((k = arc_read(a, x->block, sizeof(x->block), &got, e)) < 0)
			break;
		for (at = 0; at < got; at += (size_t)n)
			if ((n = write(x->fd, x->block + at, got - at)) < 0)
				return err_sys(e, "<temporary>");
	}
	return k;
}

/* The digest of the first shard in the temporary, or, if that is no stream, of
 * its name: two such are the same then. */
static int
stage_archive_digest(struct stage_archive *x, const char *name,
    unsigned char digest[16], struct err *e)
{
	struct err none = ERR_INIT;
	struct reader *r = NULL;
	struct io *io;
	int k;

	pack_hash128(name, strlen(name), digest);
	if (lseek(x->fd, 0, SEEK_SET) < 0)
		return err_sys(e, "<temporary>");
	if ((k = io_open_fd(&io, x->fd, "<temporary>", e)) < 0)
		return k;
	if (reader_open(&r, io, &x->o->f->in, &none) == 0)
		while ((k = reader_next(r, &none)) > 0)
			if (k == READER_SEND) {
				memcpy(digest, reader_end_of_shard(r)->digest,
				    16);
				break;
			}
	reader_free(r);
	/* what the system refuses says nothing of the bytes */
	return none.code == ERR_SYS ? err_move(e, &none) : 0;
}

/* All entries of the archive that is there now, as they are. */
static int
stage_archive_old(struct stage_archive *x, struct err *e)
{
	struct arc_entry *en = alloc_get(1, sizeof(*en), e);
	unsigned char digest[16];
	struct arc *a = NULL;
	struct io *io = NULL;
	int k = en != NULL ? io_open(&io, x->o->f->output, e) : -ERR_SYS;

	if (k == 0 && (k = arc_open(&a, io, ARC_ANY, e)) == 0)
		while ((k = arc_next(a, en, e)) > 0) {
			if ((k = arc_safe(a, en, e)) < 0)
				break;
			if (!en->file)
				continue;
			if (en->name[0] == '\0') {
				k = err_set(e, ERR_DATA, "unsupported: '%s' is "
				    "a packed file and no archive",
				    x->o->f->output);
				break;
			}
			if ((k = stage_archive_take(x, a, e)) < 0 ||
			    (k = stage_archive_digest(x, en->name, digest,
			    e)) < 0 || (k = stage_archive_entry(x, en->name,
			    digest, e)) < 0)
				break;
		}
	arc_free(a);
	io_free(io);
	alloc_free(en);
	return k;
}

/* ---- the three ---- */

/* Bytes of the operands that are files, for the bar; 0 when one is not. */
static uint64_t
stage_archive_size(char **path, size_t n)
{
	uint64_t all = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < n; i++) {
		if (path[i] == NULL || stat(path[i], &st) < 0 ||
		    !S_ISREG(st.st_mode))
			return 0;
		all += (uint64_t)st.st_size;
	}
	return all;
}

int
stage_archive_create(const struct stage_archive_opts *o, char **path,
    size_t n, struct err *e)
{
	struct stage_archive *x = alloc_get(1, sizeof(*x), e);
	struct io *io = NULL;
	struct arc_opts how;
	size_t i;
	int k;

	if (x == NULL)
		return -ERR_SYS;
	x->o = o;
	x->fd = -1;
	x->all = o->append || pick_given(&o->pick) ? 0 : stage_archive_size(path, n);
	bar_begin(&x->bar, o->f->cli);
	if ((k = stage_archive_how(o, &how, e)) == 0 &&
	    (k = io_create(&io, o->f->output, o->f->force, e)) == 0 &&
	    (k = arc_create(&x->out, io, &how, e)) == 0 && o->append)
		k = stage_archive_old(x, e);
	for (i = 0; i < n && k == 0; i++)
		k = stage_archive_each(o, path[i], stage_archive_each_new, x,
		    e);
	if (k == 0 && x->n == 0)
		k = err_set(e, ERR_DATA, "mismatch: no shard to archive (--step "
		    "and --device match none)");
	if (k == 0 && (k = arc_finish(x->out, e)) == 0)
		k = io_commit(io, IO_SYNC_FULL, e);
	bar_end(&x->bar);
	if (k == 0)
		cli_say(o->f->cli, 1, "%zu shards", x->n);
	if (k == 0 && x->again != 0)
		cli_say(o->f->cli, 1, "%zu shards were there already", x->again);
	arc_free(x->out);
	io_free(io);
	if (x->fd >= 0)
		(void)close(x->fd);
	alloc_free(x->have);
	alloc_free(x);
	return k;
}

/* None that is there was meant. */
static int
stage_archive_none(struct err *e)
{
	return err_set(e, ERR_DATA, "mismatch: no such shard (--step and "
	    "--device match none of the archive's)");
}

struct stage_archive_lines {
	FILE *f;
	uint64_t n;
};

static int
stage_archive_each_line(void *arg, struct reader *r, const char *from,
    struct err *e)
{
	struct stage_archive_lines *x = arg;
	const struct shard *sh = reader_shard(r);
	const uint64_t at = reader_offset(r), step = sh->step;
	char name[ARC_NAME], kind[16], device[SHARD_NAME + 1];
	int k;

	stage_archive_name(sh, from, name);
	(void)snprintf(kind, sizeof(kind), "%s", shard_kind_name(sh->kind));
	(void)snprintf(device, sizeof(device), "%s", shard_device(sh));
	if ((k = pick_pass(r, e)) < 0)
		return k;
	x->n++;
	if (fprintf(x->f, "%llu\t%s\t%s\t%llu\t%s\n", (unsigned long long)step,
	    device, kind, (unsigned long long)(reader_offset(r) - at),
	    name) < 0)
		return err_sys(e, "'<stdout>'");
	return 0;
}

int
stage_archive_list(const struct stage_archive_opts *o, const char *path,
    FILE *f, struct err *e)
{
	struct stage_archive_lines x = { .f = f };
	int k;

	(void)fputs("step\tdevice\tkind\tbytes\tname\n", f);
	k = stage_archive_each(o, path, stage_archive_each_line, &x, e);
	return k == 0 && x.n == 0 && pick_given(&o->pick) ? stage_archive_none(e) : k;
}

/* Makes the folders of a path below `into', which is not one of them. */
static int
stage_archive_folders(char *path, size_t into, struct err *e)
{
	char *p;
	int k = 0;

	for (p = path + into + 1; k == 0 && (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			k = err_sys(e, "'%s'", path);
		*p = '/';
	}
	return k;
}

struct stage_archive_into {
	const struct stage_archive_opts *o;
	struct bar bar;
	uint64_t n;
};

/* A file that is there has to be of the same shard. */
static int
stage_archive_place(struct writer *w, const struct reader *r, const char *path,
    struct err *e)
{
	unsigned char digest[SHARD_DIGEST];
	int k = access(path, F_OK) == 0 ? ledger_digest(path, digest, e) : 0;

	if (k == 0)
		return writer_end(w, IO_SYNC_RENAME, e);
	if (k > 0 && memcmp(digest, reader_end_of_shard(r)->digest,
	    SHARD_DIGEST) == 0)
		return 0;		/* it was extracted before */
	return k < 0 ? k : err_set(e, ERR_REFUSED, "'%s' is there already, and "
	    "is another shard: extract into an empty folder", path);
}

static int
stage_archive_each_file(void *arg, struct reader *r, const char *from,
    struct err *e)
{
	struct stage_archive_into *x = arg;
	struct writer_opts wo = { x->o->f->tool, NULL, 0 };
	char name[ARC_NAME], path[PATH_MAX];
	struct writer *w = NULL;
	struct io *io;
	int k;

	stage_archive_name(reader_shard(r), from, name);
	if (snprintf(path, sizeof(path), "%s/%s", x->o->into, name) >= PATH_MAX)
		return err_set(e, ERR_SYS, "'%s' is too long a name", path);
	if ((k = stage_archive_folders(path, strlen(x->o->into), e)) == 0 &&
	    (k = io_create(&io, path, 0, e)) == 0 &&
	    (k = writer_open(&w, io, &wo, e)) == 0 &&
	    (k = writer_history(w, reader_provenance(r), e)) == 0 &&
	    (k = filter_copy(r, w, e)) == 0)
		k = stage_archive_place(w, r, path, e);
	writer_free(w);
	x->n += k == 0;
	bar_show(&x->bar, x->n, 0, "shards");
	return k;
}

int
stage_archive_extract(const struct stage_archive_opts *o, const char *path,
    struct err *e)
{
	struct stage_archive_into x = { .o = o };
	int k;

	if (mkdir(o->into, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", o->into);
	bar_begin(&x.bar, o->f->cli);
	k = stage_archive_each(o, path, stage_archive_each_file, &x, e);
	bar_end(&x.bar);
	if (k == 0 && x.n == 0)
		k = stage_archive_none(e);
	if (k == 0)
		cli_say(o->f->cli, 1, "%llu shards", (unsigned long long)x.n);
	return k;
}
