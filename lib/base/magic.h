/*
 * Recognises kinds of files by their first bytes, so that an error message can say
 * what was given in place of what was expected.  All readers of files and streams ask
 * this one table.
 */
#ifndef ACE_MAGIC_H
#define ACE_MAGIC_H

#include <stddef.h>

enum { MAGIC_SIZE = 512 };	/* bytes to look at */

/* magic_name(p, n): "a zip archive", and what to do with it; NULL: not known. */
const char *magic_name(const unsigned char *p, size_t n);
/* magic_say(p, n, if_text, out): writes the end of a message, ": this is ..." with that
 * name, or ": it begins with ..." and the first bytes, with if_text after them where they
 * are text; returns it. */
enum { MAGIC_WORDS = 256 };
const char *magic_say(const unsigned char *p, size_t n, const char *if_text,
    char out[MAGIC_WORDS]);
/* magic_packed(p, n): 1: an archive or a packed file that base/arc.h reads; no
 * torch.save. */
int magic_packed(const unsigned char *p, size_t n);
/* magic_seeks(p, n): 1: an archive that can only be read from a file. */
int magic_seeks(const unsigned char *p, size_t n);
/* magic_passed(p): what begins with these 8 bytes is passed over by readers of zstd and
 * lz4, with so many bytes after them; 0: it is not. */
size_t magic_passed(const unsigned char p[8]);
/* magic_safetensors(p, n): 1: it begins as a safetensors file. */
int magic_safetensors(const unsigned char *p, size_t n);

#endif
