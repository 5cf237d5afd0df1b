/*
 * A descriptor's system calls: EINTR, short counts and O_NONBLOCK are dealt with
 * here.  name is what messages call it.
 */
#ifndef ACE_FD_H
#define ACE_FD_H

#include <stddef.h>

struct err;

/* fd_ready(fd, watch, ms, name, e): waits for input, ms milliseconds at most
 * (< 0: as long as it takes): 1 there is some, 0 not yet, or wait_orphan's error
 * about watch (-1 none). */
int fd_ready(int fd, int watch, int ms, const char *name, struct err *e);
/* fd_read(fd, watch, p, n, got, name, e): one read of at most n bytes; 0 is the
 * end.  watch >= 0: while it waits, wait_orphan's error about that one is its own. */
int fd_read(int fd, int watch, void *p, size_t n, size_t *got, const char *name,
    struct err *e);
/* fd_write(fd, p, n, name, e): all of it. */
int fd_write(int fd, const void *p, size_t n, const char *name, struct err *e);

/* fd_pipe_size(fd, n): ask for a pipe of n bytes; what is refused is not an
 * error. */
void fd_pipe_size(int fd, int n);

#endif
