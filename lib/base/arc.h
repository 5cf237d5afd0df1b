/*
 * Archives, read and written entry by entry: tar, zip, 7z, cpio, packed with
 * gzip, bzip2, xz, lzma, zstd, lz4 or compress, and single files packed so.
 * Only arc.c includes libarchive.  Nothing is ever unpacked into a folder.
 * Functions return 0 or -ERR_x unless they say otherwise.
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
	char name[ARC_NAME];	/* path in the archive; "": a single file's */
	char what[ARC_WHAT];	/* "'run.tar', entry 'x'", for messages */
	uint64_t size;		/* UINT64_MAX: not known */
	int folder, file;	/* a file is what has bytes of its own */
	int link, locked;	/* locked: encrypted */
	int second;		/* a hard link to an earlier entry: its bytes were there */
};

/* arc_open(out, io, how, e): reads the archive in io, which stays the caller's;
 * if it can seek, zip and 7z are read by their directory, else as they come.
 * ARC_ZIP: nothing but a zip that can seek. */
enum arc_how { ARC_ANY, ARC_ZIP };
int arc_open(struct arc **out, struct io *io, enum arc_how how, struct err *e);
/* arc_next: 1 and the next entry, 0 at the end. */
int arc_next(struct arc *a, struct arc_entry *en, struct err *e);
/* arc_safe(a, en, e): refuses an entry that would leave the folder in which it
 * is unpacked, is a link to something else or a device, is encrypted, or has the name of an earlier
 * one.  To be called for each. */
int arc_safe(struct arc *a, const struct arc_entry *en, struct err *e);
/* arc_read: at most n bytes of the entry; *got is less only at its end.  An
 * entry that is thousands of times as large as what it was packed into is a
 * bomb, and refused. */
int arc_read(struct arc *a, void *p, size_t n, size_t *got, struct err *e);
/* arc_verify: reads what is left of an entry of a zip, for its checksum's sake; 7z's
 * is read to its end in any case, and others have none. */
int arc_verify(struct arc *a, struct err *e);
void arc_free(struct arc *a);

/* arc_leaves(name): 1 when unpacking a file of this name would write outside the
 * folder that the archive is unpacked in. */
int arc_leaves(const char *name);

/*
 * arc_create(out, io, o, e): writes an archive into io, which stays the
 * caller's.  Time, owner and mode of the entries are constants, so that the
 * same entries give the same bytes.
 */
struct arc_opts {
	const char *format;	/* as libarchive calls it: "zip", "pax" */
	const char *filter;	/* "gzip", "zstd"; NULL: none */
	const char *options;	/* "zip:compression=store", or NULL */
};
int arc_create(struct arc **out, struct io *io, const struct arc_opts *o,
    struct err *e);
int arc_put(struct arc *a, const char *name, uint64_t size, struct err *e);
int arc_write(struct arc *a, const void *p, size_t n, struct err *e);
int arc_put_end(struct arc *a, struct err *e);
/* arc_finish: writes the archive's end.  Without it, arc_free leaves what was
 * written cut, so that nobody takes it for whole. */
int arc_finish(struct arc *a, struct err *e);

#endif
