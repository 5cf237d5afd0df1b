/*
 * The interface between format.c and the code of one file format, called a
 * backend.  A backend finds the tensors of a file and reads or writes their
 * bytes.  The order of the values, the conversion of number types and the
 * division into chunks are the work of format.c.
 */
#ifndef ACE_FORMAT_IMPL_H
#define ACE_FORMAT_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "files/format.h"
#include "format/schema.h"
#include "format/text.h"

struct format_source {
	const struct backend_in *in;
	void *own;		/* private to the backend */
	char *path;		/* NULL: standard input */
	const char *name;	/* for messages */
	struct io *io;		/* the file, where the backend streams it */
	int fd;			/* below io, when it is not io's own; or -1 */
	struct schema schema;
	unsigned char *swap;	/* per tensor: it is big-endian; NULL: none is */
	struct text_kv note;
	uint64_t unnoted;	/* pairs of metadata that no shard can carry */
	int round;
	const char *only;	/* of the options */
	uint64_t *gap;		/* safetensors: [tensors + 1] bytes that are passed
				 * over before each, and at the end; or NULL */
	uint64_t where;		/* safetensors: where its data begins */
	int many, none;		/* io is the caller's; and had no more files */
	uint64_t rounded;

	size_t cur;		/* tensor being read; begun when open */
	int open;
	uint64_t at;		/* values of cur read so far */
	unsigned char *raw;	/* BACKEND_CHUNK bytes */
};

struct format_sink {
	const struct backend_out *out;
	void *own;
	struct io *io;
	const struct schema *schema;
	uint8_t *dtype;		/* of each tensor in the file */
	const struct format_sink_opts *opts;	/* only during create */
	size_t cur;
	int open;
	uint64_t at;
	unsigned char *raw;
};

enum { BACKEND_CHUNK = 64 * 1024 };

/*
 * The functions of a backend.  Each returns 0 or -ERR_x.  Any of them except
 * open and bytes may be NULL, which means that there is nothing to do.
 */
struct backend_in {
	/* fills schema (not finished), swap, note, own, io */
	int (*open)(struct format_source *s, const struct format_opts *o,
	    struct err *e);
	int (*begin)(struct format_source *s, struct err *e);	/* tensor cur */
	int (*bytes)(struct format_source *s, void *p, size_t n, struct err *e);
	int (*end)(struct format_source *s, struct err *e);
	int (*finish)(struct format_source *s, struct err *e);
	void (*close)(struct format_source *s);
};

struct backend_out {
	int (*create)(struct format_sink *s, struct err *e);
	int (*begin)(struct format_sink *s, struct err *e);
	int (*bytes)(struct format_sink *s, const void *p, size_t n,
	    struct err *e);
	int (*end)(struct format_sink *s, struct err *e);
	int (*finish)(struct format_sink *s, struct err *e);
	void (*close)(struct format_sink *s);
};

/* format_open_by(out, in, path, o, e): format_open with that backend. */
int format_open_by(struct format_source **out, const struct backend_in *in,
    const char *path, const struct format_opts *o, struct err *e);

/*
 * For backends that stream a file through io.  format_take reads exactly n
 * bytes of tensor cur, and fails with "truncated" if the file ends before.
 * format_last checks that the file ends here, and fails with "corrupt" if it
 * does not; with `many' another one may follow.  format_write_raw writes n bytes.
 */
int format_take(struct format_source *s, void *p, size_t n, struct err *e);
int format_last(struct format_source *s, struct err *e);
int format_write_raw(struct format_sink *s, const void *p, size_t n, struct err *e);

/*
 * format_strange: refuses what is not a file of this format, `is' in words, by its first n
 * bytes: -ERR_DATA, which says what it is.
 */
int format_strange(const struct format_source *s, const char *is,
    const unsigned char *p, size_t n, struct err *e);

/* format_wants(s, name): 0: the tensor of this name is to be left out. */
int format_wants(const struct format_source *s, const char *name);
/*
 * format_add: adds a tensor that a backend found to the schema.  The tensor's
 * kind and roles are guessed, and a file with more than FORMAT_MAX_TENSORS is
 * refused.  The tensor gets the given name; t->name is ignored.
 */
int format_add(struct format_source *s, struct schema_tensor *t,
    const char *name, struct err *e);

extern const struct backend_in safetensors_in, npz_in, npy_in, raw_in;
extern const struct backend_out safetensors_out, npz_out, npy_out, raw_out;

#endif
