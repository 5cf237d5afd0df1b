#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sandbox.h"
#include "base/scan.h"
#include "base/temp.h"

/* Sanitizers and coverage counters open files and trace their process at the end: such
 * a build has no sandbox and says so. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(ACE_NO_SANDBOX)
#define SANDBOX_NONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define SANDBOX_NONE 1
#endif
#endif

#if defined(__linux__) && !defined(SANDBOX_NONE)
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Landlock's interface, which the headers of many systems lack: the numbers of its calls
 * (not those of Alpha, MIPS and Itanium), and its rights, each with its version. */
enum { LL_CREATE = 444, LL_ADD, LL_RESTRICT };
enum { LL_PATH_BENEATH = 1, LL_GET_VERSION = 1 };
enum {
	LL_EXECUTE = 1 << 0, LL_WRITE = 1 << 1, LL_READ = 1 << 2,
	LL_READ_DIR = 1 << 3, LL_REMOVE_DIR = 1 << 4, LL_REMOVE = 1 << 5,
	LL_MAKE_DIR = 1 << 7, LL_MAKE_REG = 1 << 8, LL_MAKE_SYM = 1 << 12,
	LL_ALL_1 = (1 << 13) - 1,
	LL_REFER = 1 << 13,	/* version 2: renaming between directories */
	LL_TRUNCATE = 1 << 14,	/* version 3 */
	LL_IOCTL_DEV = 1 << 15,	/* version 5 */
	LL_OF_FILE = LL_EXECUTE | LL_WRITE | LL_READ | LL_TRUNCATE | LL_IOCTL_DEV
};
enum { LL_TCP = 3, LL_SCOPE = 3 };	/* bind and connect, since version 4; abstract
					 * sockets and signals, since version 6 */
struct ll_rules {
	uint64_t fs, net, scope;
};
struct ll_path {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

void
sandbox_begin(struct sandbox *s)
{
	struct ll_rules r;
	long v = syscall(LL_CREATE, NULL, (size_t)0, LL_GET_VERSION);

	*s = (struct sandbox){ .fd = -1 };
	/* some kernels report a version whose rights they refuse */
	for (; v > 0; v--) {
		memset(&r, 0, sizeof(r));
		r.fs = LL_ALL_1 | (v >= 2 ? LL_REFER : 0) |
		    (v >= 3 ? LL_TRUNCATE : 0) | (v >= 5 ? LL_IOCTL_DEV : 0);
		r.net = v >= 4 ? LL_TCP : 0;
		r.scope = v >= 6 ? LL_SCOPE : 0;
		s->fd = (int)syscall(LL_CREATE, &r, v >= 6 ? sizeof(r) :
		    v >= 4 ? offsetof(struct ll_rules, scope) :
		    offsetof(struct ll_rules, net), 0);
		if (s->fd >= 0 || errno != EINVAL)
			break;
	}
	s->level = s->fd >= 0 ? (int)v : 0;
	s->handled = s->fd >= 0 ? r.fs : 0;
}

static int
sandbox_rule(struct sandbox *s, const char *path, uint64_t rights, struct err *e)
{
	struct ll_path rule;
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)	/* an absent file needs no rule */
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ?
		    err_sys(e, "'%s'", path) : 0;
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rights &= LL_OF_FILE;
	} else if (rights == LL_READ) {	/* sandbox_link's link was changed */
		(void)close(fd);
		return 0;
	}
	rule.rights = rights & s->handled;
	rule.fd = fd;
	/* pipes and other objects outside file systems are always allowed; the kernel
	 * refuses a rule for them */
	(void)syscall(LL_ADD, s->fd, LL_PATH_BENEATH, &rule, 0);
	(void)close(fd);
	return 0;
}

static int
sandbox_parent(struct sandbox *s, const char *path, uint64_t rights, struct err *e)
{
	char dir[PATH_MAX];

	errno = ENAMETOOLONG;
	return fd_folder(path, dir) ? sandbox_rule(s, dir, rights, e) :
	    err_sys(e, "'%s'", path);
}

enum {
	SANDBOX_LOOK = LL_READ | LL_READ_DIR,
	SANDBOX_MAKE = LL_READ_DIR | LL_MAKE_REG | LL_WRITE | LL_READ |
	    LL_REMOVE | LL_TRUNCATE,
	SANDBOX_OWN = SANDBOX_MAKE | LL_MAKE_DIR | LL_REMOVE_DIR | LL_REFER
};

static int
sandbox_write(struct sandbox *s, const char *path, struct err *e)
{
	char target[TEMP_PATH];
	struct stat st;
	int r = temp_target(path, target, e);

	if (r < 0)
		return r;
	if (stat(target, &st) == 0 && S_ISREG(st.st_mode) &&
	    temp_differs(target, &st))
		s->stages |= SANDBOX_OWNERS;
	if (s->level > 0 && (r = sandbox_rule(s, target,
	    LL_WRITE | LL_TRUNCATE, e)) == 0)
		r = sandbox_parent(s, target, SANDBOX_MAKE & ~LL_READ, e);
	return r;
}

static int
sandbox_dir(struct sandbox *s, const char *path, struct err *e)
{
	/* ace-patch, which has SANDBOX_OWNERS, hard-links a model's symbolic links */
	const uint64_t own = SANDBOX_OWN |
	    ((s->stages & SANDBOX_OWNERS) != 0 ? LL_MAKE_SYM : 0);

	if (s->level < 2) {
		/* version 1 forbids renaming between directories, which a spool needs:
		 * use no rules */
		(void)close(s->fd);
		s->fd = -1;
		s->level = 0;
		return 0;
	}
	if (access(path, F_OK) < 0)
		return sandbox_parent(s, path, own, e);
	if (sandbox_rule(s, path, own, e) < 0)
		return -ERR_SYS;
	/* the parent directory is opened to sync it */
	return sandbox_parent(s, path, LL_READ_DIR, e);
}

/* Allow the target of a link in a directory to read, such as Hugging Face's cache has. */
static int
sandbox_link(void *arg, const char *path, const char *name, struct err *e)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) == 0 &&
	    S_ISREG(st.st_mode) ? sandbox_rule(arg, path, LL_READ, e) : 0;
}

int
sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e)
{
	struct stat st;
	int r;

	if (path == NULL || path[0] == '\0' || strcmp(path, "-") == 0)
		return 0;
	if (how == SANDBOX_WRITE || how == SANDBOX_DIR)
		s->stages |= SANDBOX_MAKES;
	if (how == SANDBOX_WRITE)
		return sandbox_write(s, path, e);
	if (s->level == 0)
		return 0;
	if (how == SANDBOX_DIR)
		return sandbox_dir(s, path, e);
	r = sandbox_rule(s, path, how == SANDBOX_TEMP ? SANDBOX_MAKE : SANDBOX_LOOK, e);
	return r == 0 && how == SANDBOX_LINKS && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ?
	    scan(path, 1, sandbox_link, s, e) : r;
}

#if __has_include(<linux/seccomp.h>) && (defined(__x86_64__) || \
    defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>

#ifdef __x86_64__
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#else
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

/* System calls of our programs after the command line is parsed, with glibc and musl: one
 * row per call, or per allowed value of an argument. A row allows its call if (argument &
 * mask) is value; mask 0 allows all values. SELF stands for the id of this process, CHILD
 * for the id of the process for which it waits. */
#define SELF 0xfffffffe
#define CHILD 0xfffffffd
struct sandbox_call {
	int nr;
	unsigned stage;		/* stages that allow the call, as bits; 0: always */
	unsigned arg;		/* index of the argument */
	uint32_t mask, value;
};
#define SANDBOX_WORLDS (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | \
    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define ANY(call) { SYS_##call, 0, 0, 0, 0 }
#define MAKES(call) { SYS_##call, SANDBOX_MAKES, 0, 0, 0 }
#define ONLY(call, arg, value) { SYS_##call, 0, arg, 0xffffffff, value }

static const struct sandbox_call sandbox_allowed[] = {
	/* data */
	ANY(read), ANY(write), ANY(pread64), ANY(pwrite64), ANY(readv),
	ANY(writev), ANY(lseek), ANY(close), ANY(ftruncate), ANY(flock),
	ANY(fsync), ANY(fdatasync), ANY(sync_file_range), ANY(syncfs),
	ANY(tee), ANY(splice), ANY(pipe2), ANY(dup), ANY(dup3), ANY(ppoll),
	/* names: Landlock decides what may be opened and removed */
	{ SYS_openat, 0, 2, O_TRUNC, 0 }, ANY(newfstatat), ANY(fstat),
	ANY(statx), ANY(faccessat), ANY(readlinkat), ANY(getdents64),
	ANY(getxattr),
	ANY(unlinkat), ANY(mkdirat),
	MAKES(linkat), MAKES(renameat2),
#ifdef SYS_renameat
	MAKES(renameat),
#endif
#ifdef SYS_faccessat2
	ANY(faccessat2),
#endif
#ifdef SYS_open		/* calls that newer architectures do not have */
	{ SYS_open, 0, 1, O_TRUNC, 0 }, ANY(stat), ANY(lstat), ANY(access),
	ANY(readlink), ANY(getdents), ANY(unlink), ANY(poll), ANY(pipe),
	ANY(dup2), ANY(time), ANY(mkdir),
	MAKES(rmdir), MAKES(link), MAKES(rename),
#endif
	ONLY(fcntl, 1, F_GETFD), ONLY(fcntl, 1, F_SETFD),
	ONLY(fcntl, 1, F_GETFL),
	ONLY(fcntl, 1, F_DUPFD), ONLY(fcntl, 1, F_DUPFD_CLOEXEC),
	ONLY(fcntl, 1, F_SETPIPE_SZ), ONLY(fcntl, 1, F_GETPIPE_SZ),
	ONLY(fcntl, 1, F_OFD_SETLK), ONLY(fcntl, 1, F_OFD_GETLK),
	/* for isatty and a terminal's width; not TIOCSTI, which adds input to a terminal */
	ONLY(ioctl, 1, TCGETS), ONLY(ioctl, 1, TIOCGWINSZ),
	/* cloning a file's blocks */
	{ SYS_ioctl, SANDBOX_MAKES, 1, 0xffffffff, FICLONE },
	{ SYS_fchown, SANDBOX_OWNERS, 0, 0, 0 },
	{ SYS_fchmod, SANDBOX_OWNERS, 0, 0, 0 },
	{ SYS_fsetxattr, SANDBOX_OWNERS, 0, 0, 0 },
	/* memory and threads */
	ANY(brk), ANY(mmap), ANY(munmap), ANY(mremap), ANY(mprotect),
	ANY(madvise), ANY(futex), ANY(set_robust_list), ANY(gettid),
	ANY(sched_yield), ANY(sched_getaffinity), ANY(getcpu), ANY(exit),
	ANY(exit_group), ANY(membarrier),
	/* threads only, without new namespaces */
	{ SYS_clone, 0, 0, CLONE_THREAD | SANDBOX_WORLDS, CLONE_THREAD },
#ifdef SYS_rseq
	ANY(rseq),
#endif
	/* signals, sent only to itself */
	ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn),
	ANY(sigaltstack), ANY(restart_syscall), ANY(setitimer),
	ONLY(tgkill, 0, SELF), ONLY(kill, 0, SELF),
	/* time, random bytes, the process and its resources */
	ANY(clock_gettime), ANY(clock_getres), ANY(clock_nanosleep),
	ANY(nanosleep), ANY(gettimeofday), ANY(getrandom), ANY(getpid),
	ANY(getppid), ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid),
	ANY(getrlimit), ANY(getrusage), ANY(sysinfo), ANY(uname), ANY(umask),
	ONLY(prlimit64, 0, 0), ONLY(prlimit64, 0, SELF),
	/* another process: libc's fork sets no other flags */
	{ SYS_clone, SANDBOX_STARTS, 0, ~(uint32_t)(CLONE_CHILD_SETTID |
	    CLONE_CHILD_CLEARTID), SIGCHLD },
	{ SYS_prctl, SANDBOX_STARTS, 0, 0xffffffff, PR_SET_PDEATHSIG },
	{ SYS_prctl, SANDBOX_STARTS, 0, 0xffffffff, PR_SET_SECCOMP },
	{ SYS_kill, SANDBOX_STARTS, 1, 0xffffffff, SIGTERM },
	{ SYS_wait4, SANDBOX_STARTS | SANDBOX_WAITS, 0, 0, 0 },
	{ SYS_kill, SANDBOX_WAITS, 0, 0xffffffff, CHILD },
#ifdef SYS_fork
	{ SYS_fork, SANDBOX_STARTS, 0, 0, 0 },
#endif
};

/* These calls are refused for descriptor 2, also those that duplicate it, so that
 * messages on standard error cannot be changed afterwards. */
static const struct sandbox_call sandbox_said[] = {
	ONLY(ftruncate, 0, STDERR_FILENO), ONLY(lseek, 0, STDERR_FILENO),
	ONLY(pwrite64, 0, STDERR_FILENO), ONLY(dup, 0, STDERR_FILENO),
	ONLY(dup3, 0, STDERR_FILENO), ONLY(fcntl, 0, STDERR_FILENO),
#ifdef SYS_dup2
	ONLY(dup2, 0, STDERR_FILENO),
#endif
};

enum {
	SANDBOX_SAID = sizeof(sandbox_said) / sizeof(sandbox_said[0]),
	SANDBOX_ROWS = sizeof(sandbox_allowed) / sizeof(sandbox_allowed[0]),
	SANDBOX_LINES = 6	/* most instructions per row */
};

static size_t
sandbox_line(struct sock_filter *f, size_t n, unsigned code, uint32_t k,
    unsigned yes, unsigned no)
{
	f[n] = (struct sock_filter){ (unsigned short)code, (unsigned char)yes,
	    (unsigned char)no, k };
	return n + 1;
}

#define SANDBOX_LOAD (BPF_LD | BPF_W | BPF_ABS)
#define SANDBOX_EQUAL (BPF_JMP | BPF_JEQ | BPF_K)
#define SANDBOX_RETURN (BPF_RET | BPF_K)
#define SANDBOX_REFUSE (SECCOMP_RET_ERRNO | EPERM)

/* Write row c to f from index n on, as instructions that return `then' for its calls (with
 * `value' as the argument, if it has a mask), and return the next index. The accumulator has the
 * call's number before and after them. Check only an argument's lower 32 bits: the kernel uses
 * no more of these arguments. */
static size_t
sandbox_row(struct sock_filter *f, size_t n, const struct sandbox_call *c,
    uint32_t value, uint32_t then)
{
	const uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) +
	    c->arg * sizeof(uint64_t));

	n = sandbox_line(f, n, SANDBOX_EQUAL, (uint32_t)c->nr, 0, c->mask == 0 ? 1 : 5);
	if (c->mask == 0)
		return sandbox_line(f, n, SANDBOX_RETURN, then, 0, 0);
	n = sandbox_line(f, n, SANDBOX_LOAD, at, 0, 0);
	n = sandbox_line(f, n, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
	n = sandbox_line(f, n, SANDBOX_EQUAL, value, 0, 1);
	n = sandbox_line(f, n, SANDBOX_RETURN, then, 0, 0);
	return sandbox_line(f, n, SANDBOX_LOAD, offsetof(struct seccomp_data, nr), 0, 0);
}

/* From now on allow only the system calls of these stages; child: value of CHILD. Return 1, or
 * 0 on failure. */
static int
sandbox_calls(unsigned stages, int child)
{
	struct sock_filter f[(SANDBOX_ROWS + SANDBOX_SAID) * SANDBOX_LINES + 8];
	const struct sandbox_call *c;
	struct sock_fprog p;
	uint32_t value;
	size_t n = 0, i;

	n = sandbox_line(f, n, SANDBOX_LOAD, offsetof(struct seccomp_data, arch), 0, 0);
	n = sandbox_line(f, n, SANDBOX_EQUAL, SANDBOX_ARCH, 1, 0);
	n = sandbox_line(f, n, SANDBOX_RETURN, SANDBOX_REFUSE, 0, 0);
	n = sandbox_line(f, n, SANDBOX_LOAD, offsetof(struct seccomp_data, nr), 0, 0);
	for (i = 0; i < SANDBOX_SAID; i++)
		n = sandbox_row(f, n, &sandbox_said[i], STDERR_FILENO, SANDBOX_REFUSE);
	for (c = sandbox_allowed; c < sandbox_allowed + SANDBOX_ROWS; c++) {
		if (c->stage != 0 && (c->stage & stages) == 0)
			continue;
		value = c->value == SELF ? (uint32_t)getpid() :
		    c->value == CHILD ? (uint32_t)child : c->value;
		n = sandbox_row(f, n, c, value, SECCOMP_RET_ALLOW);
	}
	/* no filter can read the flags of clone3; without it C libraries use clone(2) */
	n = sandbox_line(f, n, SANDBOX_EQUAL, SYS_clone3, 0, 1);
	n = sandbox_line(f, n, SANDBOX_RETURN, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
	n = sandbox_line(f, n, SANDBOX_RETURN, SANDBOX_REFUSE, 0, 0);
	p.len = (unsigned short)n;
	p.filter = f;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0;
}
#else
static int
sandbox_calls(unsigned stages, int child)
{
	return 0;
}
#endif

int
sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e)
{
	int quiet = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	int files = quiet && s->level > 0 && syscall(LL_RESTRICT, s->fd, 0) == 0;
	int calls = quiet && sandbox_calls(s->stages, 0);

	if (s->fd >= 0)
		(void)close(s->fd);
	s->fd = -1;
	s->narrows = calls;
	s->partial = !(files && calls);
	if (files && calls)
		(void)snprintf(says, n, "Landlock %d and seccomp", s->level);
	else
		(void)snprintf(says, n, "%s", files ? "incomplete, "
		    "seccomp cannot be used" : calls ? "incomplete, Landlock cannot be "
		    "used" : "none, Landlock and seccomp cannot be used");
	if (want == SANDBOX_REQUIRE && !(files && calls))
		return err_set(e, ERR_SYS, "--sandbox require cannot be met (sandbox: %s): "
		    "use --sandbox auto to run nevertheless", says);
	return 0;
}

void
sandbox_narrow(const struct sandbox *s, pid_t child)
{
	if (s->narrows)
		(void)sandbox_calls((s->stages & ~(unsigned)SANDBOX_STARTS) |
		    (child != 0 ? SANDBOX_WAITS : 0), child);
}

#else	/* another system, or an instrumented build */

void
sandbox_begin(struct sandbox *s)
{
	*s = (struct sandbox){ .fd = -1 };
}

int
sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e)
{
	return 0;
}

int
sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e)
{
	(void)snprintf(says, n, "none, this build has no sandbox");
	return want != SANDBOX_REQUIRE ? 0 : err_set(e, ERR_SYS, "--sandbox require: "
	    "this build has no sandbox: use --sandbox auto to run without one");
}

void
sandbox_narrow(const struct sandbox *s, pid_t child)
{
}
#endif
