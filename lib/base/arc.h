/*
 * Read and write archives entry by entry: zip, and tar, plain or packed with gzip, bzip2, xz,
 * zstd or lz4. Read single packed files. Only arc.c includes libarchive. Nothing is unpacked
 * into a folder. Functions return 0 or -ERR_x unless stated otherwise.
 */
#ifndef ACE_ARC_H
#define ACE_ARC_H

#include <stddef.h>
#include <stdint.h>

struct arc;
struct err;
struct io;

enum { ARC_NAME = 1024, ARC_WHAT = 640 };

struct arc_entry {
	char name[ARC_NAME];	/* path in the archive; "" in a single packed file */
	char what[ARC_WHAT];	/* "'run.tar', entry 'x'", for messages */
	uint64_t size;		/* unpacked bytes; UINT64_MAX: not known */
	int folder, file;	/* file: a regular file with content of its own */
	int link, locked;	/* link: a link that is not `second'; locked: encrypted */
	/* 1: a tar's hard link, without content of its own, to a file that arc_safe accepted */
	int second;
};

/* Open the archive in io, which the caller frees after arc_free. ARC_ANY: recognise the
 * format. ARC_ZIP: accept only a zip in io that can seek, and read it by its directory. */
enum arc_how { ARC_ANY, ARC_ZIP };
int arc_open(struct arc **out, struct io *io, enum arc_how how, struct err *e);
/* Return 1 and the next entry, 0 at the end. */
int arc_next(struct arc *a, struct arc_entry *en, struct err *e);
/* Refuse, with -ERR_DATA, a name for which arc_leaves returns 1, an encrypted entry, a link
 * except `second', a device, or a file with the name of an earlier file. Call it for each
 * entry. */
int arc_safe(struct arc *a, const struct arc_entry *en, struct err *e);
/* Read n bytes of the entry; *got is less only at its end. -ERR_DATA if the archive has
 * unpacked to more than 256 MiB and more than 4000 times the bytes read from io. */
int arc_read(struct arc *a, void *p, size_t n, size_t *got, struct err *e);
/* Read the rest of a zip entry to check its checksum. Do nothing in other archives: a tar has
 * no checksum of an entry's contents. */
int arc_verify(struct arc *a, struct err *e);
void arc_free(struct arc *a);

/* Return 1 if the name begins with / or \, or if one of its parts, separated by / or \, is
 * "..". */
int arc_leaves(const char *name);

/* Write an archive into io, which the caller commits and frees. arc_put begins an entry of
 * `size' bytes, arc_write writes its next n bytes, and arc_put_end ends it. Time, owner and
 * mode of entries are constants, so that equal entries give equal bytes. */
struct arc_opts {
	const char *format;	/* libarchive's name: "zip", "pax" */
	const char *filter;	/* "gzip", "zstd"; NULL: none */
	const char *options;	/* "zip:compression=store", or NULL */
};
int arc_create(struct arc **out, struct io *io, const struct arc_opts *o,
    struct err *e);
int arc_put(struct arc *a, const char *name, uint64_t size, struct err *e);
int arc_write(struct arc *a, const void *p, size_t n, struct err *e);
int arc_put_end(struct arc *a, struct err *e);
/* Write the end of the archive. Without this call arc_free leaves a file that readers
 * recognise as truncated. */
int arc_finish(struct arc *a, struct err *e);

#endif
