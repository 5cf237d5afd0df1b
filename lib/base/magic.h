/*
 * What a file is that was taken for something else, by its first bytes.
 */
#ifndef ACE_MAGIC_H
#define ACE_MAGIC_H

#include <stddef.h>

enum { MAGIC_SIZE = 512 };	/* as many are enough */

/* "a zip archive", and what to do with it; NULL: not known. */
const char *magic_name(const unsigned char *p, size_t n);

#endif
