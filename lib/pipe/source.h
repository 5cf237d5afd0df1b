/*
 * An operand of a program: a file of streams, standard input, a compressed file (gzip, xz,
 * zstd, ...), or a folder (spool, run, state) or an archive of such files. source_next
 * returns the files one by one. It returns the files of a folder in the order of their
 * names, with numbers of fewer digits first, and an archive's entries in the archive's order.
 * In folders and archives it skips hidden files, the file schema.aceg of a spool, and files
 * that have neither the name nor the beginning of a stream; in folders also links, and files
 * that are still being written.
 */
#ifndef ACE_SOURCE_H
#define ACE_SOURCE_H

#include <stddef.h>

struct err;
struct io;
struct source;

/* Open an operand; NULL or "-" is standard input. path is not copied. If a folder or an archive
 * has no streams, source_next returns -ERR_DATA. */
int source_open(struct source **out, const char *path, struct err *e);
/* Return 1 and the next file, or 0. The caller frees the file before the next call. */
int source_next(struct source *s, struct io **io, struct err *e);
/* Return the name of the file that source_next returned last: "spool/1/a.aceg", or
 * "run.tar:1/a.aceg" in an archive. */
const char *source_name(const struct source *s);
/* Return 1 for folders, archives and compressed files. */
int source_many(const struct source *s);
/* After source_next, also after its error: return 1 if the folder has more files, and it may be
 * called again. */
int source_left(const struct source *s);
void source_free(struct source *s);

/* Open all files of an operand, in sequence, as one file of streams. */
int source_io(struct io **out, const char *path, struct err *e);

#endif
