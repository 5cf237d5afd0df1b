/*
 * The difference between two models, in the layout of slime, miles and SGLang: a
 * directory like Hugging Face's (weight_v000007) that has only the tensors that changed.
 * Each of them is stored as a tensor of bytes (U8), which is one zstd frame of
 *
 *	xor		old bytes ^ new bytes, as many as the tensor has
 *	overwrite	u32 count, count times u32 position of a byte in the tensor, in
 *			rising order, and the new bytes; little-endian
 *
 * The index's metadata has, as text, version and base_version (six digits),
 * delta_encoding, compression_format (zstd) and checksum_format.  Each file's
 * __metadata__ has the checksum of each of its tensors after the change, in
 * hexadecimal.  An index without delta_encoding belongs to a whole model.
 *
 * The other projects write positions in rising order, each only once.  We refuse any
 * other order, even if the checksum is right.
 */
#ifndef ACE_DELTA_H
#define ACE_DELTA_H

#include <stdint.h>

#include "model/model.h"

struct err;

enum delta_coding { DELTA_XOR, DELTA_OVERWRITE };
extern const char *const delta_codings[];	/* names of enum delta_coding */

struct delta_head {
	int is;			/* 1: a difference; 0: the other members are not set */
	uint64_t version, base;
	int coding;		/* enum delta_coding */
	int adler;		/* 1: the checksums are adler32; 0: XXH3-128 */
};

/* Read the index of the directory at path.  h->is is 0 if there is no index, or if it
 * belongs to a whole model. */
int delta_head(const char *path, struct delta_head *h, struct err *e);
/* Open the model that the difference at path makes from `old', which must stay open.  The
 * changed tensors are unpacked into an unnamed file in $TMPDIR and verified there;
 * -ERR_DATA names a tensor that is not valid. */
int delta_open(struct model *m, const struct model *old, const char *path,
    const struct delta_head *h, struct err *e);

/* ---- writing a difference ---- */

struct delta;
/* Begin the difference from model m to its next version, as xor.  *out uses the file fd as
 * scratch space and closes it. */
int delta_create(struct delta **out, const struct model *m, int fd, struct err *e);
/* Add a group's old and new bytes.  Call it for all groups, in order. */
int delta_group(struct delta *d, const struct model_span *s,
    const unsigned char *old, const unsigned char *new, struct err *e);
/* Write the directory dir to disk, its index last.  -ERR_REFUSED: dir holds another
 * version or a whole model. */
int delta_place(struct delta *d, const char *dir, uint64_t version,
    uint64_t base, struct err *e);
void delta_free(struct delta *d);

#endif
