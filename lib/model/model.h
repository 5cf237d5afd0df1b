/*
 * A model on disk: a safetensors file, or a directory in the layout of Hugging Face, with
 * model.safetensors, or with model.safetensors.index.json and the files that it names.
 * Tensors are identified by name, whatever file they are in.  Their bits are read group by
 * group, in the order of their names.
 *
 * Two models whose tensors have the same names, types, shapes and bits have the same
 * hash, however they are spread over files.
 */
#ifndef ACE_MODEL_H
#define ACE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "format/schema.h"

struct err;
struct stat;

enum {
	MODEL_HASH = 16,
	MODEL_HEX = 2 * MODEL_HASH + 1,
	MODEL_GROUP = 1 << 19,	/* values of a group; all hashes depend on it */
	MODEL_FILES = 1000	/* limit on the files of a model */
};

struct model_file {
	char *name;		/* name in the directory; the path if the model is a file */
	char *path;
	int fd;			/* open for reading */
	uint64_t head;		/* position of the first tensor */
	uint64_t size, inode;	/* inode 0: there is no such file (only for an index) */
	uint64_t links;		/* number of hard links */
	uint64_t looks, changed;	/* results of model_looks with all = 0 and all = 1 */
};

/* The file of a tensor's bytes, and the position of the first one. */
struct model_place {
	uint32_t file;
	uint64_t at;
};

struct model {
	const char *path;
	int dir;			/* 1: path is a directory */
	struct model_file index;	/* index of a directory */
	struct model_file *file;	/* [nfiles], sorted by name */
	size_t nfiles;
	struct schema schema;		/* tensors, sorted by name */
	struct model_place *place;	/* [schema.n] */
	uint64_t said;		/* a hash of the metadata of safetensors files, without "format" */
	uint64_t indexed;	/* if there is an index: a hash of its pairs of tensor and file,
				 * less those found; 0 if the index is right */
};
#define MODEL_INIT { .schema = SCHEMA_INIT }

/* Open the model at path and read the headers of all its files.  m is MODEL_INIT before, and
 * after errors.  -ERR_DATA names a tensor or file that is not valid.  path must outlive m. */
int model_open(struct model *m, const char *path, struct err *e);
void model_close(struct model *m);

struct model_span {
	uint32_t tensor, file;
	uint64_t at;		/* position of its first byte in the file */
	size_t bytes, words;	/* size of the group; words in it, of exact_size(form) bytes */
	unsigned form;		/* enum exact_form */
};
void model_span(const struct model *m, uint32_t g, struct model_span *out);
/* Return the size of the largest group in bytes. */
size_t model_most(const struct model *m);
/* Return the size of all tensors in bytes. */
uint64_t model_bytes(const struct model *m);
/* Read the s->bytes bytes of a group into p.  -ERR_REFUSED if the file has become shorter. */
int model_read(const struct model *m, const struct model_span *s,
    unsigned char *p, struct err *e);

/* Return 0, or -ERR_REFUSED if a file or the index has changed since model_open.  A file that
 * was only linked or unlinked is not changed. */
int model_same(const struct model *m, struct err *e);
/* Check the files, but not the index, as model_same does; accept new times of last change
 * (ctime), and store them for later calls.  Call it after files were opened for writing and
 * before they are read: opening a file of a lower layer of overlayfs changes its ctime. */
int model_again(struct model *m, struct err *e);
/* Call fstatat(2) and return its result.  If the file changed just now, wait and repeat the
 * call, until any later change will give the file another time of last change (clock_settle). */
int model_stat(int dir, const char *name, int flags, struct stat *st);
/* Return a number for the state of the file called `name'.  It changes when the file is
 * replaced, written or given other permissions; with `all' also when the file is linked
 * or renamed, or its mtime is set back. */
uint64_t model_looks(const struct stat *st, const char *name, int all);
/* Return a number for the present state of the files that m has open, without the index. */
uint64_t model_stamp(const struct model *m);

/* Set hash to the hash of a model whose groups have these digests (XXH3-128 of their
 * bytes). */
void model_hash(const struct model *m, unsigned char (*digest)[MODEL_HASH],
    unsigned char hash[MODEL_HASH]);

/* ---- the models before and after a patch (frame mODL) ---- */

struct model_note {
	unsigned char before[MODEL_HASH];	/* zeros: the patch has a whole model */
	unsigned char after[MODEL_HASH];
	uint64_t *sum;		/* XXH3-64 of the new bytes of each group in the
				 * patch */
	size_t n, cap;
	struct buf changed;	/* a varint per group: number of words that changed;
				 * empty: unknown */
};
#define MODEL_NOTE_INIT { { 0 }, { 0 }, NULL, 0, 0, BUF_INIT }

/* Add the checksum of the next group; add the number of words that changed in it. */
int model_note_add(struct model_note *t, uint64_t sum, struct err *e);
int model_note_changed(struct model_note *t, uint64_t words, struct err *e);
/* Append the frame's bytes to out; read t from them.  -ERR_DATA: they are not a frame mODL. */
int model_note_encode(const struct model_note *t, struct buf *out,
    struct err *e);
int model_note_decode(struct model_note *t, const unsigned char *p, size_t n,
    struct err *e);
void model_note_release(struct model_note *t);

#endif
