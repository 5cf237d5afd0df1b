#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/fd.h"
#include "base/temp.h"

/* ---- files that a signal removes ---- */

/* A slot is in use while `owner' is a process id, so that a forked child does not remove
 * its parent's files.  The slots are static, so that a signal handler never reads freed
 * memory. */
enum { TEMP_SLOTS = 32 };
static struct {
	_Atomic(pid_t) owner;	/* 0: free; -1: being filled in */
	int dir;		/* descriptor of the folder of path */
	size_t from;		/* index in path at which the name in that folder begins */
	char path[PATH_MAX];
} temp_slot[TEMP_SLOTS];

/* Remove the file `name', or the directory `name' with the files in it. */
static void
temp_fell(int dir, const char *name)
{
	unsigned char p[2048];
	unsigned short len;
	long n, at;
	const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
	    O_NOFOLLOW);

	if (fd < 0) {
		(void)unlinkat(dir, name, 0);
		return;
	}
	/* readdir(3) may not be called in a signal handler; the kernel's entries have
	 * the length in byte 16 and the name from byte 19 on */
	while ((n = syscall(SYS_getdents64, fd, p, sizeof(p))) > 0)
		for (at = 0; at < n; at += len) {
			memcpy(&len, p + at + 16, sizeof(len));
			(void)unlinkat(fd, (const char *)p + at + 19, 0);
		}
	(void)close(fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

void
temp_abandon(void)
{
	const pid_t me = getpid();
	int i;

	for (i = 0; i < TEMP_SLOTS; i++)
		if (atomic_load(&temp_slot[i].owner) == me)
			temp_fell(temp_slot[i].dir, temp_slot[i].path +
			    temp_slot[i].from);
}

static void
temp_ended(int sig)
{
	temp_abandon();
	(void)signal(sig, SIG_DFL);
	/* the process gets the signal when this handler returns */
	if (kill(getpid(), sig) < 0)
		_exit(128 + sig);	/* a sandbox may refuse the signal */
}

/* Handle signals that end a process, unless they are ignored or handled already. */
static void
temp_catch(void)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM,
	    SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU };
	static _Atomic(int) caught;
	struct sigaction was, own = { .sa_handler = temp_ended };
	size_t i;

	if (atomic_exchange(&caught, 1))
		return;
	(void)sigfillset(&own.sa_mask);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &own, NULL);
}

void
temp_enter(const char *path)
{
	const size_t n = strlen(path) + 1;
	pid_t none;
	int i;

	temp_catch();
	for (i = 0; i < TEMP_SLOTS && n <= PATH_MAX; i++) {
		none = 0;
		if (!atomic_compare_exchange_strong(&temp_slot[i].owner, &none, -1))
			continue;
		memcpy(temp_slot[i].path, path, n);
		temp_slot[i].dir = at_dir(path);
		temp_slot[i].from = (size_t)(at_name(path) - path);
		atomic_store(&temp_slot[i].owner, getpid());
		return;
	}
}

void
temp_leave(const char *path)
{
	const pid_t me = getpid();
	int i;

	for (i = 0; i < TEMP_SLOTS; i++)
		if (atomic_load(&temp_slot[i].owner) == me &&
		    strcmp(temp_slot[i].path, path) == 0)
			atomic_store(&temp_slot[i].owner, 0);
}

void
temp_remove(const char *path)
{
	(void)unlinkat(AT(path), 0);
	temp_leave(path);
}

/* ---- a new file ---- */

/* Replace the last 6 characters of path by random letters and digits. */
static void
temp_random(char *path)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	enum { DIGITS = sizeof(digits) - 1 };
	char *at = path + strlen(path) - 6;
	uint64_t r;
	int k;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) < 0)
		r = (uint64_t)(clock_now() * 1e9) * (2 * (uint64_t)getpid() + 1);
	for (k = 0; k < 6; k++, r /= DIGITS)
		at[k] = digits[r % DIGITS];
}

int
temp_create(char *path, int access, mode_t mode, int exact, int *fd, struct err *e)
{
	enum { TRIES = 1000 };
	struct stat st;
	mode_t mask = 0;
	int i;

	for (i = 0; i < TRIES; i++) {
		temp_random(path);
		/* register it first: a signal may come as soon as the file exists */
		temp_enter(path);
		if (exact)
			mask = umask(0);
		*fd = openat(AT(path), access | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (exact)
			(void)umask(mask);
		/* on a file system without locks temp_sweep removes nothing */
		if (*fd >= 0 && (flock(*fd, LOCK_EX | LOCK_NB) == 0 ?
		    fstat(*fd, &st) == 0 && st.st_nlink == 1 : errno != EWOULDBLOCK))
			return 0;
		temp_leave(path);
		if (*fd < 0 && errno != EEXIST)
			break;
		/* the name is in use; or another process removed the file before it was
		 * locked, or will remove it */
		if (*fd >= 0)
			(void)close(*fd);
		*fd = -1;
	}
	return err_sys(e, "'%.*s'", (int)(strlen(path) - (sizeof(TEMP_NAME) - 1)), path);
}

int
temp_open(const char *dir, int *fd, struct err *e)
{
	const char *set = getenv("TMPDIR"), *in = dir != NULL ? dir :
	    set != NULL && set[0] != '\0' ? set : "/tmp";
	char *path = alloc_path(in, "ace" TEMP_NAME, e);
	int r = path != NULL ? temp_create(path, O_RDWR, 0600, 0, fd, NULL) : -ERR_SYS;

	if (r == 0)
		temp_remove(path);
	else if (path != NULL)
		r = err_after(e, err_sys(e, "no file can be made in '%s'", in), "%s", dir != NULL ?
		    "" : ": TMPDIR names the folder of temporary files (default /tmp)");
	alloc_free(path);
	return r;
}

/* ---- the permissions of the replaced file ---- */

#define TEMP_ACL "system.posix_acl_access"

int
temp_differs(const char *path, const struct stat *st)
{
	char dir[PATH_MAX];
	struct stat d;
	gid_t gid = getegid();

	/* the file is in our own folder, to which no other user can write */
	if (at_dir(path) != AT_FDCWD)
		return 0;
	if (fd_folder(path, dir) && fstatat(AT(dir), &d, 0) == 0 &&
	    (d.st_mode & S_ISGID) != 0)
		gid = d.st_gid;
	return st->st_uid != geteuid() || st->st_gid != gid ||
	    getxattr(path, TEMP_ACL, NULL, 0) > 0;
}

int
temp_acl(int fd, const char *path)
{
	char acl[2048];
	const ssize_t n = getxattr(path, TEMP_ACL, acl, sizeof(acl));

	return n < 0 ? (errno == ERANGE ? -1 : 0) :
	    fsetxattr(fd, TEMP_ACL, acl, (size_t)n, 0);
}

/* Give a new file the owner, the group, the ACL and the mode of path, as far as allowed.
 * If the group or the ACL cannot be set, the group gets only the rights that all others
 * have. */
static void
temp_like(int fd, const char *path, const struct stat *was)
{
	mode_t mode = was->st_mode & 0777;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	if (st.st_uid != was->st_uid)
		(void)!fchown(fd, was->st_uid, (gid_t)-1);
	if ((st.st_gid != was->st_gid &&
	    fchown(fd, (uid_t)-1, was->st_gid) < 0) || temp_acl(fd, path) < 0)
		mode = (mode & 0707) | (mode & 07) << 3;
	(void)fchmod(fd, mode);
}

/* ---- replacing another file ---- */

int
temp_trusts(const char *name)
{
	char dir[PATH_MAX];
	struct stat l, d;

	return fd_folder(name, dir) &&
	    fstatat(AT(name), &l, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(AT(dir), &d, 0) == 0 && ((d.st_mode & S_IWOTH) == 0 ||
	    l.st_uid == geteuid() || l.st_uid == d.st_uid);
}

int
temp_target(const char *path, char target[TEMP_PATH], struct err *e)
{
	enum { HOPS = 40 };	/* limit on links, as in the kernel */
	char to[PATH_MAX], *slash, *from = target;
	ssize_t n = (ssize_t)strlen(path);
	int i;

	for (i = 0; n >= 0; i++, n = readlinkat(AT(target), to, sizeof(to))) {
		if (i != 0 && !temp_trusts(target))
			return err_set(e, ERR_REFUSED, "'%s' is a symbolic link that "
			    "another user made in a directory open to all: give "
			    "another path, or that of the link's target", target);
		slash = i != 0 && to[0] != '/' ? strrchr(target, '/') : NULL;
		from = slash != NULL ? slash + 1 : target;
		errno = i > HOPS ? ELOOP : ENAMETOOLONG;
		if (i > HOPS || n >= target + TEMP_PATH - from)
			return err_sys(e, "'%s'", path);
		memcpy(from, i != 0 ? to : path, (size_t)n);
		from[n] = '\0';
	}
	/* EINVAL: not a link; ENOENT: absent.  After another error the link
	 * itself would be replaced by a file */
	return errno == EINVAL || errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
}

int
temp_folder(const char *path, char target[TEMP_PATH], struct err *e)
{
	char name[TEMP_PATH];
	size_t n = strlen(path);
	int r;

	do {			/* the text of a link may end with slashes, too */
		while (n > 1 && path[n - 1] == '/')
			n--;
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, path);
		r = temp_target(n < sizeof(name) ? name : path, target, e);
		path = target;
		n = strlen(target);
	} while (r == 0 && n > 1 && target[n - 1] == '/');
	return r;
}

/* Open the spare and rename it to the temporary name, provided that it has no other name and
 * has the owner and permissions of the file that is replaced, whose stat is was.  Return 1,
 * or 0 if a new file is needed. */
static int
temp_over(struct temp *t, const struct stat *was, int durable, int *fd)
{
	struct stat st;

	*fd = openat(AT(t->spare), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (*fd < 0)
		return 0;
	temp_random(t->name);
	temp_enter(t->name);
	/* sync the last rename first: if a power cut undid it, the spare would again be
	 * the valid file */
	if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_uid == was->st_uid && st.st_gid == was->st_gid &&
	    st.st_mode == was->st_mode && flock(*fd, LOCK_EX | LOCK_NB) == 0 &&
	    (!durable || fd_sync_name(t->path, NULL) == 0) &&
	    renameat(AT(t->spare), AT(t->name)) == 0)
		return 1;
	temp_leave(t->name);
	(void)close(*fd);
	return 0;
}

int
temp_begin(struct temp *t, const char *path, int access, const char *spare, int durable,
    int *fd, struct err *e)
{
	const size_t n = strlen(path) + sizeof(TEMP_NAME);
	struct stat was;
	const int there = fstatat(AT(path), &was, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(was.st_mode);
	const int differs = there && temp_differs(path, &was);
	const mode_t mode = there ? was.st_mode & 0777 : 0666;

	*fd = -1;
	if ((t->path = alloc_dup(path, e)) == NULL ||
	    (spare != NULL && there && was.st_size >= TEMP_SPARE &&
	    (t->spare = alloc_dup(spare, e)) == NULL) ||
	    (t->name = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(t->name, n, "%s" TEMP_NAME, path);
	if (t->spare != NULL && !differs && temp_over(t, &was, durable, fd))
		return 1;
	if (temp_create(t->name, access, differs ? mode & 0700 : mode, there, fd, e) < 0) {
		alloc_free(t->name);
		t->name = NULL;
		return -ERR_SYS;
	}
	if (differs)
		temp_like(*fd, path, &was);
	return 0;
}

int
temp_commit(struct temp *t, int fd, int durable, const char *name, struct err *e)
{
	int r = durable ? fd_sync(fd, name, e) : 0, lock;

	/* best effort: without a spare the next file is a new one */
	if (r == 0 && t->spare != NULL &&
	    (unlinkat(AT(t->spare), 0) == 0 || errno == ENOENT))
		(void)!linkat(AT(t->path), AT(t->spare), 0);
	/* keep the file locked until it is renamed, so that temp_sweep does not remove it */
	lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (close(fd) < 0 && errno != EINTR && r == 0)
		r = err_sys(e, "'%s'", name);
	if (r == 0 && renameat(AT(t->name), AT(t->path)) < 0)
		r = err_sys(e, "'%s'", t->path);
	if (lock >= 0)
		(void)close(lock);
	if (r < 0)
		return r;
	temp_leave(t->name);
	alloc_free(t->name);
	t->name = NULL;
	return durable ? fd_sync_name(t->path, e) : 0;
}

void
temp_drop(struct temp *t)
{
	if (t->name != NULL)
		temp_remove(t->name);
	alloc_free(t->name);
	alloc_free(t->path);
	alloc_free(t->spare);
	*t = (struct temp){ 0 };
}

/* ---- files of killed processes ---- */

int
temp_named(const char *name)
{
	const size_t cut = sizeof(TEMP_NAME) - 1, n = strlen(name);

	return n >= cut && strncmp(name + n - cut, TEMP_NAME, cut - 6) == 0;
}

static int
temp_sweep_one(void *arg, const char *path, const char *name, struct err *e)
{
	const int fd = temp_named(name) ? openat(AT(path), O_RDONLY | O_CLOEXEC |
	    O_NOFOLLOW | O_NONBLOCK) : -1;

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(AT(path), 0);
	if (fd >= 0)
		(void)close(fd);
	return 0;
}

void
temp_sweep(const char *dir)
{
	(void)scan(dir, 1, temp_sweep_one, NULL, NULL);
}
