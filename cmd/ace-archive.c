/*
 * ace-archive: puts the shards of a run into an archive (tar, zip) and takes
 * them out again.  Each shard is an entry RUN/STEP/DEVICE.aceg, and a
 * stream of its own.  The names of entries and files are made from the shard's own
 * header, never from the name of an entry, so no archive can choose a place to write to.
 *
 * For the models of a run it stores whole models and patches, and finds the shortest way
 * to any step.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
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
#include "base/progress_bar.h"
#include "base/temp.h"
#include "format/frame.h"
#include "kern/kern.h"
#include "model/model.h"
#include "model/ways.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "spool/spool.h"

struct opts {
	struct filter *f;	/* output of the command create */
	struct pick pick;
	const char *format;	/* tar, tar.gz, zip, ...; NULL: by the ending of the
				 * output's name */
	const char *into;	/* the folder to extract into */
};

enum { BLOCK = 1 << 16 };

/* ---- names ---- */

/* Write the name of a shard in an archive or a folder.  `from' is the shard's file, whose
 * name a spool's aggregate keeps.  The whole model of a step, and patches to that step
 * from different bases, get different names. */
static void
name_of(const struct shard *sh, const char *from, char out[ARC_NAME])
{
	const char *slash = strrchr(from, '/');
	char run[SPOOL_NAME], file[SPOOL_FILE], end[40] = "aceg";

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

struct packing {
	const char *name, *lib;	/* our name, libarchive's name */
};
static const struct packing archives[] = {
	{ "tar", "paxr" }, { "zip", "zip" }, { NULL, NULL }
};
static const struct packing filters[] = {
	{ "gz", "gzip" }, { "bz2", "bzip2" }, { "xz", "xz" },
	{ "zst", "zstd" }, { "lz4", "lz4" }, { NULL, NULL }
};

/* If name[0 .. *n) ends with ".word", subtract that ending from *n and return 1. */
static int
ends(const char *name, size_t *n, const char *word)
{
	const size_t k = strlen(word);

	if (*n < k + 2 || name[*n - k - 1] != '.' ||
	    strncmp(name + *n - k, word, k) != 0)
		return 0;
	*n -= k + 1;
	return 1;
}

/* Find format and compression by the name: "run.tar.zst" is a tar, compressed with
 * zstd. Return the name's length without these suffixes. */
static size_t
by_name(const char *name, const char **format, const char **filter)
{
	const struct packing *k;
	size_t n = strlen(name);

	*format = *filter = NULL;
	if (ends(name, &n, "tgz")) {
		*format = "tar";
		*filter = "gzip";
		return n;
	}
	for (k = filters; k->name != NULL; k++)
		if (ends(name, &n, k->name)) {
			*filter = k->lib;
			break;
		}
	for (k = archives; k->name != NULL; k++)
		if (ends(name, &n, k->name)) {
			*format = k->name;
			break;
		}
	return n;
}

static int
how_to(const struct opts *o, struct arc_opts *how, struct err *e)
{
	const char *format = NULL, *filter = NULL;
	const struct packing *k = archives;
	char name[32];

	if (o->format != NULL) {
		(void)snprintf(name, sizeof(name), "a.%s", o->format);
		if (by_name(name, &format, &filter) != 1 || format == NULL)
			return err_set(e, ERR_USAGE, "--format '%.80s' is unknown: "
			    "expected zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst or "
			    "tar.lz4", o->format);
	} else if (o->f->output != NULL) {
		(void)by_name(o->f->output, &format, &filter);
	}
	if (format == NULL)
		return err_set(e, ERR_USAGE, "the archive's format is unknown: give "
		    "--format, or -o with a name such as run.tar.zst");
	if (filter != NULL && *format == 'z')
		return err_set(e, ERR_USAGE, "format %s compresses its entries "
		    "itself: leave %s out of --format or the name", format, filter);
	memset(how, 0, sizeof(*how));
	while (strcmp(k->name, format) != 0)
		k++;
	how->format = k->lib;
	how->filter = filter;
	return 0;
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
	uint64_t done, all;		/* bytes, for the progress line */
	size_t entries, again;
	struct progress_bar bar;
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
			    "two different shards have the name '%.300s': put them "
			    "into two archives", name);
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
		return temp_open(&x->fd, e);
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
	    (k = arc_write(x->out, x->block, n, e)) == 0) {
		at += (off_t)n;
		x->done += n;
		progress_bar_show(&x->bar, x->done, x->all, "B");
	}
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

/* Write the shard at which r stands as a stream of its own. */
static int
put_shard(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct archive *x = arg;
	struct writer *w = NULL;
	unsigned char digest[16];
	char name[ARC_NAME];
	int k;

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

/* Return the total size of the operands for the progress bar, in bytes; 0 when one
 * of them is not a file. */
static uint64_t
size_of(char **path, size_t n)
{
	uint64_t all = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < n; i++) {
		if (path[i] == NULL || stat(path[i], &st) < 0 || !S_ISREG(st.st_mode))
			return 0;
		all += (uint64_t)st.st_size;
	}
	return all;
}

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
	x->all = pick_given(&o->pick) ? 0 : size_of(path, n);
	progress_bar_begin(&x->bar, o->f->cli);
	if ((k = how_to(o, &how, e)) == 0 &&
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
	progress_bar_end(&x->bar);
	if (k == 0)
		cli_say(o->f->cli, 1, "%zu shards", x->entries);
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

static int
each_line(void *arg, struct reader *r, const char *from, struct err *e)
{
	uint64_t *n = arg;
	const struct shard *sh = reader_shard(r);
	const uint64_t at = reader_offset(r), step = sh->step;
	char name[ARC_NAME], kind[16], device[SHARD_NAME + 1];
	int k;

	name_of(sh, from, name);
	(void)snprintf(kind, sizeof(kind), "%s", shard_kind_name(sh->kind));
	(void)snprintf(device, sizeof(device), "%s", shard_device(sh));
	if ((k = pick_pass(r, e)) < 0)
		return k;
	++*n;
	if (printf("%llu\t%s\t%s\t%llu\t%s\n", (unsigned long long)step,
	    device, kind, (unsigned long long)(reader_offset(r) - at), name) < 0)
		return err_sys(e, "'<stdout>'");
	return 0;
}

static int
list(void *arg, char **path, size_t unused, struct err *e)
{
	const struct opts *o = arg;
	uint64_t n = 0;
	int k;

	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	(void)fputs("step\tdevice\tkind\tbytes\tname\n", stdout);
	k = pick_each(&o->pick, o->f, *path, each_line, &n, e);
	return k == 0 && n == 0 && pick_given(&o->pick) ? pick_none(&o->pick, NULL, e) : k;
}

/* Make the folders of a path below `into'; `into' itself must exist. */
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
	struct progress_bar bar;
	uint64_t n;
};

/* Give the extracted file its name; a file that exists must have the same shard. */
static int
place(struct writer *w, const struct reader *r, const char *path, struct err *e)
{
	struct receipt had;
	struct err own = ERR_INIT;
	int k = access(path, F_OK) == 0 ? spool_shard(path, &had, NULL, &own) : 0;

	if (k == 0)
		return writer_end(w, IO_SYNC_RENAME, e);
	if (k > 0 && memcmp(had.digest, reader_end_of_shard(r)->digest, SHARD_DIGEST) == 0)
		return 0;		/* the shard was extracted before */
	return k == -ERR_SYS ? err_move(e, &own) : err_set(e, ERR_REFUSED,
	    "'%s' exists already and is %s: extract into an empty folder", path,
	    k < 0 ? "damaged" : "another shard");
}

static int
each_file(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct into *x = arg;
	char name[ARC_NAME], path[PATH_MAX];
	struct writer *w = NULL;
	int k;

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
	progress_bar_show(&x->bar, x->n, 0, "shards");
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
	progress_bar_begin(&x.bar, o->f->cli);
	k = pick_each(&o->pick, o->f, *path, each_file, &x, e);
	progress_bar_end(&x.bar);
	if (k == 0 && x.n == 0)
		k = pick_none(&o->pick, NULL, e);
	if (k == 0)
		cli_say(o->f->cli, 1, "%llu shards", (unsigned long long)x.n);
	return k;
}

/* ---- a model of a run ---- */

struct makings {
	struct ways all;
	size_t *way, steps;	/* [steps]: indices in `all' of the shards to write */
	/* during writing */
	struct writer *w;
	size_t seen, done;
};

/* Note the model from which a shard of ace-diff starts, and the one that it makes. */
static int
each_made(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct makings *x = arg;
	struct model_note note = MODEL_NOTE_INIT;
	const uint64_t at = reader_offset(r);
	struct way m = { .step = reader_shard(r)->step, .nth = x->seen++,
	    .whole = !shard_is_patch(reader_shard(r)) };
	int k, noted = 0;

	(void)reader_skip_bodies(r, 1);
	while ((k = reader_next(r, e)) > 0 && k != READER_SEND)
		if (k == READER_NOTE && reader_frame(r)->type == FRAME_MODL) {
			noted = 1;
			if ((k = model_note_decode(&note, reader_frame(r)->raw,
			    reader_frame(r)->raw_len, e)) < 0)
				break;
		}
	(void)reader_skip_bodies(r, 0);
	if (k >= 0 && noted) {
		memcpy(m.before, note.before, MODEL_HASH);
		memcpy(m.after, note.after, MODEL_HASH);
		memcpy(m.digest, reader_end_of_shard(r)->digest, 16);
		m.bytes = reader_offset(r) - at;
		k = ways_add(&x->all, &m, e);
	}
	model_note_release(&note);
	return k < 0 ? k : 0;
}

static int
by_step(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	return x->step != y->step ? (x->step > y->step) - (x->step < y->step) :
	    (x->nth > y->nth) - (x->nth < y->nth);
}

/* Find the shortest way to the last step that was selected. */
static int
choose_way(struct makings *x, const struct pick *pick, struct err *e)
{
	const struct way *m, *best = NULL;
	struct ways *all = &x->all;
	size_t i;

	if (all->n > 1)
		qsort(all->p, all->n, sizeof(*all->p), by_step);
	ways_find(all, NULL);
	for (i = all->n; i-- > 0;) {
		m = &all->p[i];
		if (m->step < pick->lo || m->step > pick->hi ||
		    (best != NULL && m->step != best->step))
			continue;
		if (best != NULL && memcmp(m->after, best->after, MODEL_HASH) != 0)
			return err_set(e, ERR_REFUSED, "the archive has two models "
			    "of step %llu: choose one device with --device",
			    (unsigned long long)m->step);
		if (best == NULL || m->cost < best->cost)
			best = m;
	}
	if (best == NULL)
		return err_set(e, ERR_NO, "the archive has no model%s: "
		    "'ace-archive list' shows its shards", pick_given(pick) ?
		    " that --step and --device match" : "");
	if (best->cost == UINT64_MAX)
		return err_set(e, ERR_DATA, "mismatch: the archive has no whole "
		    "model from which its patches lead to step %llu",
		    (unsigned long long)best->step);
	return ways_list(all, (size_t)(best - all->p), &x->way, &x->steps, e);
}

/* Write a shard if it is the next one on the way. */
static int
each_step(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct makings *x = arg;
	const struct way *m;
	int k;

	if (x->done == x->steps || x->all.p[x->way[x->done]].nth != x->seen++)
		return pick_pass(r, e);
	m = &x->all.p[x->way[x->done++]];
	if ((k = writer_history(x->w, reader_provenance(r), e)) < 0 ||
	    (k = filter_copy(r, x->w, e)) < 0)
		return k;
	return memcmp(reader_end_of_shard(r)->digest, m->digest, 16) == 0 ? 0 :
	    err_set(e, ERR_REFUSED, "the archive changed while it was read: try "
	    "again when nothing writes it");
}

/* Read the archive again and again until all shards of the way are written, in the order
 * of the way.  One reading is enough if the archive has the same order. */
static int
put_way(struct makings *x, const struct pick *pick, const struct opts *o,
    const char *path, struct err *e)
{
	size_t was;
	int k = 0;

	while (k == 0 && x->done < x->steps) {
		was = x->done;
		x->seen = 0;
		k = pick_each(pick, o->f, path, each_step, x, e);
		if (k == 0 && x->done == was)
			k = err_set(e, ERR_REFUSED, "'%s' changed while it was read: "
			    "try again when nothing writes it", path);
	}
	return k;
}

static int
get(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct pick all = o->pick;
	struct makings x = { { NULL, 0, 0 }, NULL, 0, NULL, 0, 0 };
	struct stat st;
	int k;

	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	if (n != 1 || strcmp(*path, "-") == 0 || (stat(*path, &st) == 0 &&
	    !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return err_set(e, ERR_USAGE, "expected one archive, a file or folder: "
		    "it is read twice and cannot be a pipe");
	all.lo = 0;
	all.hi = UINT64_MAX;
	all.kind = SHARD_MODEL;
	if ((k = filter_out(o->f, &x.w, e)) == 0 &&
	    (k = pick_each(&all, o->f, *path, each_made, &x, e)) == 0 &&
	    (k = choose_way(&x, &o->pick, e)) == 0)
		k = put_way(&x, &all, o, *path, e);
	if (x.w != NULL)
		k = filter_end(x.w, k, e);
	if (k == 0)
		cli_say(o->f->cli, 1, "step %llu: a whole model and %zu patches, "
		    "%llu bytes", (unsigned long long)
		    x.all.p[x.way[x.steps - 1]].step, x.steps - 1,
		    (unsigned long long)x.all.p[x.way[x.steps - 1]].cost);
	writer_free(x.w);
	alloc_free(x.way);
	ways_release(&x.all);
	return k;
}

/* ---- options ---- */

static const char *const formats[] = { "tar", "tar.gz", "tar.bz2", "tar.xz",
	"tar.zst", "tar.lz4", "zip", NULL };

static const struct opt pick_opt[] = {
	OPT_PART(pick_opts, struct opts, pick),
	OPT_SHARED(filter_opts_max),
	OPT_END
};
static const struct opt out_opt[] = {
	{ 0, "format", "NAME", "tar, tar.zst, zip ... (default as FILE is named)",
	    OPT_TEXT(struct opts, format), .words = formats },
	OPT_ROWS(pick_opt),
	OPT_END
};
static const struct opt new_opt[] = {
	{ 'o', "output", "ARCHIVE", "write ARCHIVE, whole or not at all",
	    OPT_PATH(struct filter, output, OPT_REPLACE) },
	OPT_END
};
static const struct opt create_opt[] = {
	OPT_ROWS(out_opt), OPT_SHARED(new_opt), OPT_END
};
static const struct opt extract_opt[] = {
	{ 'o', "output", "DIR", "the folder to make the files in (needed)",
	    OPT_PATH(struct opts, into, OPT_DIR) },
	OPT_ROWS(pick_opt),
	OPT_END
};

static const struct opt get_opt[] = {
	OPT_PART(pick_step_opts, struct opts, pick),
	OPT_SHARED(filter_opts_max),
	FILTER_OPTS_OUT,
	OPT_END
};

static const struct cli_command commands[] = {
	{ "create", "[-o FILE] [options] [FILE...]",
	    "Puts shards of files, folders, spools and archives into a new "
	    "archive", create_opt, create, 0 },
	{ "list", "[options] [FILE]", "Prints one line per shard", pick_opt, list, 1 },
	{ "extract", "-o DIR [options] [FILE]",
	    "Writes each shard as a file in a "
	    "folder", extract_opt, extract, 1 },
	{ "get", "[-o FILE] [options] ARCHIVE",
	    "Writes what makes the model of a step: a whole model and "
	    "patches", get_opt, get, 1 },
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
			    "ace-archive list run.tar.gz\n",
			.commands = commands
		}
	};
	struct opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
