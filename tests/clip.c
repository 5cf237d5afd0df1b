/*
 * A library for LD_PRELOAD that changes the results of a program's system calls.
 *
 * ACE_ONLY=NAME  only in the program of this name, not in others that also have the preload;
 *                ACE_CLIP, ACE_NO*, ACE_SPLICE and ACE_MEANWHILE act in all
 * ACE_CLIP=N     each read and write of descriptors 0 and 1 moves at most N bytes
 *                (0: 1 to 7 in turn), as slow pipes and sockets do
 * ACE_KILL=N     end the process as kill -9 does at the start of the N-th call of
 *                CLIP_CHANGES (write, open, close, fsync, rename, ...)
 * ACE_STOP=N     stop the process as SIGSTOP does at the start of the N-th call of
 *                CLIP_CHANGES or CLIP_STAT; N `exchange': at the exchange of two names
 * ACE_NOLINK=1   the file system has no hard links
 * ACE_NOFILTER=1 the kernel has no seccomp
 * ACE_SPLICE=W   W a number: tee and splice fail from the W-th call on; W eintr or
 *                eagain: every second call fails; W kill: the first call ends the process
 * ACE_FASTER=N   the monotonic clock runs N times as fast, and a poll waits 1/N of its timeout
 * ACE_FASTER=0   the monotonic clock stands still, but a poll for which nothing is ready
 *                returns immediately and advances the clock by its timeout
 * ACE_LATER=FILE the monotonic clock stands still until FILE is not empty; then it and the
 *                time of day are 10^6 seconds later
 * ACE_MEANWHILE=FILE  create FILE, as another process might, when a folder is opened
 * ACE_READS=FILE append a line for each read and fsync: read N PATH, fsync 0 PATH
 * CLIP_PAGE=FILE a struct clip that says which call fails or kills
 * CLIP_LOG=FILE  record all changes in order (struct clip_rec)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "clip.h"

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);

enum { LOOK_MS = 20 };
#define LATER_NS 1000000000000000LL

static struct clip *page;
static long alone, stop;	/* ACE_KILL, ACE_STOP: calls left; -1: at an exchange */
static long faster = -1;	/* ACE_FASTER; -1: not set */
static struct timespec since;	/* the monotonic clock when the program started */
static long long waited;	/* if ACE_FASTER is 0: ms of the polls with nothing ready */
static int log_fd = -1, reads_fd = -1, later_fd = -1;

__attribute__((constructor)) static void
begin(void)
{
	const char *s = getenv("ACE_ONLY");
	int fd;

	if (s != NULL && strcmp(s, program_invocation_short_name) != 0)
		return;
	s = getenv("CLIP_PAGE");
	if (s != NULL && (fd = (int)syscall(SYS_openat, AT_FDCWD, s,
	    O_RDWR | O_CLOEXEC, 0)) >= 0) {
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			page = NULL;
		(void)syscall(SYS_close, fd);
	}
	if ((s = getenv("CLIP_LOG")) != NULL)
		log_fd = (int)syscall(SYS_openat, AT_FDCWD, s,
		    O_WRONLY | O_APPEND | O_CLOEXEC, 0);
	if ((s = getenv("ACE_READS")) != NULL)
		reads_fd = (int)syscall(SYS_openat, AT_FDCWD, s,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if ((s = getenv("ACE_KILL")) != NULL)
		alone = atol(s);
	if ((s = getenv("ACE_STOP")) != NULL)
		stop = strcmp(s, "exchange") == 0 ? -1 : atol(s);
	if ((s = getenv("ACE_FASTER")) != NULL)
		faster = atol(s);
	if ((s = getenv("ACE_LATER")) != NULL)
		later_fd = (int)syscall(SYS_openat, AT_FDCWD, s,
		    O_RDONLY | O_CLOEXEC, 0);
	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &since);
}

/* End this process as kill -9 does or, if a sandbox refuses that, exit with status 137. */
static void
die(void)
{
	(void)kill(getpid(), SIGKILL);
	(void)syscall(SYS_exit_group, 128 + SIGKILL);
}

/* Kill or stop the process if due. Return 1, with errno set, if this call must fail. */
static int
hit(enum clip_call call, const char *what)
{
	int64_t left;

	if (alone > 0 && (CLIP_CHANGES >> call & 1) != 0 && --alone == 0)
		die();
	stop = stop < 0 && strcmp(what, "exchange") == 0 ? 1 : stop;
	if (stop > 0 && ((CLIP_CHANGES | 1u << CLIP_STAT) >> call & 1) != 0 &&
	    --stop == 0)
		(void)kill(getpid(), SIGSTOP);
	if (page == NULL || (page->mask >> call & 1) == 0)
		return 0;
	left = __atomic_sub_fetch(&page->left, 1, __ATOMIC_SEQ_CST);
	if (page->action == CLIP_COUNT || left > 0 ||
	    (left < 0 && page->action != CLIP_FAIL_ON))
		return 0;
	(void)snprintf(page->what, sizeof(page->what), "%s", what);
	(void)__atomic_add_fetch(&page->fired, 1, __ATOMIC_SEQ_CST);
	if (page->action == CLIP_KILL)
		die();
	errno = page->error;
	return 1;
}

/* ---- the log ---- */

static void
record(uint32_t op, uint64_t ino, uint64_t at, const char *path,
    const char *other, const void *data, size_t n)
{
	struct clip_rec r = { op, (uint32_t)strlen(path),
	    (uint32_t)strlen(other), (uint32_t)n, ino, at };
	struct iovec v[4] = {
		{ &r, sizeof(r) }, { (void *)path, r.npath },
		{ (void *)other, r.nother }, { (void *)data, n }
	};

	(void)!syscall(SYS_writev, log_fd, v, 4);
}

static void
path_of(int fd, char out[PATH_MAX])
{
	char name[64];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
}

static void
record_fd(uint32_t op, int fd, uint64_t at, const void *data, size_t n)
{
	int saved = errno;
	char path[PATH_MAX];
	struct stat st;

	if (log_fd >= 0 && fstat(fd, &st) == 0) {
		path_of(fd, path);
		/* record every write to standard output, but other writes only
		 * to regular files */
		if (op == CLIP_OP_WRITE && (fd == 1 || !S_ISREG(st.st_mode)))
			op = CLIP_OP_OUT;
		if (op == CLIP_OP_SYNC && S_ISDIR(st.st_mode))
			op = CLIP_OP_SYNCDIR;
		if (op != CLIP_OP_OUT || fd == 1)
			record(op, (uint64_t)st.st_ino, at, path, "", data, n);
	}
	errno = saved;
}

static void
record_names(uint32_t op, const char *path, const char *other)
{
	int saved = errno;

	if (log_fd >= 0)
		record(op, 0, 0, path, other, "", 0);
	errno = saved;
}

/* ---- bytes ---- */

static size_t
clip(int fd, size_t n)
{
	static size_t turn;
	const char *s = getenv("ACE_CLIP");
	size_t max;

	if (s == NULL || fd > 1)
		return n;
	max = atol(s) > 0 ? (size_t)atol(s) : 1 + turn++ % 7;
	return n > max ? max : n;
}

/* Append the line `what n PATH' to the file of ACE_READS, if it is set. */
static void
told(const char *what, int fd, long n)
{
	char path[PATH_MAX], line[PATH_MAX + 64];
	int saved = errno;

	if (reads_fd >= 0) {
		path_of(fd, path);
		(void)snprintf(line, sizeof(line), "%s %ld %s\n", what, n,
		    path);
		(void)!syscall(SYS_write, reads_fd, line, strlen(line));
	}
	errno = saved;
}

ssize_t
read(int fd, void *p, size_t n)
{
	ssize_t k;

	if (hit(CLIP_READ, "read"))
		return -1;
	k = syscall(SYS_read, fd, p, clip(fd, n));
	told("read", fd, k);
	return k;
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	ssize_t k;

	if (hit(CLIP_READ, "pread"))
		return -1;
	k = syscall(SYS_pread64, fd, p, clip(fd, n), at);
	told("read", fd, k);
	return k;
}

ssize_t
write(int fd, const void *p, size_t n)
{
	off_t at = 0;
	ssize_t k;

	if (hit(CLIP_WRITE, "write"))
		return -1;
	if (log_fd >= 0)
		at = syscall(SYS_lseek, fd, 0, SEEK_CUR);
	k = syscall(SYS_write, fd, p, clip(fd, n));
	if (k > 0)
		record_fd(CLIP_OP_WRITE, fd, at > 0 ? (uint64_t)at : 0, p,
		    (size_t)k);
	return k;
}

/* This call counts as a write for ACE_KILL and CLIP_KILL; no failure is injected. */
ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	ssize_t k;

	if (alone > 0 || (page != NULL && page->action == CLIP_KILL))
		(void)hit(CLIP_WRITE, "pwrite");
	k = syscall(SYS_pwrite64, fd, p, n, at);
	if (k > 0)
		record_fd(CLIP_OP_WRITE, fd, (uint64_t)at, p, (size_t)k);
	return k;
}

/* Return 1, with errno set, when this tee or splice must fail. */
static int
unspliced(const char *what)
{
	static long turn;
	const char *s = getenv("ACE_SPLICE");

	if (hit(CLIP_OTHER, what))
		return 1;
	if (s == NULL)
		return 0;
	turn++;
	if (strcmp(s, "kill") == 0)
		die();
	errno = strcmp(s, "eintr") == 0 ? EINTR :
	    strcmp(s, "eagain") == 0 ? EAGAIN : EINVAL;
	return errno == EINVAL ? turn >= atol(s) : turn % 2 == 0;
}

ssize_t
tee(int from, int to, size_t n, unsigned flags)
{
	return unspliced("tee") ? -1 :
	    syscall(SYS_tee, from, to, clip(0, n), flags);
}

ssize_t
splice(int from, off64_t *at, int to, off64_t *there, size_t n, unsigned flags)
{
	return unspliced("splice") ? -1 :
	    syscall(SYS_splice, from, at, to, there, clip(0, n), flags);
}

off_t
lseek(int fd, off_t at, int whence)
{
	return hit(CLIP_SEEK, "lseek") ? -1 :
	    (off_t)syscall(SYS_lseek, fd, at, whence);
}

int
poll(struct pollfd *p, nfds_t n, int ms)
{
	int r, real = ms;

	if (faster > 0 && ms > 0)
		real = (int)((ms + faster - 1) / faster);
	else if (faster == 0 && ms > 0)
		real = 0;
	else if (later_fd >= 0 && ms > LOOK_MS)
		real = LOOK_MS;
	r = hit(CLIP_OTHER, "poll") ? -1 : (int)syscall(SYS_poll, p, n, real);
	if (faster == 0 && ms > 0 && r == 0)
		waited += ms;
	return r;
}

int
prctl(int op, ...)
{
	unsigned long arg[4];
	va_list ap;
	int i;

	va_start(ap, op);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (op == PR_SET_SECCOMP && getenv("ACE_NOFILTER") != NULL) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_prctl, op, arg[0], arg[1], arg[2], arg[3]);
}

static int
filled(int fd)
{
	struct stat st;

	return fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_size > 0;
}

int
clock_gettime(clockid_t which, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, which, t);
	long long ns;

	if (r == 0 && which == CLOCK_REALTIME)
		t->tv_sec += LATER_NS / 1000000000 * filled(later_fd);
	if (r < 0 || which != CLOCK_MONOTONIC || (faster < 0 && later_fd < 0))
		return r;
	ns = (t->tv_sec - since.tv_sec) * 1000000000LL + t->tv_nsec - since.tv_nsec;
	ns = faster > 0 ? faster * ns : waited * 1000000;
	if (filled(later_fd))
		ns = LATER_NS;
	ns += since.tv_nsec;
	t->tv_sec = since.tv_sec + (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

/* ---- files ---- */

static int
opens(int dir, const char *path, int flags, va_list ap)
{
	const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
	const char *s;
	int fd;

	if (hit(CLIP_OPEN, "open"))
		return -1;
	fd = (int)syscall(SYS_openat, dir, path, flags, mode);
	if (fd >= 0 && (flags & O_DIRECTORY) != 0 && (flags & O_PATH) == 0 &&
	    (s = getenv("ACE_MEANWHILE")) != NULL)
		(void)syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, s,
		    O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	/* the log must also name a file that existed before */
	if (fd >= 0 && (flags & (O_CREAT | O_RDWR)) != 0)
		record_fd(CLIP_OP_CREATE, fd, 0, "", 0);
	return fd;
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	int fd;

	va_start(ap, flags);
	fd = opens(AT_FDCWD, path, flags, ap);
	va_end(ap);
	return fd;
}

int
openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	int fd;

	va_start(ap, flags);
	fd = opens(dir, path, flags, ap);
	va_end(ap);
	return fd;
}

int
mkostemp(char *path, int flags)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz";
	static unsigned turn;
	size_t n = strlen(path), i;
	unsigned v;
	int fd;

	if (hit(CLIP_OPEN, "mkostemp"))
		return -1;
	do {
		v = (unsigned)getpid() * 97u + turn++;
		for (i = 0; i < 6; i++, v /= 26)
			path[n - 6 + i] = set[v % 26];
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_RDWR |
		    O_CREAT | O_EXCL, 0600);
	} while (fd < 0 && errno == EEXIST);
	if (fd >= 0)
		record_fd(CLIP_OP_CREATE, fd, 0, "", 0);
	return fd;
}

int
close(int fd)
{
	int r;

	if (!hit(CLIP_CLOSE, "close"))
		return (int)syscall(SYS_close, fd);
	r = errno;
	(void)syscall(SYS_close, fd);	/* Linux closes it in any case */
	errno = r;
	return -1;
}

int
fsync(int fd)
{
	int r;

	if (hit(CLIP_FSYNC, "fsync"))
		return -1;
	told("fsync", fd, 0);
	if ((r = (int)syscall(SYS_fsync, fd)) == 0)
		record_fd(CLIP_OP_SYNC, fd, 0, "", 0);
	return r;
}

int
fchmod(int fd, mode_t mode)
{
	return hit(CLIP_WRITE, "fchmod") ? -1 :
	    (int)syscall(SYS_fchmod, fd, mode);
}

int
ftruncate(int fd, off_t n)
{
	int r;

	if (hit(CLIP_WRITE, "ftruncate"))
		return -1;
	if ((r = (int)syscall(SYS_ftruncate, fd, n)) == 0)
		record_fd(CLIP_OP_CUT, fd, (uint64_t)n, "", 0);
	return r;
}

int
flock(int fd, int how)
{
	return hit(CLIP_FLOCK, "flock") ? -1 :
	    (int)syscall(SYS_flock, fd, how);
}

int
fstat(int fd, struct stat *st)
{
	return hit(CLIP_STAT, "fstat") ? -1 :
	    (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

int
fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return hit(CLIP_STAT, "stat") ? -1 :
	    (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int
stat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, path, st, 0);
}

int
faccessat(int dir, const char *path, int how, int flags)
{
	(void)flags;
	return hit(CLIP_STAT, "access") ? -1 :
	    (int)syscall(SYS_faccessat, dir, path, how);
}

int
access(const char *path, int how)
{
	return faccessat(AT_FDCWD, path, how, 0);
}

/* ---- names ---- */

/* Return the path of a name relative to descriptor dir: `path' itself or, in out, with the
 * folder's path before it. */
static const char *
name_in(int dir, const char *path, char out[2 * PATH_MAX])
{
	char folder[PATH_MAX];
	int saved = errno;

	if (dir == AT_FDCWD || path[0] == '/')
		return path;
	path_of(dir, folder);
	(void)snprintf(out, 2 * (size_t)PATH_MAX, "%s/%s", folder, path);
	errno = saved;
	return out;
}

static int
renames(int a, const char *from, int b, const char *to, unsigned flags)
{
	char x[2 * PATH_MAX], y[2 * PATH_MAX];
	int r;

	if (hit(CLIP_RENAME, flags != 0 ? "exchange" : "rename"))
		return -1;
	r = (int)syscall(SYS_renameat2, a, from, b, to, flags);
	if (r == 0 && log_fd >= 0)
		record_names(flags != 0 ? CLIP_OP_SWAP : CLIP_OP_RENAME,
		    name_in(a, from, x), name_in(b, to, y));
	return r;
}

int
rename(const char *from, const char *to)
{
	return renames(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
renameat(int a, const char *from, int b, const char *to)
{
	return renames(a, from, b, to, 0);
}

int
renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	return renames(a, from, b, to, flags);
}

int
linkat(int a, const char *from, int b, const char *to, int flags)
{
	char x[2 * PATH_MAX], y[2 * PATH_MAX];
	int r;

	if (hit(CLIP_LINK, "link"))
		return -1;
	if (getenv("ACE_NOLINK") != NULL) {
		errno = EPERM;
		return -1;
	}
	r = (int)syscall(SYS_linkat, a, from, b, to, flags);
	if (r == 0 && log_fd >= 0)
		record_names(CLIP_OP_LINK, name_in(a, from, x),
		    name_in(b, to, y));
	return r;
}

int
link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
unlinkat(int dir, const char *path, int flags)
{
	char x[2 * PATH_MAX];
	int r;

	if (hit(CLIP_UNLINK, "unlink"))
		return -1;
	r = (int)syscall(SYS_unlinkat, dir, path, flags);
	if (r == 0 && log_fd >= 0)
		record_names(CLIP_OP_UNLINK, name_in(dir, path, x), "");
	return r;
}

int
unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int
rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int
mkdirat(int dir, const char *path, mode_t mode)
{
	char x[2 * PATH_MAX];
	int r;

	if (hit(CLIP_MKDIR, "mkdir"))
		return -1;
	r = (int)syscall(SYS_mkdirat, dir, path, mode);
	if (r == 0 && log_fd >= 0)
		record_names(CLIP_OP_MKDIR, name_in(dir, path, x), "");
	return r;
}

int
mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

/* ---- memory; a sanitizer's own allocator comes first and is not replaced ---- */

void *
malloc(size_t n)
{
	return hit(CLIP_MALLOC, "malloc") ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t m)
{
	return hit(CLIP_MALLOC, "calloc") ? NULL : __libc_calloc(n, m);
}

void *
realloc(void *p, size_t n)
{
	return hit(CLIP_MALLOC, "realloc") ? NULL : __libc_realloc(p, n);
}
