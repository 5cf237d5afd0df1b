/*
 * System calls on file descriptors; they handle interrupted calls, short counts and
 * non-blocking mode. `name' is the descriptor's name in error messages.
 */
#ifndef ACE_FD_H
#define ACE_FD_H

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* Wait for input, at most ms milliseconds, or without limit if ms < 0. Return 1 if
 * there is input, 0 if not. watch: a pipe that we write to, or -1; when it has no
 * reader any more, waiting ends with wait_orphan's error. */
int fd_ready(int fd, int watch, int ms, const char *name, struct err *e);
/* Read once, at most n bytes; *got is the number read, 0 at the end of the input. watch
 * as in fd_ready. */
int fd_read(int fd, int watch, void *p, size_t n, size_t *got, const char *name,
    struct err *e);
/* The same from byte `at' of a file; the position of fd is neither used nor changed. */
int fd_read_at(int fd, off_t at, void *p, size_t n, size_t *got,
    const char *name, struct err *e);
/* Read all n bytes, which exist. */
int fd_read_all(int fd, off_t at, void *p, size_t n, const char *name, struct err *e);
/* Write all n bytes; fd_write_at as fd_read_at. */
int fd_write(int fd, const void *p, size_t n, const char *name, struct err *e);
int fd_write_at(int fd, off_t at, const void *p, size_t n, const char *name,
    struct err *e);

/*
 * fd_open(path, what, fd, st, e): opens a file for reading; st is its stat.  FD_NAMED: what a person named
 * may be a pipe, which is waited for.  FD_FILE: what is found by us, in a folder or an
 * index, is a regular file or -ERR_DATA; FD_OURS: what we keep ourselves is not a link either.
 * fd_input(fd, name, st, e): fd, whose stat becomes st, may be read: -ERR_USAGE for the
 * file that standard output is, whose end would never come.  fd_open asks that of what
 * is not ours.
 */
enum fd_what { FD_NAMED, FD_FILE, FD_OURS };
int fd_open(const char *path, enum fd_what what, int *fd, struct stat *st,
    struct err *e);
int fd_input(int fd, const char *name, struct stat *st, struct err *e);

/*
 * fd_sync(fd, name, e): fsync of a file or a directory.  That a file system cannot sync
 * a directory is no error: there is nothing to be done about it, and the file is there.
 * fd_sync_dir(dir, within, e): fsync of a directory.  One that may be written but not
 * read has its file system synced, by a name within it.
 * fd_sync_name(path, e): of the directory that holds path, so that a link or a rename
 * is durable; where path ends with a slash, of that directory.
 * fd_folder(path, dir): writes the name of the directory that holds path, trailing
 * slashes ignored.  Returns 0 if it is too long, else 1.
 */
int fd_sync(int fd, const char *name, struct err *e);
int fd_sync_dir(const char *dir, const char *within, struct err *e);
int fd_sync_name(const char *path, struct err *e);
int fd_folder(const char *path, char dir[PATH_MAX]);

/* fd_lock(path, how, fd, e): opens a file of ours that processes lock, made if it is
 * not there, and locks it, how LOCK_EX or LOCK_SH of flock, as long as that takes;
 * 0: no lock.  With LOCK_NB, 1: another process has it.  *fd is -1 then, and on
 * errors. */
int fd_lock(const char *path, int how, int *fd, struct err *e);

/* fd_linger(fd): reads what still comes through a pipe or a socket and throws it
 * away, until its end, FD_LINGER_MS milliseconds or FD_LINGER bytes.  For one who
 * gives up an input and has said so: the network between drops what is on its way
 * back when it has more to bring and nobody takes it. */
enum { FD_LINGER_MS = 1000, FD_LINGER = 16 << 20 };
void fd_linger(int fd);

/* fd_is_terminal(fd): 1 or 0.  In a sandbox the question that isatty(3) asks of a
 * terminal opened there is refused; it is known by its number then. */
int fd_is_terminal(int fd);
int fd_is_pipe(int fd);

/* fd_most(): as many open files as the system allows from now on; how many that is. */
size_t fd_most(void);

/* fd_pipe_size(fd, n): asks the system to let the pipe fd hold n bytes; that it
 * refuses is no error. */
void fd_pipe_size(int fd, int n);

#endif
