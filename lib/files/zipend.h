/*
 * Checks the end of a zip file before libarchive reads it, because libarchive
 * does not notice an archive that was cut inside its directory, and keeps the
 * directory in memory however large it is.
 */
#ifndef ACE_ZIPEND_H
#define ACE_ZIPEND_H

#include <stdint.h>

struct err;

enum { ZIPEND_MAX_DIRECTORY = 16 << 20 };	/* bytes: some 150,000 entries */

/*
 * zipend_check(fd, size, name, n, e): checks that the file of size bytes ends
 * with the end record of a zip (without a comment) and that the directory is
 * just before it and has at most ZIPEND_MAX_DIRECTORY bytes.  *n is set to the
 * number of entries that the end record states.
 */
int zipend_check(int fd, uint64_t size, const char *name, uint64_t *n,
    struct err *e);

#endif
