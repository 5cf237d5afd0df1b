/*
 * Other people's tensor files, behind two small interfaces: a source gives a
 * schema and then all its values in canonical order; a sink takes a schema
 * and then all values.  One file per format; format.c names them.
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
	FORMAT_MAX_TENSORS = 1 << 17	/* of one file: bounds the memory */
};

struct format_opts {
	uint32_t group_size;
	int round;		/* accept f64, i32, i64 values not exact in f32 */
	const char *name;	/* raw, npy: the tensor's name, else "data" */
	uint64_t dim[SCHEMA_MAX_DIM];	/* raw: its shape */
	unsigned ndim;			/* 0: one dimension, all there is */
};

/* format_guess(path): by file name's ending; -1 when it does not tell. */
int format_guess(const char *path);
extern const char *const format_names[];	/* for num_choice */

struct format_source;
/* Opens path (NULL or "-": standard input).  The schema's tensors are in the
 * order the values come in. */
int format_open(struct format_source **out, enum format_id f, const char *path,
    const struct format_opts *o, struct err *e);
const struct schema *format_schema(const struct format_source *s);
/* key=value metadata the file has (safetensors' __metadata__): what is short
 * and has a key that a stream can carry. */
const struct text_kv *format_note(const struct format_source *s);
/* The next n values in canonical order, as f32; exactly n or an error.  A
 * value not exact in f32 is refused with tensor name and index unless round;
 * one beyond f32's range always. */
int format_read(struct format_source *s, float *x, size_t n, struct err *e);
/* After the last value: the file ends where it should, checksums agree. */
int format_end(struct format_source *s, struct err *e);
/* Values so far that lost something in f32. */
uint64_t format_rounded(const struct format_source *s);
void format_close(struct format_source *s);

struct format_sink_opts {
	const struct text_kv *note;	/* metadata (safetensors), or NULL */
	int f32;			/* all tensors as f32 */
	int deflate;			/* npz: compress */
};

struct format_sink;
/* io stays the caller's (commit and free), and so does the schema, which must
 * last as long as the sink.  o may be NULL.  Values are written in the
 * schema's dtypes, to nearest even (bf16, which numpy does not have, as
 * f32 in npz and npy; raw is f32 throughout); a finite one outside the dtype's
 * range is refused. */
int format_create(struct format_sink **out, enum format_id f, struct io *io,
    const struct schema *s, const struct format_sink_opts *o, struct err *e);
int format_write(struct format_sink *s, const float *x, size_t n,
    struct err *e);
int format_finish(struct format_sink *s, struct err *e);
void format_free(struct format_sink *s);

#endif
