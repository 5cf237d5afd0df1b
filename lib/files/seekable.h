/* Turn any input into a regular file, which can be read twice and has a known size. */
#ifndef ACE_SEEKABLE_H
#define ACE_SEEKABLE_H

#include <stdint.h>

struct err;

/* Open path (NULL or "-": standard input) as a regular file of size bytes, at its start.
 * If the input is not a regular file at its start, it is copied to an unlinked file in
 * $TMPDIR (or /tmp), so that nothing remains however the program ends. */
int seekable_open(int *fd, uint64_t *size, const char *path, struct err *e);

/* Read exactly n bytes at offset `at'. Return -ERR_DATA, "truncated", if the file ends
 * earlier. */
int seekable_pread(int fd, void *p, uint64_t n, uint64_t at, const char *name,
    struct err *e);

#endif
