/*
 * System calls on file descriptors.  Reads and writes handle interrupted calls and
 * non-blocking mode. `name' is the descriptor's name in error messages.
 */
#ifndef ACE_FD_H
#define ACE_FD_H

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* Wait for input, at most ms milliseconds, or without limit if ms < 0.  Return 1 if a read
 * will not wait, because bytes, the end of the input or an error are there; 0 if not, or if a
 * signal came.  watch: a pipe to which we write, or -1.  When that pipe has no reader any
 * more and no input is there, return wait_orphan's error. */
int fd_ready(int fd, int watch, int ms, const char *name, struct err *e);
/* Read once, at most n bytes; *got is the number read, 0 at the end of the input. For
 * `watch' see fd_ready. */
int fd_read(int fd, int watch, void *p, size_t n, size_t *got, const char *name,
    struct err *e);
/* Like fd_read, but from byte `at' of a file.  The position of fd is not used or changed. */
int fd_read_at(int fd, off_t at, void *p, size_t n, size_t *got,
    const char *name, struct err *e);
/* Read exactly n bytes from byte `at'; -ERR_REFUSED if the file has become shorter. */
int fd_read_all(int fd, off_t at, void *p, size_t n, const char *name, struct err *e);
/* Write all n bytes.  fd_write_at: the same at byte `at', without moving fd's position. */
int fd_write(int fd, const void *p, size_t n, const char *name, struct err *e);
int fd_write_at(int fd, off_t at, const void *p, size_t n, const char *name,
    struct err *e);

/*
 * fd_open: open a file for reading as *fd, and set *st to its stat.  *fd is -1 on errors.
 *   FD_NAMED: the user named the file.  If it is a FIFO, wait for a writer.
 *   FD_FILE: we found the file in a folder or an index.  -ERR_DATA if it is not regular.
 *   FD_OURS: the file is our own.  As FD_FILE, and -ERR_SYS if it is a symbolic link.
 * fd_input: set *st to the stat of fd.  -ERR_USAGE if fd and standard output are the same
 * regular file: reading would never end.  fd_open checks this, too, except with FD_OURS.
 */
enum fd_what { FD_NAMED, FD_FILE, FD_OURS };
int fd_open(const char *path, enum fd_what what, int *fd, struct stat *st,
    struct err *e);
int fd_input(int fd, const char *name, struct stat *st, struct err *e);

/*
 * fd_sync: call fsync for a file or a directory.  Return 0 also if the file system does
 * not support fsync of a directory.
 * fd_sync_path: open a file or a directory and sync it.  If we may not read a directory,
 * open the file `within', which is in it, and call syncfs; within may be NULL.
 * fd_sync_name: sync the directory that holds path, so that a link or a rename is durable.
 * If path ends with a slash, sync path itself.
 * fd_folder: set dir to the name of the directory that holds path, ignoring trailing
 * slashes.  Return 1, or 0 if the name is too long.
 */
int fd_sync(int fd, const char *name, struct err *e);
int fd_sync_path(const char *path, const char *within, struct err *e);
int fd_sync_name(const char *path, struct err *e);
int fd_folder(const char *path, char dir[PATH_MAX]);

/* Open a lock file of ours, creating it if it is absent, and wait for its lock.  how:
 * LOCK_EX or LOCK_SH of flock(2), or 0 to take no lock.  With LOCK_NB do not wait, but
 * return 1 if another process has the lock.  *fd is -1 in that case and on errors; otherwise
 * the caller closes it.  -ERR_REFUSED for a FIFO or a device; -ERR_SYS for a link or a directory.
 */
int fd_lock(const char *path, int how, int *fd, struct err *e);

/* Read and discard the input of a pipe or a socket to its end, but for at most
 * FD_LINGER_MS milliseconds and about FD_LINGER bytes.  Call this after refusing an input with a
 * message: a connection that is closed with unread input may lose the message.
 */
enum { FD_LINGER_MS = 1000, FD_LINGER = 16 << 20 };
void fd_linger(int fd);

/* Return 1 if fd is a terminal, else 0.  A sandbox refuses the system call of isatty(3)
 * for terminals opened inside it; these are recognised by their device number. */
int fd_is_terminal(int fd);
/* Return 1 if fd is a pipe or a FIFO, 0 for all else, such as a socket. */
int fd_is_pipe(int fd);

/* Raise the limit of open descriptors to the hard limit, if allowed, and return the limit;
 * 256 if the system does not tell it. */
size_t fd_most(void);

/* Ask the kernel for a buffer of n bytes in the pipe fd; ignore a refusal. */
void fd_pipe_size(int fd, int n);

#endif
