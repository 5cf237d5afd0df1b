/*
 * An operand of a program: a file of streams, standard input, a folder of such files
 * (spool, run, state), an archive of them, or a packed file (gzip, xz, zstd, ...). Its
 * files are returned one by one: those of a folder in the order of their names, with
 * numbers by value, so that a spool's files come by step and device; those of an archive
 * in the archive's order. From folders and archives, only files that begin or are named
 * as streams are returned, without hidden files and files that are still being received.
 * Links inside a folder are not followed.
 */
#ifndef ACE_SOURCE_H
#define ACE_SOURCE_H

#include <stddef.h>

struct err;
struct io;
struct source;

/* Open an operand; NULL or "-" is standard input. In a folder without streams source_next
 * returns -ERR_DATA. */
int source_open(struct source **out, const char *path, struct err *e);
/* Return 1 and the next file, or 0. The caller frees the file before the next call. */
int source_next(struct source *s, struct io **io, struct err *e);
/* Return the last file's name, "spool/1/a.aceg" or, in an archive,
 * "run.tar:1/a.aceg". */
const char *source_name(const struct source *s);
/* Return 1 for folders and archives. */
int source_many(const struct source *s);
/* Return 1 if a folder has more files, also after one that failed. */
int source_left(const struct source *s);
void source_free(struct source *s);

/* Open all files of an operand, in sequence, as one file of streams. */
int source_io(struct io **out, const char *path, struct err *e);

#endif
