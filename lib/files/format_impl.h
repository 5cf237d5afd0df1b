/*
 * The interface between format.c and the code of one file format, its backend. A
 * backend finds the tensors of a file, in the order of their data, and reads or writes their
 * bytes; format.c goes from tensor to tensor, converts number types and divides into chunks.
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
	struct io *io;		/* the file */
	struct schema schema;
	unsigned char *swap;	/* [tensors] 1: big-endian; NULL: no tensor is */
	struct text_kv note;
	uint64_t unnoted;	/* see format_unnoted */
	int round;		/* `round' of the options */
	const char *only;	/* `only' of the options */
	/* safetensors: [tensors + 1] bytes to skip before each tensor and at the
	 * end; or NULL */
	uint64_t *gap;
	uint64_t where;		/* safetensors: where the data begins */
	int many, none;		/* many 1: io is the caller's; none 1: it has no more files */
	uint64_t rounded;	/* see format_rounded */

	size_t cur;		/* tensor being read; `open' is 1 once it is begun */
	int open;
	uint64_t at;		/* values of cur read so far */
	unsigned char *raw;	/* BACKEND_CHUNK bytes */
};

struct format_sink {
	const struct backend_out *out;
	void *own;		/* private to the backend */
	struct io *io;
	const struct schema *schema;
	uint8_t *dtype;		/* [tensors] types in the file; `create' may change them */
	const struct format_sink_opts *opts;	/* only during create */
	size_t cur;		/* tensor being written; open, at, raw as in format_source */
	int open;
	uint64_t at;
	unsigned char *raw;
};

enum { BACKEND_CHUNK = 64 * 1024 };

/*
 * The functions of a backend.  Those that return int return 0 or -ERR_x.  Any of them
 * except open and bytes may be NULL, which means that there is nothing to do.
 */
struct backend_in {
	/* fill in schema (not finished), swap, note, own and, unless `many', io */
	int (*open)(struct format_source *s, const struct format_opts *o,
	    struct err *e);
	int (*begin)(struct format_source *s, struct err *e);	/* before tensor cur is read */
	/* read exactly n bytes of tensor cur; end: called after the tensor's last byte */
	int (*bytes)(struct format_source *s, void *p, size_t n, struct err *e);
	int (*end)(struct format_source *s, struct err *e);
	int (*finish)(struct format_source *s, struct err *e);	/* after the last tensor */
	void (*close)(struct format_source *s);
};

struct backend_out {
	int (*create)(struct format_sink *s, struct err *e);
	int (*begin)(struct format_sink *s, struct err *e);
	int (*bytes)(struct format_sink *s, const void *p, size_t n, struct err *e);
	int (*end)(struct format_sink *s, struct err *e);
	int (*finish)(struct format_sink *s, struct err *e);
	void (*close)(struct format_sink *s);
};

/* For backends that stream a file through io. format_take: read exactly n bytes of
 * tensor cur, else "truncated". format_last: check that the file ends here, else
 * "corrupt"; with `many' another file may follow. format_write_raw: write n bytes. */
int format_take(struct format_source *s, void *p, size_t n, struct err *e);
int format_last(struct format_source *s, struct err *e);
int format_write_raw(struct format_sink *s, const void *p, size_t n, struct err *e);

/* Open the input as a file that can seek, has *size bytes and is at its start.  Copy an input
 * that cannot seek, or standard input from its middle, to a file without a name, so that
 * nothing remains however the program ends. */
int format_seekable(struct format_source *s, uint64_t *size, struct err *e);

/* Return -ERR_DATA for a file of another format than expected. is: that format, as in "an npz
 * file". The message also names what the first n bytes p are or, if unknown, quotes some. */
int format_strange(const struct format_source *s, const char *is,
    const unsigned char *p, size_t n, struct err *e);

/* Return 1, or 0 if the tensor of this name is excluded. */
int format_wants(const struct format_source *s, const char *name);
/* Add a tensor that a backend found to the schema under this name; t->name is ignored.
 * Kind and roles are guessed. More than FORMAT_MAX_TENSORS are refused. */
int format_add(struct format_source *s, struct schema_tensor *t,
    const char *name, struct err *e);

extern const struct backend_in safetensors_in, npz_in, npy_in, raw_in;
extern const struct backend_out safetensors_out, npz_out, npy_out, raw_out;

#endif
