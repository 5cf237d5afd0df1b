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
#include "base/sandbox.h"
#include "base/temp.h"

/* The sanitizers and the counters of coverage open files and trace their own
 * process at the end: such a build has no sandbox and says so. */
#if defined(__SANITIZE_ADDRESS__) || defined(ACE_NO_SANDBOX)
#define SANDBOX_NONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANDBOX_NONE 1
#endif
#endif

#if defined(__linux__) && !defined(SANDBOX_NONE)
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * Landlock's interface, which is newer than the headers of many systems: the
 * numbers of its calls, which are the same on all machines, and of the rights,
 * by the version that brought them.
 */
enum { LL_CREATE = 444, LL_ADD, LL_RESTRICT };
enum { LL_PATH_BENEATH = 1, LL_GET_VERSION = 1 };
enum {
	LL_EXECUTE = 1 << 0, LL_WRITE = 1 << 1, LL_READ = 1 << 2,
	LL_READ_DIR = 1 << 3, LL_REMOVE_DIR = 1 << 4, LL_REMOVE = 1 << 5,
	LL_MAKE_DIR = 1 << 7, LL_MAKE_REG = 1 << 8,
	LL_ALL_1 = (1 << 13) - 1,
	LL_REFER = 1 << 13,	/* 2: renaming between directories */
	LL_TRUNCATE = 1 << 14,	/* 3 */
	LL_IOCTL_DEV = 1 << 15,	/* 5 */
	LL_OF_FILE = LL_EXECUTE | LL_WRITE | LL_READ | LL_TRUNCATE |
	    LL_IOCTL_DEV
};
enum { LL_TCP = 3, LL_SCOPE = 3 };	/* 4: bind and connect; 6: abstract
					 * sockets and signals */
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

	s->fd = -1;
	/* some kernels tell of a version whose rights they refuse */
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

static void
sandbox_rule(struct sandbox *s, const char *path, uint64_t rights)
{
	struct ll_path rule;
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rights &= LL_OF_FILE;
	rule.rights = rights & s->handled;
	rule.fd = fd;
	/* what belongs to no file system, such as a pipe, is always allowed:
	 * the kernel refuses a rule for it */
	(void)syscall(LL_ADD, s->fd, LL_PATH_BENEATH, &rule, 0);
	(void)close(fd);
}

/* The directory in which path stands. */
static int
sandbox_parent(struct sandbox *s, const char *path, uint64_t rights,
    struct err *e)
{
	char *dir = alloc_dup(path, e), *slash;
	size_t n;

	if (dir == NULL)
		return -ERR_SYS;
	for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	slash = strrchr(dir, '/');
	if (slash == NULL)
		sandbox_rule(s, ".", rights);
	else if (slash == dir)
		sandbox_rule(s, "/", rights);
	else {
		*slash = '\0';
		sandbox_rule(s, dir, rights);
	}
	alloc_free(dir);
	return 0;
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
	char *target = temp_target(path, e);
	int r;

	if (target == NULL)
		return -ERR_SYS;
	sandbox_rule(s, target, LL_WRITE | LL_TRUNCATE);
	r = sandbox_parent(s, target, SANDBOX_MAKE, e);
	alloc_free(target);
	return r;
}

static int
sandbox_dir(struct sandbox *s, const char *path, struct err *e)
{
	if (s->level < 2) {
		/* version 1 forbids all renaming between directories, which a
		 * spool needs */
		(void)close(s->fd);
		s->fd = -1;
		s->level = 0;
		return 0;
	}
	if (access(path, F_OK) < 0)
		return sandbox_parent(s, path, SANDBOX_OWN, e);
	sandbox_rule(s, path, SANDBOX_OWN);
	/* it is opened to be synced */
	return sandbox_parent(s, path, LL_READ_DIR, e);
}

int
sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e)
{
	if (s->level == 0 || path == NULL || path[0] == '\0' ||
	    strcmp(path, "-") == 0)
		return 0;
	switch (how) {
	case SANDBOX_WRITE:
		return sandbox_write(s, path, e);
	case SANDBOX_DIR:
		return sandbox_dir(s, path, e);
	case SANDBOX_TEMP:
		sandbox_rule(s, path, SANDBOX_MAKE);
		break;
	case SANDBOX_READ:
		sandbox_rule(s, path, SANDBOX_LOOK);
		break;
	}
	return 0;
}

#if __has_include(<linux/seccomp.h>) && (defined(__x86_64__) || \
    defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifdef __x86_64__
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#else
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif
enum { SANDBOX_X32 = 0x40000000 };	/* calls of x86's third ABI */

/* What no filter needs, and what is worth most to somebody who got in. All
 * other calls stay as they are: a list of those that are allowed would have to
 * know every C library. */
static const int sandbox_denied[] = {
	SYS_execve, SYS_execveat, SYS_socket, SYS_connect, SYS_bind, SYS_listen,
	SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount,
	SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
	SYS_bpf, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_perf_event_open,
	SYS_userfaultfd, SYS_init_module, SYS_finit_module, SYS_delete_module,
	SYS_kexec_load, SYS_open_by_handle_at, SYS_io_uring_setup
};
enum { SANDBOX_DENIED = sizeof(sandbox_denied) / sizeof(sandbox_denied[0]) };

static int
sandbox_seccomp(void)
{
	/* arch, its check, number, x32's check, the list, allow, deny */
	struct sock_filter f[SANDBOX_DENIED + 6];
	struct sock_fprog p;
	unsigned char i, n = 0;

	memset(f, 0, sizeof(f));
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
	    SANDBOX_ARCH, 0, (unsigned char)(SANDBOX_DENIED + 3));
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
	    SANDBOX_X32, (unsigned char)(SANDBOX_DENIED + 1), 0);
	for (i = 0; i < SANDBOX_DENIED; i++)
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		    (unsigned)sandbox_denied[i],
		    (unsigned char)(SANDBOX_DENIED - i), 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_ERRNO | EPERM);
	p.len = n;
	p.filter = f;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0;
}
#else
static int
sandbox_seccomp(void)
{
	return 0;
}
#endif

int
sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e)
{
	int quiet = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	int files = quiet && s->level > 0 &&
	    syscall(LL_RESTRICT, s->fd, 0) == 0;
	int calls = quiet && sandbox_seccomp();

	if (s->fd >= 0)
		(void)close(s->fd);
	s->fd = -1;
	if (files && calls)
		(void)snprintf(says, n, "Landlock %d and seccomp", s->level);
	else
		(void)snprintf(says, n, "%s", files ? "Landlock alone" :
		    calls ? "seccomp alone, the kernel has no Landlock" :
		    "none, the kernel has neither Landlock nor seccomp");
	if (want == SANDBOX_REQUIRE && !(files && calls))
		return err_set(e, ERR_SYS, "the sandbox that --sandbox "
		    "require asks for is not to be had: %s", says);
	return 0;
}

#else	/* another system, or a build that looks at itself */

void
sandbox_begin(struct sandbox *s)
{
	s->fd = -1;
	s->level = 0;
	s->handled = 0;
}

int
sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e)
{
	(void)s;
	(void)path;
	(void)how;
	(void)e;
	return 0;
}

int
sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e)
{
	(void)s;
	(void)snprintf(says, n, "none, this build has no sandbox");
	return want != SANDBOX_REQUIRE ? 0 : err_set(e, ERR_SYS, "the sandbox "
	    "that --sandbox require asks for is not to be had: %s", says);
}
#endif
