/*
 * A model on disk: a safetensors or a GGUF file, or a directory as Hugging Face lays it
 * out, with model.safetensors.index.json and the files that it names.  Its tensors are
 * known by name, whatever file they are in; their bits are read group by group, in
 * the order of their names.
 *
 * Two models with the same tensors, of the same types and shapes, with the same bits
 * have the same hash, however they are spread over files.
 */
#ifndef ACE_MODEL_H
#define ACE_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "files/gguf.h"
#include "format/schema.h"

struct err;
struct format_opts;
struct format_source;
struct slice;
struct stat;

enum {
	MODEL_HASH = 16,
	MODEL_HEX = 2 * MODEL_HASH + 1,
	MODEL_GROUP = 1 << 19,	/* values of a group; it is in every hash */
	MODEL_FILES = 1000
};

struct model_file {
	char *name;		/* in the directory; of a file, its path */
	char *path;
	int fd;			/* for reading */
	uint64_t size, inode;	/* inode 0: there is no such file */
	uint64_t links, looks, changed;	/* model_looks, without and with all */
	int made;		/* by us, without a name; path is what of */
	int lent;		/* it is another model's, which closes it */
};

/* Where a tensor's bytes are. */
struct model_place {
	uint32_t file;
	uint64_t at;
};

struct model {
	const char *path;
	int dir;
	struct model_file index;	/* of a directory: path, and how it looks */
	struct model_file *file;	/* [nfiles], by name */
	size_t nfiles;
	struct schema schema;		/* tensors by name */
	struct model_place *place;	/* [schema.n] */
	int gguf;
	struct gguf_keys keys;		/* of a GGUF file */
	uint64_t said;			/* a hash of the metadata of safetensors
					 * files, "format" apart */
	struct slice *slice;		/* [schema.n] what the files have of each
					 * tensor; NULL: all (parts.h) */
};
#define MODEL_INIT { .schema = SCHEMA_INIT }

/* model_open(m, path, e): looks at the headers of all files.  -ERR_DATA with the
 * tensor's or the file's name when they are not what they should be.  path must
 * last as long as m. */
int model_open(struct model *m, const char *path, struct err *e);
void model_close(struct model *m);
/* model_find(m, name): the number of a tensor, or -1. */
ssize_t model_find(const struct model *m, const char *name);

/* A group of a model, or what it has of it. */
struct model_span {
	uint32_t tensor, file;
	uint64_t at;		/* of its first byte in the file */
	size_t bytes, words;
	unsigned form;		/* enum exact_form */
};
void model_span(const struct model *m, uint32_t g, struct model_span *out);
/* model_most(m): bytes of the largest group. */
size_t model_most(const struct model *m);
/* model_bytes(m): of all tensors. */
uint64_t model_bytes(const struct model *m);
/* model_read(m, s, p, e): the bytes of a group, exactly. */
int model_read(const struct model *m, const struct model_span *s,
    unsigned char *p, struct err *e);

/* model_source(out, path, o, e): as format_open, of the folder of a model: its tensors are
 * read in the order of their names, whatever file each is in.  1; 0: path is no folder. */
int model_source(struct format_source **out, const char *path,
    const struct format_opts *o, struct err *e);

#define MODEL_INDEX "model.safetensors.index.json"
#define MODEL_SINGLE "model.safetensors"

/* model_same(m, e): -ERR_REFUSED when a file, or the index, is not as it was at
 * model_open. */
int model_same(const struct model *m, struct err *e);
/* model_again(m, e): the same, but for the times of last change, which are taken anew:
 * before anything is read, when it was opened for writing, which may change them where
 * a file comes from another layer. */
int model_again(struct model *m, struct err *e);
/* model_stat(dir, name, flags, st): fstatat(2), where nothing that changes the file from
 * now on can leave it with the same time of last change. */
int model_stat(int dir, const char *name, int flags, struct stat *st);
/* model_looks(st, name, all): return a number of a file of that name that is another one
 * when the file was replaced, written, or given other rights; all: or linked, renamed,
 * or given the time back that it had. */
uint64_t model_looks(const struct stat *st, const char *name, int all);
/* model_stamp(m): how all its files look now, in a number. */
uint64_t model_stamp(const struct model *m);

/* model_hash(m, slice, digest, hash): of a model whose groups have these digests,
 * XXH3-128 of their bytes; or of these slices of its tensors, where slice is not NULL. */
void model_hash(const struct model *m, const struct slice *slice,
    unsigned char (*digest)[MODEL_HASH], unsigned char hash[MODEL_HASH]);
void model_hex(const unsigned char hash[MODEL_HASH], char hex[MODEL_HEX]);
/* model_unhex(hex, hash): 1 if these are its digits and nothing else. */
int model_unhex(const char *hex, unsigned char hash[MODEL_HASH]);

/* ---- what a patch says of the models before and after (frame mODL) ---- */

struct model_note {
	unsigned char before[MODEL_HASH];	/* zeros: the patch is whole */
	unsigned char after[MODEL_HASH];
	uint64_t *sum;		/* XXH3-64 of each group's bytes after, of those
				 * that the patch has */
	size_t n, cap;
	struct buf changed;	/* varint of each: how many of its words changed;
				 * empty: it is not said */
};
#define MODEL_NOTE_INIT { { 0 }, { 0 }, NULL, 0, 0, BUF_INIT }

int model_note_add(struct model_note *t, uint64_t sum, struct err *e);
/* model_note_changed(t, words, e): how many changed, of the next group. */
int model_note_changed(struct model_note *t, uint64_t words, struct err *e);
int model_note_encode(const struct model_note *t, struct buf *out,
    struct err *e);
int model_note_decode(struct model_note *t, const unsigned char *p, size_t n,
    struct err *e);
void model_note_release(struct model_note *t);

#endif
