/*
 * What changed between two models, as slime, miles and SGLang lay it out: a directory
 * as Hugging Face's, weight_v000007, in whose files stand the tensors that changed,
 * each as one zstd frame, a tensor of bytes (U8); the rest is left out.  The frame is
 *
 *	xor		old bytes ^ new bytes, as many as the tensor has
 *	overwrite	u32 count, count times u32 position of a byte in the tensor, in
 *			rising order, and the new bytes; little-endian
 *
 * In the index's metadata are, as text, version and base_version (six digits),
 * delta_encoding, compression_format (zstd) and checksum_format; in each file's
 * __metadata__ the checksum of each tensor as it is afterwards, in hexadecimal.  An
 * index without delta_encoding is that of a whole model.
 *
 * That the positions rise, and each only once, is what their writers do; that we want
 * it, and more than the checksum, is ours: nothing is made of what lies.
 */
#ifndef ACE_DELTA_H
#define ACE_DELTA_H

#include <stdint.h>

#include "model/model.h"

struct err;

enum delta_coding { DELTA_XOR, DELTA_OVERWRITE };
extern const char *const delta_codings[];	/* their names, for options */

struct delta_head {
	int is;			/* it is one; else nothing below is meant */
	uint64_t version, base;
	int coding;		/* enum delta_coding */
	int adler;		/* the checksums are adler32, else XXH3-128 */
};

/* delta_head(path, h, e): what the directory at path is; h->is is 0 where there is no
 * index, or that of a whole model. */
int delta_head(const char *path, struct delta_head *h, struct err *e);
/* delta_open(m, old, path, h, e): the model that the directory at path makes of old,
 * which has to stay open.  What changed is unpacked into a file without a name in
 * $TMPDIR and verified there: -ERR_DATA with the tensor's name. */
int delta_open(struct model *m, const struct model *old, const char *path,
    const struct delta_head *h, struct err *e);

/* ---- writing one ---- */

struct delta;
/* delta_create(out, m, fd, coding, e): of a model that changes; what it needs
 * meanwhile is put into the file fd, which is the delta's to close. */
int delta_create(struct delta **out, const struct model *m, int fd, int coding,
    struct err *e);
/* delta_group(d, s, old, new, e): its groups, all of them, in order. */
int delta_group(struct delta *d, const struct model_span *s,
    const unsigned char *old, const unsigned char *new, struct err *e);
/* delta_place(d, dir, version, base, e): writes the directory dir, its index last, all
 * of it to the disk.  -ERR_REFUSED where another model's index is there. */
int delta_place(struct delta *d, const char *dir, uint64_t version,
    uint64_t base, struct err *e);
void delta_free(struct delta *d);

#endif
