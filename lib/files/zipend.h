/*
 * The end of a zip file, looked at before libarchive sees it: libarchive reads
 * on where an archive was cut inside its directory, and keeps the directory in
 * memory whatever its size.
 */
#ifndef ACE_ZIPEND_H
#define ACE_ZIPEND_H

#include <stdint.h>

struct err;

enum { ZIPEND_MAX_DIRECTORY = 16 << 20 };	/* bytes: some 150,000 entries */

/* zipend_check(fd, size, name, n, e): a file of size bytes is a zip that ends
 * with its end record (no comment), the directory just before it, of bearable
 * size; *n entries are said to be in it. */
int zipend_check(int fd, uint64_t size, const char *name, uint64_t *n,
    struct err *e);

#endif
