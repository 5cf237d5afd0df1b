/*
 * libaceg: read and write streams of gradient shards (ace-stream(5)).  This header is the
 * whole interface of the library.
 *
 * A shard is an ordered list of groups of f32 values.  The reader decodes every codec, but
 * refuses with -3 shards of differences to a model (ace-patch(1)) or a history (ace-expand(1)).
 *
 * A function that can fail takes a struct ace_error or NULL.  On an error it fills that
 * struct, and returns NULL or a negative number: -2 the call is wrong, -3 the data is bad,
 * -4 the system failed, -5 refused.  On success a function that returns int returns 0, unless
 * its comment says otherwise. */
#ifndef ACEG_H
#define ACEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACE_API __attribute__((visibility("default")))

struct ace_error {
	int code;		/* 2 to 5: the numbers above without sign */
	char message[512];	/* without newline */
};

/* The kind of a shard's values. */
enum ace_kind {
	ACE_GRADIENT = 0, ACE_DELTA = 1, ACE_SUM = 2, ACE_MEAN = 3,
	ACE_RESIDUAL = 4, ACE_MODEL = 5, ACE_HISTORY = 6
};

enum ace_dtype {
	ACE_F32 = 0, ACE_F16 = 1, ACE_BF16 = 2, ACE_F64 = 3, ACE_I32 = 4,
	ACE_I64 = 5, ACE_U8 = 6, ACE_BOOL = 7, ACE_F8E4M3 = 8, ACE_F8E5M2 = 9,
	ACE_I8 = 10, ACE_I16 = 11
};

struct ace_tensor {
	const char *name;	/* unique, 1 to 255 bytes of UTF-8 */
	enum ace_dtype dtype;	/* type in the model; values here are f32 */
	unsigned ndim;		/* number of dimensions, at most 8; 0: a scalar */
	uint64_t dim[8];	/* [ndim] */
	uint64_t numel;		/* number of elements; ignored when writing */
};

struct ace_shard {
	char run[64], device[64];	/* names, cut after 63 bytes when read; "": none */
	uint64_t step;
	uint64_t base_version;	/* version of the model that the gradient is for */
	double weight;		/* weight in an average: finite, > 0 */
	uint64_t samples;	/* training samples seen; 0: not stated */
	enum ace_kind kind;
	uint32_t contributors;	/* devices whose values are in the shard, >= 1 */
};
/* A shard with weight 1, one contributor, kind gradient; the rest is 0 or "". */
#define ACE_SHARD_INIT { "", "", 0, 0, 1.0, 0, ACE_GRADIENT, 1 }

struct ace_group {
	uint32_t index;		/* index of the group in the shard */
	uint32_t tensor;	/* index of its tensor in the schema */
	uint64_t offset;	/* position of its first value in the tensor */
	size_t n;		/* number of values */
	const float *value;	/* [n]; valid until the next call with the same reader */
	int sent;		/* 0: not in the stream, so all values are 0 */
};

/* ---- reading ---- */
struct ace_reader;

/* Returns a reader of fd, or NULL on an error.  ace_reader_free does not close fd.  Models of
 * more than 2^36 values are refused. */
ACE_API struct ace_reader *ace_reader_new(int fd, struct ace_error *e);
/* Goes to the next shard, and fills s and returns 1.  Returns 0 if all streams have ended
 * and were verified; < 0 on an error, such as an end of file without the end marker. */
ACE_API int ace_read_shard(struct ace_reader *r, struct ace_shard *s,
    struct ace_error *e);
/* Returns the *n tensors of the current shard, valid until the next shard. */
ACE_API const struct ace_tensor *ace_tensors(const struct ace_reader *r,
    size_t *n);
/* Fills g with the shard's next group and returns 1.  No index is left out.  Returns 0
 * when the shard is complete and verified: only then may a model use its values. */
ACE_API int ace_read_group(struct ace_reader *r, struct ace_group *g,
    struct ace_error *e);
/* Returns the value of a key of the shard's policy ("interval"), or NULL; valid until the
 * next call with r, and final once ace_read_group has returned 0.  Values of keys that
 * ace-stream(5) lists were checked: ace_read_group fails at an invalid one. */
ACE_API const char *ace_policy(const struct ace_reader *r, const char *key);
/* Returns the value of a key of the shard itself ("model.norm"), or NULL; valid until the
 * next shard. */
ACE_API const char *ace_key(const struct ace_reader *r, const char *key);
ACE_API void ace_reader_free(struct ace_reader *r);

/* ---- writing ---- */
struct ace_writer;

/* Returns a writer to fd, which stays open.  program: "name version arguments", written to
 * the stream's provenance; NULL: write none. */
ACE_API struct ace_writer *ace_writer_new(int fd, const char *program,
    struct ace_error *e);
/* Sets the tensors of the following shards, and copies t; may be called between shards.
 * group: elements per group, 0 for the default (65536). */
ACE_API int ace_write_tensors(struct ace_writer *w, const struct ace_tensor *t,
    size_t n, uint32_t group, struct ace_error *e);
/* The same with the tensors of r's current shard.  Does nothing if w has these tensors;
 * otherwise r's provenance is written, too, unless program was NULL. */
ACE_API int ace_write_tensors_of(struct ace_writer *w,
    const struct ace_reader *r, struct ace_error *e);
/* Sets a key of the next shard only; value NULL undoes an earlier call.  Keys match
 * [a-z0-9._-]{1,64}; ace-stream(5) lists the keys that the programs use. */
ACE_API int ace_write_key(struct ace_writer *w, const char *key,
    const char *value, struct ace_error *e);
/* Begins a shard.  The tensors must be set, and the shard before must have ended. */
ACE_API int ace_write_shard(struct ace_writer *w, const struct ace_shard *s,
    struct ace_error *e);
/* Begins a shard with s and with the tensors, keys and other data of r's current shard that
 * struct ace_shard cannot hold.  Until the shard ends, ace_read_group copies to w the
 * annotations that stay valid when values change. */
ACE_API int ace_write_shard_of(struct ace_writer *w, struct ace_reader *r,
    const struct ace_shard *s, struct ace_error *e);
/* Writes n values: the tensors' elements in their order, row by row.  A call may end within
 * a tensor or group; all calls for a shard together must give all elements. */
ACE_API int ace_write_values(struct ace_writer *w, const float *x, size_t n,
    struct ace_error *e);
/* Writes the time in seconds, 0 to 1e7, that each of the shard's n tensors took to compute
 * in the previous step.  Call this in a shard before its values. */
ACE_API int ace_write_times(struct ace_writer *w, const double *seconds,
    size_t n, struct ace_error *e);
/* Inside a shard, sends the groups that are complete so far, so that a reader gets them
 * while the rest is still computed. */
ACE_API int ace_write_flush(struct ace_writer *w, struct ace_error *e);
/* Ends the shard and sends all of it. */
ACE_API int ace_write_end(struct ace_writer *w, struct ace_error *e);
/* Ends the stream. Without this call, or if it fails, the stream has no end marker and every
 * reader refuses it. */
ACE_API int ace_writer_close(struct ace_writer *w, struct ace_error *e);
ACE_API void ace_writer_free(struct ace_writer *w);

ACE_API const char *ace_version(void);

#ifdef __cplusplus
}
#endif

#endif
