/*
 * Make every allocation and most system calls of our code fail, one after the other, in each
 * program's own main function, which is called in this process.  That allows thousands of
 * calls per second; tests/fault starts a process for each.  Each time, unless the case is
 * `loose',
 *
 *   - the program ends with a documented status, 4 without memory, and gives the reason
 *   - with 0 its output is that of a run without the failure
 *   - without memory its output is not a whole stream
 *   - no descriptor stays open, and without memory no half-written file stays, except
 *     a file of a child process that the parent ends
 *   - a second call without the failure completes the work
 *   - no memory leaks, when a sanitizer checks (make asan)
 *
 * Calls that libraries make for themselves do not fail: the linker redirects only the
 * calls of our objects (--wrap, in the Makefile).
 *
 *   refuse [NAME]      NAME: only cases whose names begin with NAME
 *
 * ACE_DAMAGE=N makes each place in the code fail once, and otherwise every N-th call.
 */
#include <execinfo.h>
#ifdef ACE_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif
#include <stdio_ext.h>
#include <sys/mman.h>

#include "base/sandbox.h"
#include "fault_cases.h"
#include "mains.h"
#include "refuse_cases.h"
#include "tree.h"

enum { REFUSE_MAX = 1 << 20, REFUSE_FDS = 256 };

enum refuse_kind {
	REFUSE_NOTHING, REFUSE_MEMORY, REFUSE_READ, REFUSE_WRITE, REFUSE_OPEN,
	REFUSE_SCAN, REFUSE_SYNC, REFUSE_NAME, REFUSE_REMOVE, REFUSE_LOCK,
	REFUSE_LOOK, REFUSE_SEEK, REFUSE_CLOSE, REFUSE_KINDS
};
static const struct {
	const char *name;
	int error;
} refuse_kinds[REFUSE_KINDS] = {
	{ "nothing", 0 }, { "memory", ENOMEM }, { "read", EIO },
	{ "write", ENOSPC }, { "open", EMFILE }, { "readdir", EIO },
	{ "fsync", EIO }, { "rename, link, mkdir", ENOSPC }, { "unlink", EIO },
	{ "flock", ENOLCK }, { "stat", EIO }, { "lseek", EIO },
	{ "close", EIO }
};

static FILE *tap;
static int fd_tap, fd_said, fd_out, fd_err, tests, bad;
static unsigned long every = 1, turn;
static char message[1024];

/* ---- the wrapped calls ---- */

enum { REFUSE_DEEP = 7, REFUSE_CALLS = 1 << 16, REFUSE_PLACES = 1 << 16 };

/* Which call must fail; shared with the child process in which ace-recv reads. */
static struct asked {
	enum refuse_kind kind, now;	/* now: kind, while a program runs */
	long at, n;		/* the at-th call fails (0: none); n were made */
	pid_t who;		/* process whose call failed */
	uint64_t by[REFUSE_CALLS];	/* place of each call, while calls are counted */
} *asked;

/*
 * Hashes of the places in the code that make calls.  The last few functions on the stack
 * are a place.  Each place fails at least once; of all other calls every N-th fails.
 */
static uint64_t places[REFUSE_PLACES];

static uint64_t
refuse_place(void)
{
	void *at[REFUSE_DEEP];
	int n = backtrace(at, REFUSE_DEEP);

	return hash_64(at + 2, (size_t)(n > 2 ? n - 2 : 0) * sizeof(*at));
}

/* Add a place to places[]. Return 1 if it is new, so no call has failed there yet. */
static int
refuse_new_place(uint64_t place)
{
	size_t i = place % REFUSE_PLACES;

	while (places[i] != 0 && places[i] != place)
		i = (i + 1) % REFUSE_PLACES;
	if (places[i] == place)
		return 0;
	places[i] = place;
	return 1;
}

static int leaving;	/* 1: this process, a child, has called exit: no call fails any more */

static int
refused(enum refuse_kind kind)
{
	long n;

	if (kind != asked->now || leaving)
		return 0;
	n = __atomic_add_fetch(&asked->n, 1, __ATOMIC_RELAXED);
	if (asked->at == 0 && n <= REFUSE_CALLS)
		asked->by[n - 1] = refuse_place();
	if (n != asked->at)
		return 0;
	asked->who = getpid();
	errno = refuse_kinds[kind].error;
	return 1;
}

#define WRAP(type, name, kind, fails, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		return refused(kind) ? (fails) : __real_##name args; \
	}

WRAP(void *, calloc, REFUSE_MEMORY, NULL, (size_t n, size_t m), (n, m))
WRAP(void *, malloc, REFUSE_MEMORY, NULL, (size_t n), (n))
WRAP(void *, realloc, REFUSE_MEMORY, NULL, (void *p, size_t n), (p, n))
WRAP(ssize_t, read, REFUSE_READ, -1, (int fd, void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pread, REFUSE_READ, -1, (int fd, void *p, size_t n, off_t at),
    (fd, p, n, at))
WRAP(ssize_t, write, REFUSE_WRITE, -1, (int fd, const void *p, size_t n),
    (fd, p, n))
WRAP(ssize_t, pwrite, REFUSE_WRITE, -1, (int fd, const void *p, size_t n,
    off_t at), (fd, p, n, at))
WRAP(int, fflush, REFUSE_WRITE, EOF, (FILE *f), (f))
WRAP(int, ftruncate, REFUSE_WRITE, -1, (int fd, off_t n), (fd, n))
WRAP(int, fchmod, REFUSE_WRITE, -1, (int fd, mode_t m), (fd, m))
WRAP(int, mkostemp, REFUSE_OPEN, -1, (char *p, int f), (p, f))
WRAP(DIR *, opendir, REFUSE_OPEN, NULL, (const char *p), (p))
WRAP(DIR *, fdopendir, REFUSE_OPEN, NULL, (int fd), (fd))
WRAP(int, pipe2, REFUSE_OPEN, -1, (int *fd, int f), (fd, f))
WRAP(struct dirent *, readdir, REFUSE_SCAN, NULL, (DIR *d), (d))
WRAP(int, fsync, REFUSE_SYNC, -1, (int fd), (fd))
WRAP(int, rename, REFUSE_NAME, -1, (const char *a, const char *b), (a, b))
WRAP(int, renameat, REFUSE_NAME, -1, (int x, const char *a, int y, const char *b),
    (x, a, y, b))
WRAP(int, linkat, REFUSE_NAME, -1, (int x, const char *a, int y, const char *b,
    int f), (x, a, y, b, f))
WRAP(int, link, REFUSE_NAME, -1, (const char *a, const char *b), (a, b))
WRAP(int, unlink, REFUSE_REMOVE, -1, (const char *p), (p))
WRAP(int, unlinkat, REFUSE_REMOVE, -1, (int at, const char *p, int f),
    (at, p, f))
WRAP(int, rmdir, REFUSE_REMOVE, -1, (const char *p), (p))
WRAP(int, mkdir, REFUSE_NAME, -1, (const char *p, mode_t m), (p, m))
WRAP(int, mkdirat, REFUSE_NAME, -1, (int at, const char *p, mode_t m), (at, p, m))
WRAP(int, flock, REFUSE_LOCK, -1, (int fd, int how), (fd, how))
WRAP(int, stat, REFUSE_LOOK, -1, (const char *p, struct stat *st), (p, st))
WRAP(int, lstat, REFUSE_LOOK, -1, (const char *p, struct stat *st), (p, st))
WRAP(int, fstat, REFUSE_LOOK, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, access, REFUSE_LOOK, -1, (const char *p, int how), (p, how))
WRAP(int, fstatat, REFUSE_LOOK, -1, (int at, const char *p, struct stat *st, int f),
    (at, p, st, f))
WRAP(int, faccessat, REFUSE_LOOK, -1, (int at, const char *p, int how, int f),
    (at, p, how, f))
WRAP(off_t, lseek, REFUSE_SEEK, -1, (int fd, off_t at, int how), (fd, at, how))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int
__wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return refused(REFUSE_OPEN) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int
__wrap_openat(int at, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return refused(REFUSE_OPEN) ? -1 : __real_openat(at, path, flags, mode);
}

/* Close the descriptor even when the call fails, as Linux does. */
int __real_close(int fd);
int __wrap_close(int fd);
int
__wrap_close(int fd)
{
	const int no = refused(REFUSE_CLOSE), r = __real_close(fd);

	if (!no)
		return r;
	errno = refuse_kinds[REFUSE_CLOSE].error;
	return -1;
}

/* Let no call fail after exit, which a child calls in make coverage to write its counts. */
void __real_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) __attribute__((noreturn));
void
__wrap_exit(int status)
{
	leaving = 1;
	__real_exit(status);
}

/* Do nothing: one process runs all programs, and a sandbox could not be removed. */
void __wrap_sandbox_begin(struct sandbox *s);
void
__wrap_sandbox_begin(struct sandbox *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

int __wrap_sandbox_enter(struct sandbox *s, int want, char *says,
    unsigned long n, struct err *e);
int
__wrap_sandbox_enter(struct sandbox *s, int want, char *says, unsigned long n,
    struct err *e)
{
	(void)s;
	(void)want;
	(void)e;
	(void)snprintf(says, n, "none");
	return 0;
}

/* ---- one call of a program ---- */

static char trying[200];	/* what is being tried, for the report of a crash */

static void
crashed(int sig)
{
	(void)!write(fd_tap, trying, strlen(trying));
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* Empty the file fd, and make it descriptor `as', too. */
static void
again(int fd, int as)
{
	proc_must(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
	    dup2(fd, as) == as, "output");
}

/* Run a case in the directory work, with the failure in *asked. Return its status. */
static int
call(const struct fault_case *c)
{
	char text[1024], *argv[PROC_WORDS + 1], *s, *save = NULL;
	const char *in = "/dev/null";
	int argc = 0, fd, r;

	(void)snprintf(text, sizeof(text), "%s", c->command);
	for (s = strtok_r(text, " ", &save); s != NULL && argc < PROC_WORDS;
	    s = strtok_r(NULL, " ", &save))
		argv[argc++] = s;
	for (; argc > 2 && (argv[argc - 2][0] == '<' || argv[argc - 2][0] == '>');
	    argc -= 2)
		if (argv[argc - 2][0] == '<')
			in = argv[argc - 1];
	argv[argc] = NULL;
	proc_must(chdir("work") == 0 && (fd = open(in, O_RDONLY)) >= 0 &&
	    dup2(fd, 0) == 0 && (fd == 0 || close(fd) == 0), in);
	again(fd_out, 1);
	again(fd_err, 2);
	asked->now = asked->kind;
	asked->n = 0;
	r = mains_call(argv[0], argc, argv);
	asked->kind = asked->now = REFUSE_NOTHING;
	__fpurge(stdout);
	clearerr(stdout);
	proc_must(dup2(fd_tap, 1) == 1 && dup2(fd_said, 2) == 2 &&
	    chdir("..") == 0, "..");
	memset(message, 0, sizeof(message));
	proc_must(pread(fd_err, message, sizeof(message) - 1, 0) >= 0, "err");
	return r;
}

/* Return 1 when a sanitizer first finds a leak, which it reports on standard error; else 0. */
static unsigned long
leaks(void)
{
#ifdef ACE_SANITIZED
	static int before;

	if (before == 0 && __lsan_do_recoverable_leak_check() != 0)
		return (unsigned long)++before;
#endif
	return 0;
}

static uint64_t
output(void)
{
	static unsigned char b[REFUSE_MAX];
	ssize_t k = pread(fd_out, b, sizeof(b), 0);

	proc_must(k >= 0 && k < REFUSE_MAX, "out");
	return hash_64(b, (size_t)k);
}

static int
open_files(void)
{
	int fd, n = 0;

	for (fd = 3; fd < REFUSE_FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- a case ---- */

struct refuse_run {
	const struct fault_case *c;
	uint64_t out;		/* hash of the output without refusals */
	int whole;		/* 1: that run had output */
	struct tree was, will;
	unsigned long tried, clean, tolerated, bad;
};

static const char *
judge(const struct refuse_run *f, enum refuse_kind kind, int status, int files)
{
	const size_t n = strcspn(f->c->command, " ");
	struct tree now;

	tree_take(&now, "work");
	if (open_files() != files)
		return "a file stays open";
	if (status == 0)
		return (f->c->loose & (FUZZY | CLOCK)) != 0 || output() == f->out ?
		    NULL : "silent: another output";
	if (kind == REFUSE_MEMORY ? status != 4 : status < 3 || status > 5)
		return "status";
	if (strncmp(message, f->c->command, n) != 0 || message[n] != ':')
		return "says nothing";
	if (kind == REFUSE_MEMORY &&
	    (f->c->loose & (FUZZY | CLOCK | SILENT)) == 0 && f->whole && output() == f->out)
		return "fails, and what it wrote is whole";
	/* ace-recv's reading child may be killed while it writes */
	if (kind == REFUSE_MEMORY && now.half > f->was.half &&
	    (strncmp(f->c->command, "ace-recv ", 9) != 0 ||
	    asked->who != getpid()))
		return "a file that is half written stays";
	if ((f->c->loose & (FUZZY | COMMITS)) == 0 &&
	    !tree_between(&now, &f->was, &f->will))
		return "files neither old nor new";
	return NULL;
}

static void
one(struct refuse_run *f, enum refuse_kind kind, long at)
{
	const int files = open_files();
	char said[sizeof(message)];
	const char *wrong;
	struct tree now;
	int status, second;
	long made;

	asked->kind = kind;
	asked->at = at;
	(void)snprintf(trying, sizeof(trying), "\nnot ok - crashed in: %.80s, %s "
	    "%ld\n", f->c->name, refuse_kinds[kind].name, at);
	status = call(f->c);
	made = asked->n;
	memcpy(said, message, sizeof(said));
	if (made < at)
		return;
	f->tried++;
	f->clean += status != 0;
	f->tolerated += status == 0;
	wrong = judge(f, kind, status, files);
	if (wrong == NULL && (f->c->loose != ENDLESS ||
	    access("work/D/done/0", F_OK) < 0)) {
		second = call(f->c);
		tree_take(&now, "work");
		if (second != 0)
			wrong = "not the second time";
		else if ((f->c->loose & (LEARNS | FUZZY | CLOCK)) == 0 &&
		    output() != f->out)
			wrong = "another output the second time";
		else if ((f->c->loose & (LEARNS | FUZZY)) == 0 &&
		    !tree_done(&now, &f->was, &f->will))
			wrong = "other files the second time";
	}
	if (wrong != NULL && f->bad++ < 6)
		(void)fprintf(tap, "# %s: %s %ld: %s (status %d), %s%s",
		    f->c->name, refuse_kinds[kind].name, at, wrong, status,
		    said, strchr(said, '\n') != NULL ? "" : "\n");
}

/* Return the number of calls of this kind that the program makes; their places: asked->by. */
static long
count(const struct fault_case *c, enum refuse_kind kind)
{
	asked->kind = kind;
	asked->at = 0;
	(void)call(c);
	return asked->n;
}

static void
one_case(const struct fault_case *c)
{
	static struct refuse_run f;
	char text[4096];
	long n, at;
	int kind;

	memset(&f, 0, sizeof(f));
	f.c = c;
	(void)snprintf(text, sizeof(text), "set -e; rm -rf template work; mkdir "
	    "-m 700 template; cd template; export PATH=$BUILD:$BUILD/tests:$PATH;"
	    " { %s } 2>../setup.err", c->setup);
	proc_must(system(text) == 0, c->setup);
	tree_copy("template", "work");
	tree_take(&f.was, "work");
	if (call(c) != 0) {
		(void)fprintf(tap, "# %s", message);
		f.bad++;
	}
	f.out = output();
	f.whole = lseek(fd_out, 0, SEEK_END) > 0;
	tree_take(&f.will, "work");
	for (kind = REFUSE_NOTHING + 1; kind < REFUSE_KINDS && f.bad == 0;
	    kind++) {
		tree_copy("template", "work");
		n = count(c, (enum refuse_kind)kind);
		for (at = 1; at <= n; at++) {
			if (!(at <= REFUSE_CALLS &&
			    refuse_new_place(asked->by[at - 1])) &&
			    f.tried != 0 && turn++ % every != 0)
				continue;
			tree_copy("template", "work");
			one(&f, (enum refuse_kind)kind, at);
		}
	}
	f.bad += leaks();
	(void)fprintf(tap, "%sok %d - %s: %lu refused, %lu said so, %lu did "
	    "without, %lu wrong\n", f.bad != 0 || f.tried == 0 ? "not " : "",
	    ++tests, c->name, f.tried, f.clean, f.tolerated, f.bad);
	(void)fflush(tap);
	bad |= f.bad != 0 || f.tried == 0;
}

static void
some(const struct fault_case *c, size_t n, const char *name)
{
	for (; n != 0; n--, c++)
		if (name == NULL || strncmp(c->name, name, strlen(name)) == 0)
			one_case(c);
}

int
main(int argc, char **argv)
{
	const char *s = getenv("ACE_DAMAGE"), *name = argc > 1 ? argv[1] : NULL;

	if (s != NULL && atol(s) > 1)
		every = strtoul(s, NULL, 10);
	fd_tap = fcntl(1, F_DUPFD_CLOEXEC, 10);
	fd_said = fcntl(2, F_DUPFD_CLOEXEC, 10);
	tap = fdopen(fd_tap, "w");
	asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_ANONYMOUS, -1, 0);
	if (tap == NULL || fd_said < 0 || asked == MAP_FAILED)
		return 99;
	(void)setvbuf(tap, NULL, _IOLBF, 0);
	proc_enter("ace-refuse");
	(void)signal(SIGSEGV, crashed);
	(void)signal(SIGABRT, crashed);
	fd_out = memfd_create("out", MFD_CLOEXEC);
	fd_err = memfd_create("err", MFD_CLOEXEC);
	proc_must(fd_out >= 0 && fd_err >= 0, "files");
	some(cases, sizeof(cases) / sizeof(cases[0]), name);
	some(refuse_more, sizeof(refuse_more) / sizeof(refuse_more[0]), name);
	(void)fprintf(tap, "1..%d\n", tests);
	(void)fclose(tap);
	proc_end();
	return bad;
}
