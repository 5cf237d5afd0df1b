/*
 * Recognises common kinds of files by their first bytes, so that an error
 * message can say what was given in place of a stream.
 */
#ifndef ACE_MAGIC_H
#define ACE_MAGIC_H

#include <stddef.h>

enum { MAGIC_SIZE = 512 };	/* bytes to look at */

/* "a zip archive", and what to do with it; NULL: not known. */
const char *magic_name(const unsigned char *p, size_t n);
/* 1: an archive or a packed file that base/arc.h reads; no torch.save. */
int magic_packed(const unsigned char *p, size_t n);

#endif
