/*
 * A regular file to read twice or to measure, whatever was given.
 */
#ifndef ACE_SEEKABLE_H
#define ACE_SEEKABLE_H

#include <stdint.h>

struct err;

/*
 * seekable_open(&fd, &size, path, e): a descriptor at the start of a regular file
 * of size bytes.  path (NULL or "-": standard input) itself when it is one;
 * otherwise a copy in a file of $TMPDIR (or /tmp) that has no name any more,
 * so that nothing is left behind however the program ends.
 */
int seekable_open(int *fd, uint64_t *size, const char *path, struct err *e);

/* seekable_pread: exactly n bytes from offset at; -ERR_DATA "truncated". */
int seekable_pread(int fd, void *p, uint64_t n, uint64_t at, const char *name,
    struct err *e);

#endif
