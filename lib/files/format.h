/*
 * Reads and writes the tensor files of other programs.  A source gives a schema
 * and then all values in canonical order; a sink takes a schema and then all
 * values.  Each format has a source file of its own; format.c lists them.
 * Functions that return int return 0 or -ERR_x unless they say otherwise.
 */
#ifndef ACE_FORMAT_H
#define ACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "format/schema.h"

struct buf;
struct err;
struct io;
struct text_kv;

enum format_id { FORMAT_SAFETENSORS, FORMAT_NPZ, FORMAT_NPY, FORMAT_RAW };

enum {
	FORMAT_MAX_TENSORS = 1 << 17	/* per file: bounds the memory */
};

/* Two texts of a file that belong together. */
typedef int format_pair_fn(void *arg, const char *key, const char *value,
    struct err *e);

struct format_opts {
	uint32_t group_size;
	const char *only;	/* tensors whose names match this, and no others */
	int guessed;		/* raw: by the name; what is another kind's is not it */
	int round;		/* accept f64 values not exact in f32 */
	const char *name;	/* raw, npy: the tensor's name, else "data" */
	uint64_t dim[SCHEMA_MAX_DIM];	/* raw: its shape */
	unsigned ndim;			/* 0: one dimension, all there is */
	struct io *many;	/* safetensors: read here, files behind each other */
	int bits;		/* safetensors: any type; only what is there is
				 * asked for, not its values */
	format_pair_fn *pair;	/* safetensors: is told all metadata, or NULL */
	void *arg;
};

/* format_guess(path): the enum format_id that the ending of the file name
 * stands for, or -1 when it stands for none. */
int format_guess(const char *path);
/* format_seen(p, n): the one that a file begins so; -1: none that is known. */
int format_seen(const unsigned char *p, size_t n);
extern const char *const format_names[];	/* for num_choice */

struct format_source;
/* Opens path (NULL or "-": standard input).  The values are read in the order
 * of the schema's tensors.  With opts.many the next of the files in it, path
 * being its name; *out is NULL when there are no more. */
int format_open(struct format_source **out, enum format_id f, const char *path,
    const struct format_opts *o, struct err *e);
const struct schema *format_schema(const struct format_source *s);
/* The file's key=value metadata (__metadata__ in safetensors).  Pairs that are
 * too long, or whose key a stream cannot carry, are left out. */
const struct text_kv *format_note(const struct format_source *s);
/* How many pairs of its metadata are not in format_note, since no shard carries them. */
uint64_t format_unnoted(const struct format_source *s);
/* Where the data of a safetensors file begins; they are without holes, in the
 * order of the schema. */
uint64_t format_where(const struct format_source *s);
/* safetensors_index(path, fn, about, arg, e): calls fn for each tensor that a
 * model.safetensors.index.json names, and the file it is in; and about, if it is
 * not NULL, for what is text in its metadata. */
int safetensors_index(const char *path, format_pair_fn *fn,
    format_pair_fn *about, void *arg, struct err *e);
/* Where a tensor that is in a file is a slice of another, as an index says. */
struct format_slice {
	const char *name;
	int ndim;
	uint64_t offset[SCHEMA_MAX_DIM], shape[SCHEMA_MAX_DIM],
	    of[SCHEMA_MAX_DIM];
};
typedef int format_slice_fn(void *arg, const struct format_slice *s,
    struct err *e);
/* safetensors_slices(path, rank, fn, arg, e): calls fn for each tensor that such an
 * index names; rank[0] of rank[1] are what it says of itself, if it does. */
int safetensors_slices(const char *path, uint64_t rank[2], format_slice_fn *fn,
    void *arg, struct err *e);
/* safetensors_quote(b, s, e): a JSON string, quotes and all. */
int safetensors_quote(struct buf *b, const char *s, struct err *e);
/* Reads the next n values in canonical order, as f32: exactly n, or an error.
 * A value that f32 cannot hold exactly is refused, with the tensor's name and
 * the index, unless it is f64 and opts.round is set.  A finite value beyond the range of f32
 * is always refused. */
int format_read(struct format_source *s, float *x, size_t n, struct err *e);
/* To be called after the last value: checks that the file ends where it should
 * and that its checksums agree. */
int format_end(struct format_source *s, struct err *e);
/* How many of the values read so far were rounded to f32. */
uint64_t format_rounded(const struct format_source *s);
void format_close(struct format_source *s);

struct format_sink_opts {
	const struct text_kv *note;	/* metadata (safetensors), or NULL */
	int f32;			/* all tensors as f32 */
};

struct format_sink;
/*
 * The caller still owns io (and commits and frees it) and the schema, which
 * must last as long as the sink.  o may be NULL.  Values are written in the
 * dtypes of the schema, rounded to nearest even, except that raw files are
 * always f32, and that bf16, which numpy does not have, becomes f32 in npz and
 * npy.  A finite value outside the range of its dtype is refused.
 */
int format_create(struct format_sink **out, enum format_id f, struct io *io,
    const struct schema *s, const struct format_sink_opts *o, struct err *e);
int format_write(struct format_sink *s, const float *x, size_t n,
    struct err *e);
int format_finish(struct format_sink *s, struct err *e);
void format_free(struct format_sink *s);

#endif
