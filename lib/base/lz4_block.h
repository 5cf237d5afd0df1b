/* One LZ4 block without a frame.  Only lz4_block.c includes lz4.h. */
#ifndef ACE_LZ4_BLOCK_H
#define ACE_LZ4_BLOCK_H

#include <stddef.h>

/* lz4_block_pack: pack p[n] into out[cap]. Return the number of bytes written; 0 if they exceed
 * cap, or if n is above LZ4's limit, 0x7e000000.
 * lz4_block_unpack: unpack p[len] into out[n]. Return 0 if that gives exactly n bytes, else -1. */
size_t lz4_block_pack(void *out, size_t cap, const void *p, size_t n);
int lz4_block_unpack(void *out, size_t n, const void *p, size_t len);

const char *lz4_block_version(void);

#endif
