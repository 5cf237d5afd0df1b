/*
 * Makes a regular file of any input, so that it can be read twice and its size
 * is known.
 */
#ifndef ACE_SEEKABLE_H
#define ACE_SEEKABLE_H

#include <stdint.h>

struct err;

/*
 * seekable_open(&fd, &size, path, e): opens a regular file of size bytes, at its
 * start.  If path (NULL or "-": standard input) is a regular file, it is that
 * file.  Otherwise the input is copied to a file in $TMPDIR (or /tmp) that is
 * unlinked at once, so that nothing is left behind however the program ends.
 */
int seekable_open(int *fd, uint64_t *size, const char *path, struct err *e);

/* seekable_pread: reads exactly n bytes at offset `at'.  If the file ends
 * before that: -ERR_DATA, "truncated". */
int seekable_pread(int fd, void *p, uint64_t n, uint64_t at, const char *name,
    struct err *e);

#endif
