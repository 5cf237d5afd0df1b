/*
 * Damage small streams, and give them to the programs of progs[]: a stream is cut at each byte,
 * each bit is flipped, bytes are inserted and deleted, frames are dropped, doubled, swapped or
 * taken from another stream, and noise is written over it.  The program must end with status 3,
 * a message with one of five words after its name (`truncated' after a cut), an output that no
 * reader accepts, and its state unchanged.
 *
 * The programs' own main functions are called thousands of times per second, with
 * memory for standard input and output.
 *
 * ACE_DAMAGE=N tries every N-th damage only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/rng.h"
#include "forge.h"
#include "format/receipt.h"
#include "format/values.h"
#include "format/writer.h"
#include "mains.h"
#include "memory.h"

enum { MAX = 1 << 16, ARGS = 12 };

struct prog {
	const char *name;
	const char *arg[6];	/* ends with a NULL */
	enum { PLAIN, STATE, SPOOL } with;	/* none, -S DIR, --spool DIR; TAIL is
						   damaged with PLAIN only */
	int receipts;		/* 1: the input is receipts */
	unsigned long every;	/* only every N-th damage; 0: all */
};

static const struct prog progs[] = {
	{ "ace-expand", { NULL }, PLAIN, 0, 0 },
	{ "ace-score", { NULL }, PLAIN, 0, 0 },
	{ "ace-select", { "-p", "0.5" }, PLAIN, 0, 0 },
	{ "ace-select", { "-b", "1200" }, PLAIN, 0, 0 },
	{ "ace-compress", { "-c", "topk:0.1" }, PLAIN, 0, 0 },
	{ "ace-step", { "-c", "q8" }, PLAIN, 0, 0 },
	{ "ace-aggregate", { NULL }, PLAIN, 0, 0 },
	{ "ace-policy", { NULL }, PLAIN, 0, 0 },
	{ "ace-export", { "-f", "raw" }, PLAIN, 0, 0 },
	{ "ace-inspect", { "verify" }, PLAIN, 0, 0 },
	{ "ace-inspect", { "stats" }, PLAIN, 0, 0 },
	{ "ace-inspect", { "--format=tsv" }, PLAIN, 0, 0 },
	{ "ace-cut", { "--step", "0-" }, PLAIN, 0, 0 },
	{ "ace-cut", { "--tensor", "*" }, PLAIN, 0, 0 },
	{ "ace-expand", { "--wait", "0" }, STATE, 0, 0 },
	{ "ace-score", { NULL }, STATE, 0, 0 },
	{ "ace-policy", { NULL }, STATE, 0, 0 },
	{ "ace-compress", { "-c", "q8", "--sync", "none" }, STATE, 0, 0 },
	{ "ace-ack", { "--sync", "none" }, STATE, 0, 0 },
	{ "ace-ack", { "--sync", "none" }, STATE, 1, 0 },
	{ "ace-recv", { "--sync", "none" }, SPOOL, 0, 23 }
};

static const char *const files[] = {
	"good-f32", "good-f16", "good-exact", "good-q8", "good-sign", "good-topk", "good-qsgd",
	"good-ecq", "good-lowrank",
	"good-chunk", "good-nonzero", "good-tcq",
	"good-notes", "good-absent"
};

/* ---- one call of a program ---- */

static FILE *tap;
static int fd_in, fd_out, fd_err;
static unsigned char out[MAX];
static size_t nout;
static char message[1024];
static char now[256];		/* what is being tried, for the report of a crash */

static void
crashed(int sig)
{
	static const char text[] = "\nnot ok - crashed in: ";

	(void)!write(fileno(tap), text, sizeof(text) - 1);
	(void)!write(fileno(tap), now, strlen(now));
	(void)!write(fileno(tap), "\n", 1);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void
must(int good, const char *what)
{
	if (good)
		return;
	(void)fprintf(tap, "Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

static int
memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	must(fd >= 0, name);
	return fd;
}

/* Give the bytes as standard input: a pipe if pipe_it is 1, else a file that can seek. */
static void
input(const unsigned char *p, size_t n, int pipe_it)
{
	int pfd[2];

	if (!pipe_it) {
		must(ftruncate(fd_in, 0) == 0 &&
		    pwrite(fd_in, p, n, 0) == (ssize_t)n &&
		    lseek(fd_in, 0, SEEK_SET) == 0 && dup2(fd_in, 0) == 0,
		    "input");
		return;
	}
	must(pipe(pfd) == 0 && write(pfd[1], p, n) == (ssize_t)n &&
	    dup2(pfd[0], 0) == 0 && close(pfd[0]) == 0 && close(pfd[1]) == 0,
	    "pipe");
}

static int
call(const struct prog *g, const char *dir, const unsigned char *p, size_t n,
    int pipe_it)
{
	/* "--sandbox off": this process runs all programs, and cannot leave a sandbox */
	const char *argv[ARGS + 3] = { g->name };
	int argc = 1, i = 0, r;
	ssize_t k;

	if (g->arg[0] != NULL && g->arg[0][0] != '-')	/* a command */
		argv[argc++] = g->arg[i++];
	argv[argc++] = "--sandbox";
	argv[argc++] = "off";
	for (; g->arg[i] != NULL; i++)
		argv[argc++] = g->arg[i];
	if (dir != NULL) {
		argv[argc++] = g->with == SPOOL ? "--spool" : "-S";
		argv[argc++] = dir;
	}
	input(p, n, pipe_it);
	must(ftruncate(fd_out, 0) == 0 && lseek(fd_out, 0, SEEK_SET) == 0 &&
	    dup2(fd_out, 1) == 1 && ftruncate(fd_err, 0) == 0 &&
	    lseek(fd_err, 0, SEEK_SET) == 0 && dup2(fd_err, 2) == 2, "output");
	r = mains_call(g->name, argc, (char **)(uintptr_t)argv);
	k = pread(fd_out, out, sizeof(out), 0);
	must(k >= 0, "out");
	nout = (size_t)k;
	k = pread(fd_err, message, sizeof(message) - 1, 0);
	must(k >= 0, "err");
	message[k] = '\0';
	return r;
}

/* Return 1 when another program would accept these bytes as a whole stream. */
static int
accepted(const unsigned char *p, size_t n)
{
	struct err e = ERR_INIT;
	struct reader *r = NULL;
	struct io *io = NULL;
	int k;

	must(memory_open(&io, p, n, &e) == 0 &&
	    reader_open(&r, io, NULL, &e) == 0, "reader");
	while ((k = reader_next(r, &e)) > 0)
		;
	reader_free(r);
	return k == 0;
}

/* ---- the state directory ---- */

/* Call a function for each entry of dir that is not hidden. */
static void
dir_each(const char *dir, void (*each)(const char *path, const char *name,
    void *arg), void *arg)
{
	char path[512];
	struct dirent *d;
	DIR *h = opendir(dir);

	must(h != NULL, dir);
	while ((d = readdir(h)) != NULL) {
		(void)snprintf(path, sizeof(path), "%s/%.255s", dir, d->d_name);
		if (d->d_name[0] != '.')
			each(path, d->d_name, arg);
	}
	must(closedir(h) == 0, dir);
}

/* Add to *arg a hash of the file, or of each file in the directory, with its name. */
static void
dir_add(const char *path, const char *name, void *arg)
{
	static unsigned char b[MAX];
	uint64_t *sum = arg;
	struct stat st;
	ssize_t k;
	int fd;

	must(stat(path, &st) == 0, path);
	if (S_ISDIR(st.st_mode)) {
		dir_each(path, dir_add, arg);
		return;
	}
	must(st.st_size < MAX, path);
	must((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0, path);
	k = read(fd, b, sizeof(b));
	must(k >= 0 && close(fd) == 0, path);
	/* a sum, so that the order of the names does not matter */
	*sum += hash_64(b, (size_t)k) ^
	    hash_64(name, strlen(name)) * 3;
}

static uint64_t
dir_sum(const char *dir)
{
	uint64_t sum = 0;

	dir_each(dir, dir_add, &sum);
	return sum;
}

static void dir_remove(const char *dir);

static void
dir_drop(const char *path, const char *name, void *arg)
{
	struct stat st;

	(void)name;
	(void)arg;
	must(stat(path, &st) == 0, path);
	if (S_ISDIR(st.st_mode))
		dir_remove(path);
	else
		must(unlink(path) == 0, path);
}

static void
dir_remove(const char *dir)
{
	static const char *const hidden[] = { ".clients", ".lock", ".synced" };
	char path[PATH_MAX];
	size_t i;

	dir_each(dir, dir_drop, NULL);
	/* dir_each skips hidden files */
	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, hidden[i]);
		(void)unlink(path);
	}
	must(rmdir(dir) == 0, dir);
}

/* ---- trying ---- */

struct trial {
	const struct prog *g;
	const unsigned char *good;
	size_t ngood;
	const char *dir;
	uint64_t before;	/* dir_sum before the next trial */
	unsigned long tried, failed, every, turn;
};

static const char *
wrong(const struct trial *t, int r, int cut)
{
	static const char *const words[] = {
		"truncated: ", "corrupt: ", "unsupported: ", "limit: ",
		"mismatch: "
	};
	size_t n = strlen(t->g->name), i;

	if (r != ERR_DATA)
		return "status";
	if (strncmp(message, t->g->name, n) != 0 ||
	    strncmp(message + n, ": ", 2) != 0)
		return "message";
	for (i = 0; i < (cut ? 1u : 5u); i++)
		if (strncmp(message + n + 2, words[i], strlen(words[i])) == 0)
			break;
	if (i == (cut ? 1u : 5u))
		return "word";
	if (accepted(out, nout))
		return "output accepted";
	if (t->dir != NULL && dir_sum(t->dir) != t->before)
		return "state changed";
	return NULL;
}

static void
try(struct trial *t, const unsigned char *p, size_t n, int cut,
    const char *what, unsigned long at)
{
	const char *why;
	int r;

	if (n == t->ngood && memcmp(p, t->good, n) == 0)
		return;
	if (t->turn++ % t->every != 0)
		return;
	(void)snprintf(now, sizeof(now), "%s, %s %lu", t->g->name, what, at);
	r = call(t->g, t->dir, p, n, (int)(t->tried++ & 1));
	if ((why = wrong(t, r, cut)) == NULL)
		return;
	if (t->failed++ < 4)
		(void)fprintf(tap, "# %s: %s: status %d, %s", now, why, r,
		    message[0] != '\0' ? message : "\n");
	if (t->dir != NULL)
		t->before = dir_sum(t->dir);
}

static void
bytes(struct trial *t, unsigned char *b, size_t end)
{
	const unsigned char *p = t->good;
	size_t n = t->ngood, i;
	uint32_t r[4];
	int bit;

	for (i = 0; i < end; i++)
		try(t, p, i, 1, "cut at", i);
	memcpy(b, p, n);
	for (i = 0; i < end; i++)
		for (bit = 0; bit < 8; bit++) {
			b[i] ^= (unsigned char)(1 << bit);
			try(t, b, n, 0, "flipped bit", i * 8 + (size_t)bit);
			b[i] = p[i];
		}
	for (i = 0; i < end; i++) {
		memcpy(b + i, p + i + 1, n - i - 1);
		try(t, b, n - 1, 0, "deleted byte", i);
		memcpy(b + i + 1, p + i, n - i);
		b[i] = (unsigned char)(i * 37);
		try(t, b, n + 1, 0, "inserted before byte", i);
		b[i] = p[i];
	}
	for (i = 0; i < 1000; i++) {	/* bursts of 2 to 64 bytes */
		rng_block(1, 2, 3, (uint32_t)i, r);
		memcpy(b, p, n);
		for (size_t k = r[0] % end, m = k + 2 + r[1] % 63; k < m &&
		    k < end; k++)
			b[k] = (unsigned char)(r[2] >> k % 23);
		try(t, b, n, 0, "burst", i);
	}
}

/* Drop, double and swap frames, and take frames from `other', without changing their headers. */
static void
frames(struct trial *t, unsigned char *b, const unsigned char *other,
    size_t nother, size_t end)
{
	const unsigned char *p = t->good;
	size_t at[FORGE_MAX + 1], bt[FORGE_MAX + 1], n = 0, m = 0, i, len;

	for (at[0] = 0; at[n] < end && n < FORGE_MAX; n++) {
		len = bytes_le32(p + at[n] + 16);
		at[n + 1] = at[n] + 64 + len + frame_padding(len);
	}
	for (bt[0] = 0; bt[m] < nother && m < FORGE_MAX; m++) {
		len = bytes_le32(other + bt[m] + 16);
		bt[m + 1] = bt[m] + 64 + len + frame_padding(len);
	}
	for (i = 0; i < n; i++) {
		len = t->ngood - at[i + 1];
		memcpy(b, p, at[i]);				/* dropped */
		memcpy(b + at[i], p + at[i + 1], len);
		try(t, b, at[i] + len, 0, "dropped frame", i);
		memcpy(b, p, at[i + 1]);			/* doubled */
		memcpy(b + at[i + 1], p + at[i], t->ngood - at[i]);
		if (at[i + 1] < end || end == t->ngood)
			try(t, b, at[i + 1] + t->ngood - at[i], 0,
			    "doubled frame", i);
		if (i + 1 < n) {				/* swapped */
			memcpy(b, p, t->ngood);
			len = at[i + 2] - at[i + 1];
			memcpy(b + at[i], p + at[i + 1], len);
			memcpy(b + at[i] + len, p + at[i], at[i + 1] - at[i]);
			try(t, b, t->ngood, 0, "swapped frame", i);
		}
		if (i >= m)
			continue;
		memcpy(b, p, at[i]);			/* one frame from the other stream */
		len = bt[i + 1] - bt[i];
		memcpy(b + at[i], other + bt[i], len);
		memcpy(b + at[i] + len, p + at[i + 1], t->ngood - at[i + 1]);
		try(t, b, at[i] + len + t->ngood - at[i + 1], 0,
		    "foreign frame", i);
		if (i == 0)
			continue;
		memcpy(b, p, at[i]);	/* from here on the other stream */
		memcpy(b + at[i], other + bt[i], nother - bt[i]);
		try(t, b, at[i] + nother - bt[i], 0, "spliced at frame", i);
	}
}

/* ---- the inputs ---- */

static size_t
load(const char *name, unsigned char *b, size_t cap)
{
	const char *root = getenv("ROOT");
	char path[512];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/tests/golden/%s.aceg",
	    root != NULL ? root : ".", name);
	f = fopen(path, "rb");
	must(f != NULL, path);
	n = fread(b, 1, cap, f);
	must(n > 0 && n < cap && fclose(f) == 0, path);
	return n;
}

/* Return the stream p[n] with another step and stream id; *len: its bytes. The caller frees it. */
static unsigned char *
at_step(const unsigned char *p, size_t n, uint64_t step, size_t *len)
{
	unsigned char *q;
	struct forge s;
	size_t i;

	forge_open(&s, p, n);
	bytes_set64(forge_find(&s, FRAME_SHRD, 0)->p + 32, step);
	for (i = 0; i < s.n; i++)
		bytes_set64(s.f[i].head + 24, 77 + step);
	q = forge_seal(&s, len);
	forge_free(&s);
	return q;
}

/* Return a stream of *len bytes with a receipt for that step. The caller frees it. */
static unsigned char *
receipt_of(uint64_t step, size_t *len)
{
	struct writer_opts o = { "ace-recv", NULL, 0, 0 };
	struct receipt r = { .step = step, .verdict = RECEIPT_LATE,
	    .clock = 1000000000u, .reason = "too late" };
	struct err e = ERR_INIT;
	struct writer *w = NULL;
	struct io *io = NULL;
	const unsigned char *p;
	unsigned char *q;

	must(memory_create(&io, &e) == 0 && writer_open(&w, io, &o, &e) == 0 &&
	    writer_receipt(w, &r, &e) == 0 &&
	    writer_finish(w, &e) == 0, "receipt");
	p = learned_of(io, len);
	q = malloc(*len);
	must(q != NULL, "receipt");
	memcpy(q, p, *len);
	writer_free(w);
	return q;
}

static int tests, bad;

static void
report(const struct trial *t, const char *file)
{
	const char *const *a = t->g->arg;

	(void)fprintf(tap, "%sok %d - %s", t->failed != 0 ? "not " : "",
	    ++tests, t->g->name);
	for (; *a != NULL; a++)
		(void)fprintf(tap, " %s", *a);
	(void)fprintf(tap, "%s <%s: %lu damages, %lu not refused as they "
	    "should be\n", t->dir == NULL ? "" :
	    t->g->with == SPOOL ? " --spool" : " -S", t->g->receipts ?
	    "receipt" : file, t->tried,
	    t->failed);
	(void)fflush(tap);
	bad |= t->failed != 0 || t->tried == 0;
}

/* Make the input of a program at one step: a receipt, or the good stream at that step. */
static unsigned char *
input_at(const struct prog *g, const unsigned char *good, size_t n,
    uint64_t step, size_t *len)
{
	return g->receipts ? receipt_of(step, len) :
	    at_step(good, n, step, len);
}

static void
one(const struct prog *g, const char *file, unsigned long every)
{
	static unsigned char good[MAX / 4], b[MAX];
	char dir[] = "/tmp/ace-damage-XXXXXX";
	struct trial t = { .g = g, .good = good,
	    .every = every > g->every ? every : g->every };
	unsigned char *other, *first;
	size_t nother, nfirst, end;
	int r;

	t.ngood = end = load(file, good, sizeof(good));
	other = at_step(good, t.ngood, 7, &nother);
	if (g->with != PLAIN) {
		must(mkdtemp(dir) != NULL, dir);
		first = input_at(g, good, t.ngood, 0, &nfirst);
		free(other);
		other = input_at(g, good, t.ngood, 1, &nother);
		memcpy(good, other, nother);
		t.ngood = nother;
		r = call(g, dir, first, nfirst, 0);
		free(first);
		if (r != 0)
			(void)fprintf(tap, "# %s: %s", g->name, message);
		t.failed += r != 0;
		t.dir = dir;
		t.before = dir_sum(dir);
		end = t.ngood - FRAME_HEAD_SIZE - FRAME_TAIL_SIZE;	/* end of the shard */
	} else if ((r = call(g, NULL, good, t.ngood, 0)) != 0) {
		(void)fprintf(tap, "# good input: status %d, %s", r, message);
		t.failed++;
	}
	bytes(&t, b, end);
	/* receipts are independent: a stream may hold them in any order */
	if (!g->receipts)
		frames(&t, b, other, nother, end);
	if (t.dir != NULL)
		dir_remove(dir);
	report(&t, file);
	free(other);
}

int
main(void)
{
	const char *every = getenv("ACE_DAMAGE");
	size_t i, k;

	tap = fdopen(dup(1), "w");
	must(tap != NULL, "stdout");
	fd_in = memory("in");
	fd_out = memory("out");
	fd_err = memory("err");
	(void)signal(SIGSEGV, crashed);
	(void)signal(SIGABRT, crashed);
	for (i = 0; i < sizeof(progs) / sizeof(progs[0]); i++)
		for (k = 0; k < sizeof(files) / sizeof(files[0]); k++)
			if (progs[i].with == PLAIN || k == 0)
				one(&progs[i], files[k], every != NULL ?
				    strtoul(every, NULL, 10) : 1);
	(void)fprintf(tap, "1..%d\n", tests);
	(void)fflush(tap);
	return bad;
}
