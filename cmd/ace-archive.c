/*
 * ace-archive: puts the shards of runs into an archive (tar, zip) and takes them out again.
 * Each shard is an entry RUN/STEP/DEVICE.aceg, and a stream of its own.  Names are made from
 * the shard's header (but see name_of), so no archive can choose a place to write to.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/temp.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "spool/spool.h"

struct opts {
	struct filter *f;	/* limits of inputs; output of the command create */
	struct pick pick;
	const char *into;	/* the folder to extract into */
};

enum { BLOCK = 1 << 16 };

/* ---- names ---- */

/* Write the name of a shard in an archive or a folder.  `from' is the shard's file or entry;
 * one named aggregate.aceg, as in a spool, keeps that name.  The whole model of a step, and
 * patches to that step from different bases, get different names. */
static void
name_of(const struct shard *sh, const char *from, char out[ARC_NAME])
{
	const char *slash = strrchr(from, '/');
	char run[SPOOL_NAME], file[SPOOL_FILE], end[40] = "aceg";

	if (sh->kind == SHARD_RESIDUAL)
		(void)snprintf(end, sizeof(end), "residual.aceg");
	if (shard_is_patch(sh))
		(void)snprintf(end, sizeof(end), "from-%llu.aceg",
		    (unsigned long long)sh->base_version);
	if (strcmp(slash != NULL ? slash + 1 : from, "aggregate.aceg") == 0)
		(void)snprintf(file, sizeof(file), "aggregate.aceg");
	else
		spool_file(spool_device_of(sh), end, file);
	spool_name(spool_run_of(sh), run);
	(void)snprintf(out, ARC_NAME, "%s/%llu/%s", run,
	    (unsigned long long)sh->step, file);
}

/* ---- formats ---- */

static const struct packing {
	const char *end;		/* ending of the archive's name */
	const char *format, *filter;	/* libarchive's names */
} packings[] = {
	{ ".tar", "paxr", NULL }, { ".tar.gz", "paxr", "gzip" },
	{ ".tgz", "paxr", "gzip" }, { ".tar.bz2", "paxr", "bzip2" },
	{ ".tar.xz", "paxr", "xz" }, { ".tar.zst", "paxr", "zstd" },
	{ ".tar.lz4", "paxr", "lz4" }, { ".zip", "zip", NULL }
};

/* Find format and compression by the end of the output's name. */
static int
how_to(const char *name, struct arc_opts *how, struct err *e)
{
	const size_t n = strlen(name);
	const struct packing *k;
	size_t i, end;

	for (i = 0; i < sizeof(packings) / sizeof(*packings); i++) {
		k = &packings[i];
		end = strlen(k->end);
		if (n > end && strcmp(name + n - end, k->end) == 0) {
			*how = (struct arc_opts){ k->format, k->filter, NULL };
			return 0;
		}
	}
	return err_set(e, ERR_USAGE, "-o '%s' is not the name of an archive: expected the "
	    "end .tar, .tar.gz, .tar.bz2, .tar.xz, .tar.zst, .tar.lz4 or .zip", name);
}

/* ---- entries that are in the archive already ---- */

struct entry {
	unsigned char name[16];		/* hash of the entry's name */
	unsigned char digest[16];	/* digest of the shard */
};

struct archive {
	const struct opts *o;
	struct arc *out;
	int fd;				/* a temporary file for one entry */
	struct entry *have;	/* sorted by name */
	size_t n, cap;
	size_t entries, again;	/* shards written; shards that the archive had already */
	unsigned char block[BLOCK];
};

enum known { NEW, SAME };

/* Look up an entry by name, and add it if it is new. Return an enum known, or
 * -ERR_REFUSED when the archive has other bytes under that name. */
static int
note(struct archive *x, const char *name, const unsigned char digest[16], struct err *e)
{
	size_t lo = 0, hi = x->n, mid;
	unsigned char id[16];
	int c;

	hash_128(name, strlen(name), id);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if ((c = memcmp(x->have[mid].name, id, 16)) == 0)
			return memcmp(x->have[mid].digest, digest, 16) == 0 ?
			    SAME : err_set(e, ERR_REFUSED,
			    "two different shards have the name '%.300s' (run, step, "
			    "device): put them into two archives", name);
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (alloc_grow(&x->have, &x->cap, x->n + 1, sizeof(*x->have), e) < 0)
		return -ERR_SYS;
	memmove(x->have + lo + 1, x->have + lo, (x->n - lo) * sizeof(*x->have));
	memcpy(x->have[lo].name, id, 16);
	memcpy(x->have[lo].digest, digest, 16);
	x->n++;
	return NEW;
}

/* ---- writing entries ---- */

static int
temporary(struct archive *x, struct err *e)
{
	if (x->fd < 0)
		return temp_open(NULL, &x->fd, e);
	if (lseek(x->fd, 0, SEEK_SET) < 0 || ftruncate(x->fd, 0) < 0)
		return err_sys(e, "cannot empty the " TEMP_UNNAMED);
	return 0;
}

static int
pour(struct archive *x, struct err *e)
{
	off_t at = 0;
	size_t n;
	int k;

	while ((k = fd_read_at(x->fd, at, x->block, sizeof(x->block), &n,
	    TEMP_UNNAMED, e)) == 0 && n != 0 &&
	    (k = arc_write(x->out, x->block, n, e)) == 0)
		at += (off_t)n;
	return k;
}

/* Make an entry with the contents of the temporary file. */
static int
entry(struct archive *x, const char *name, struct err *e)
{
	struct stat st;
	int k;

	if (fstat(x->fd, &st) < 0)
		return err_sys(e, "cannot look at the " TEMP_UNNAMED);
	if ((k = arc_put(x->out, name, (uint64_t)st.st_size, e)) == 0 &&
	    (k = pour(x, e)) == 0)
		k = arc_put_end(x->out, e);
	x->entries += k == 0;
	return k;
}

/* Write the shard at which r stands as a stream of its own, unless the archive has it. */
static int
put_shard(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct archive *x = arg;
	struct writer *w = NULL;
	unsigned char digest[16];
	char name[ARC_NAME];
	int k;

	if (reader_shard(r)->kind == SHARD_HISTORY)
		return 0;	/* a spool and a state keep these beside the shards */
	name_of(reader_shard(r), from, name);
	if ((k = temporary(x, e)) == 0 &&
	    (k = writer_fd(&w, x->fd, x->o->f->tool, e)) == 0 &&
	    (k = writer_history(w, reader_provenance(r), e)) == 0 &&
	    (k = filter_copy(r, w, e)) == 0) {
		memcpy(digest, reader_end_of_shard(r)->digest, 16);
		k = writer_finish(w, e);
	}
	writer_free(w);
	if (k == 0 && (k = note(x, name, digest, e)) == NEW)
		return entry(x, name, e);
	x->again += k == SAME;
	return k < 0 ? k : 0;
}

/* ---- the commands ---- */

static int
create(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct archive *x = kern_get(e) != NULL ? alloc_get(1, sizeof(*x), e) : NULL;
	struct io *io = NULL;
	struct arc_opts how;
	size_t i;
	int k;

	if (x == NULL)
		return -e->code;
	x->o = o;
	x->fd = -1;
	if ((k = how_to(o->f->output != NULL && strcmp(o->f->output, "-") != 0 ?
	    o->f->output : "a.tar", &how, e)) == 0 &&
	    (k = io_create(&io, o->f->output, 0, e)) == 0)
		k = arc_create(&x->out, io, &how, e);
	if (n == 0 && k == 0)
		k = pick_each(&o->pick, o->f, NULL, put_shard, x, e);
	for (i = 0; i < n && k == 0; i++)
		k = pick_each(&o->pick, o->f, path[i], put_shard, x, e);
	if (k == 0 && x->entries == 0)
		k = pick_none(&o->pick, NULL, e);
	if (k == 0 && (k = arc_finish(x->out, e)) == 0)
		k = io_commit(io, IO_SYNC_FULL, e);
	if (k == 0)
		cli_say(o->f->cli, 1, "shards packed: %zu", x->entries);
	if (k == 0 && x->again != 0)
		cli_say(o->f->cli, 1, "repeated shards stored once: %zu", x->again);
	arc_free(x->out);
	io_free(io);
	if (x->fd >= 0)
		(void)close(x->fd);
	alloc_free(x->have);
	alloc_free(x);
	return k;
}

/* Make the folders of a path.  Its first `into' bytes are the name of one that exists. */
static int
folders(char *path, size_t into, struct err *e)
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

struct into {
	const struct opts *o;
	uint64_t n;
};

/* Give the extracted file its name; a file that exists must have the same shard. */
static int
place(struct writer *w, const struct reader *r, const char *path, struct err *e)
{
	struct receipt had;
	struct err own = ERR_INIT;
	int k = access(path, F_OK) == 0 ? spool_shard(path, &had, &own) : 0;

	if (k == 0)
		return writer_end(w, IO_SYNC_RENAME, e);
	if (k > 0 && memcmp(had.digest, reader_end_of_shard(r)->digest, SHARD_DIGEST) == 0)
		return 0;		/* the shard was extracted before */
	return k == -ERR_SYS ? err_move(e, &own) : err_set(e, ERR_REFUSED,
	    "'%s' exists already and is %s", path, k < 0 ? "not one whole shard: extract "
	    "into an empty folder" : "another shard: extract into an empty folder; if "
	    "the input has both, choose by --kind");
}

static int
each_file(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct into *x = arg;
	char name[ARC_NAME], path[PATH_MAX];
	struct writer *w = NULL;
	int k;

	if (reader_shard(r)->kind == SHARD_HISTORY)
		return 0;
	name_of(reader_shard(r), from, name);
	if (snprintf(path, sizeof(path), "%s/%s", x->o->into, name) >= PATH_MAX)
		return err_file(e, err_set(e, ERR_SYS, "path '%.150s...' has %d bytes "
		    "or more: extract into a folder with a shorter path", path, PATH_MAX), from);
	if ((k = folders(path, strlen(x->o->into), e)) == 0 &&
	    (k = writer_file(&w, path, x->o->f->tool, e)) == 0 &&
	    (k = writer_history(w, reader_provenance(r), e)) == 0 &&
	    (k = filter_copy(r, w, e)) == 0)
		k = place(w, r, path, e);
	writer_free(w);
	x->n += k == 0;
	return k;
}

static int
extract(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct into x = { .o = o };
	int k;

	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	if (o->into == NULL)
		return err_set(e, ERR_USAGE, "no folder to extract into was "
		    "given: add -o DIR");
	if (mkdir(o->into, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", o->into);
	o->f->mute = 1;
	k = pick_each(&o->pick, o->f, *path, each_file, &x, e);
	if (k == 0 && x.n == 0)
		k = pick_none(&o->pick, NULL, e);
	if (k == 0)
		cli_say(o->f->cli, 1, "shards extracted: %llu", (unsigned long long)x.n);
	return k;
}

/* ---- options ---- */

static const struct opt pick_opt[] = {
	OPT_PART(pick_opts, struct opts, pick),
	OPT_SHARED(filter_opts_max),
	OPT_END
};
static const struct opt new_opt[] = {
	{ 'o', "output", "ARCHIVE", "write ARCHIVE, whole or not at all",
	    OPT_PATH(struct filter, output, OPT_REPLACE) },
	OPT_END
};
static const struct opt create_opt[] = {
	OPT_ROWS(pick_opt), OPT_SHARED(new_opt), OPT_END
};
static const struct opt extract_opt[] = {
	{ 'o', "output", "DIR", "the folder to make the files in (needed)",
	    OPT_PATH(struct opts, into, OPT_DIR) },
	OPT_ROWS(pick_opt),
	OPT_END
};

static const struct cli_command commands[] = {
	{ "create", "[-o FILE] [options] [FILE...]",
	    "Puts shards of files, folders, spools and archives into a new "
	    "archive", create_opt, create, 0 },
	{ "extract", "-o DIR [options] [FILE]",
	    "Writes each shard as a file in a "
	    "folder", extract_opt, extract, 1 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-archive",
			.usage = "COMMAND [options] [FILE...]",
			.about = "Keeps the shards of runs in archives.",
			.examples = "ace-archive create -o run.tar.gz spool\n"
			    "ace-archive extract -o folder run.tar.gz\n",
			.commands = commands
		}
	};
	struct opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
