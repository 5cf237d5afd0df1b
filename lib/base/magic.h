/*
 * Recognise file formats by their first bytes, so that an error message can name what was
 * found instead of the expected format. All readers use this table.
 */
#ifndef ACE_MAGIC_H
#define ACE_MAGIC_H

#include <stddef.h>

enum { MAGIC_SIZE = 512 };	/* bytes to look at */

/* Return text such as "a zip archive (what to do with it)" for a file that begins with p[n];
 * NULL: unknown. */
const char *magic_name(const unsigned char *p, size_t n);
/* Write and return the end of a message: ": this is ..." with the name, or ": it begins
 * with ..." with the first bytes, followed by if_text if at least 4 are text; "" if n is 0. */
enum { MAGIC_WORDS = 256 };
const char *magic_say(const unsigned char *p, size_t n, const char *if_text,
    char out[MAGIC_WORDS]);
/* Return 1 for an archive or packed file that base/arc.h reads, but not for torch.save's. */
int magic_packed(const unsigned char *p, size_t n);
/* Return the size in bytes of the skippable frame of zstd or lz4 that begins with p[8],
 * including these 8 bytes; 0 if p does not begin such a frame. */
size_t magic_passed(const unsigned char p[8]);
int magic_safetensors(const unsigned char *p, size_t n);

#endif
