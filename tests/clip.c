/*
 * Preloaded under a program (LD_PRELOAD): every read and write of descriptors
 * 0 and 1 moves at most ACE_CLIP bytes (default 1, which then cycles through
 * 1..7), as slow pipes and sockets do.
 *
 * ACE_KILL=N: where the N-th of the calls that change something begins (write,
 * fsync, rename, ...) the process ends as by kill -9.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t
clip(int fd, size_t n)
{
	static size_t turn;
	const char *s = getenv("ACE_CLIP");
	size_t max = s != NULL ? (size_t)atol(s) : 1 + turn++ % 7;

	return fd <= 1 && n > max ? max : n;
}

static void
count(void)
{
	static long left = -1;
	const char *s = getenv("ACE_KILL");

	if (left < 0)
		left = s != NULL ? atol(s) : 0;
	if (left > 0 && --left == 0)
		(void)kill(getpid(), SIGKILL);
}

ssize_t
read(int fd, void *p, size_t n)
{
	return syscall(SYS_read, fd, p, clip(fd, n));
}

ssize_t
write(int fd, const void *p, size_t n)
{
	count();
	return syscall(SYS_write, fd, p, clip(fd, n));
}

int
fsync(int fd)
{
	count();
	return (int)syscall(SYS_fsync, fd);
}

int
fchmod(int fd, mode_t mode)
{
	count();
	return (int)syscall(SYS_fchmod, fd, mode);
}

int
rename(const char *from, const char *to)
{
	count();
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
unlink(const char *path)
{
	count();
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int
close(int fd)
{
	count();
	return (int)syscall(SYS_close, fd);
}
