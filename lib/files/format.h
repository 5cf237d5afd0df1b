/*
 * Read and write tensor files of other programs. A source has a schema and then all
 * values in canonical order; a sink takes a schema and then all values. Each format has
 * its own source file, listed in format.c. Functions that return int return 0 or -ERR_x
 * unless stated otherwise.
 */
#ifndef ACE_FORMAT_H
#define ACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "format/schema.h"

struct err;
struct io;
struct text_kv;

enum format_id { FORMAT_SAFETENSORS, FORMAT_NPZ, FORMAT_NPY, FORMAT_RAW };

enum {
	FORMAT_MAX_TENSORS = 1 << 17	/* most tensors taken from a file: limits the memory */
};

/* Handle a pair of a key and its value.  A result other than 0 ends the reading. */
typedef int format_pair_fn(void *arg, const char *key, const char *value,
    struct err *e);

struct format_opts {
	uint32_t group_size;	/* 0: SCHEMA_GROUP */
	const char *only;	/* pattern of fnmatch(3) for tensor names; NULL: all */
	/* 1: raw was guessed from the name: refuse a file that begins as another format */
	int guessed;
	int round;		/* 1: round f64 values that are not exact in f32 */
	const char *name;	/* raw, npy: name of the tensor; NULL: "data" */
	uint64_t dim[SCHEMA_MAX_DIM];	/* raw: shape of the tensor */
	unsigned ndim;			/* 0: one dimension that has all values */
	/* safetensors: read several files in sequence from this input, which stays the caller's;
	 * or NULL */
	struct io *many;
	/* safetensors, 1: allow types that are only sent as bits; for reading only the table */
	int bits;
	format_pair_fn *pair;	/* safetensors: called with each pair of the metadata, or NULL */
	void *arg;		/* argument of pair */
};

/* Return the enum format_id for the ending of a file name, or -1 if it is unknown or path is
 * NULL. */
int format_guess(const char *path);
/* Return the enum format_id of a file that begins with the n bytes p, or -1 if unknown. */
int format_seen(const unsigned char *p, size_t n);
extern const char *const format_names[];	/* for num_choice */

struct format_source;
/* Open path (NULL or "-": standard input). Values are read in the order of the schema's
 * tensors.  With opts.many, open the next file in that input, with path as its name;
 * after the last one set *out to NULL. */
int format_open(struct format_source **out, enum format_id f, const char *path,
    const struct format_opts *o, struct err *e);
const struct schema *format_schema(const struct format_source *s);
/* Return the file's key=value metadata (__metadata__ in safetensors), with "safetensors." before
 * each key, without the pairs that format_unnoted counts. */
const struct text_kv *format_note(const struct format_source *s);
/* Return the number of metadata pairs left out: too many, too long or not valid in a shard. */
uint64_t format_unnoted(const struct format_source *s);
/* Return the byte at which the data of a safetensors file begins.  The data is in the schema's
 * order, without holes except for tensors that opts.only excludes. */
uint64_t format_where(const struct format_source *s);
/* Call fn with arg and the name and the file of each tensor that the index `path' lists
 * (model.safetensors.index.json).  Return 0, -ERR_x, or fn's result if that is not 0. */
int safetensors_index(const char *path, format_pair_fn *fn, void *arg, struct err *e);
/* Read the next n values in canonical order, as f32: exactly n, or an error.
 * A value that f32 cannot hold exactly is refused (-ERR_DATA), unless it is f64 and
 * opts.round is 1.  A finite value beyond the range of f32 is always refused. */
int format_read(struct format_source *s, float *x, size_t n, struct err *e);
/* After the last value, check the end of the file and its checksums. */
int format_end(struct format_source *s, struct err *e);
/* Return the number of values read so far that were rounded to f32. */
uint64_t format_rounded(const struct format_source *s);
void format_close(struct format_source *s);

struct format_sink_opts {
	/* safetensors: metadata, of which keys "safetensors.KEY" are written as KEY; or NULL */
	const struct text_kv *note;
	int f32;			/* 1: write all tensors as f32 */
};

struct format_sink;
/*
 * Create a sink that writes to io. The caller still owns io (and commits and frees it)
 * and the schema, which must last as long as the sink. o may be NULL. Values are written
 * in the dtypes of the schema, rounded to nearest even, except that raw files are always
 * f32, and that bf16 and f8, which numpy does not have, become f32 in npz and npy. Values
 * that dtype_from_f32 refuses, and dtypes that are only sent as bits (unless o->f32 is 1),
 * give -ERR_DATA.
 */
int format_create(struct format_sink **out, enum format_id f, struct io *io,
    const struct schema *s, const struct format_sink_opts *o, struct err *e);
/* format_write: write the next n values in canonical order.  format_finish: write the end of the
 * file; -ERR_DATA if values are missing. */
int format_write(struct format_sink *s, const float *x, size_t n, struct err *e);
int format_finish(struct format_sink *s, struct err *e);
void format_free(struct format_sink *s);

#endif
