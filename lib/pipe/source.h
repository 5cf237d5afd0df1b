/*
 * An operand of a program: a file of streams, standard input, a folder of such
 * files (a spool, a run, a state), an archive of them, or one that is packed
 * (gzip, xz, zstd, ...).  Whatever it is, its files are handed out one after
 * another: those of a folder in the order of their names, with numbers by value,
 * so that a spool's come by run, step and device; those of an archive as they
 * stand in it.  In folders and archives only what begins as a stream counts;
 * names that begin with a dot and files that are being received do not.
 * Links inside a folder are not followed.
 */
#ifndef ACE_SOURCE_H
#define ACE_SOURCE_H

#include <stddef.h>

struct err;
struct io;
struct source;

/* source_open(out, path, e): path NULL or "-" is standard input.  A folder in
 * which there is no stream is -ERR_DATA. */
int source_open(struct source **out, const char *path, struct err *e);
/* source_next(s, io, e): 1 and the next file, 0 when there is none.  The file is
 * the caller's, and to be freed before the next call. */
int source_next(struct source *s, struct io **io, struct err *e);
/* source_name(s): what the last file is called, "spool/run/1/a.aceg" or, in an
 * archive, "run.tar:1/a.aceg". */
const char *source_name(const struct source *s);
/* source_many(s): 1 for folders and archives. */
int source_many(const struct source *s);
/* source_left(s): 1 where files of a folder are left, after one that failed, too. */
int source_left(const struct source *s);
/* source_again(s, e): looks into a folder again; from now on the files come that
 * were not there before.  1 there are some, 0 none; -ERR_SYS the folder is gone. */
int source_again(struct source *s, struct err *e);
void source_free(struct source *s);

/* source_io(out, path, e): all files of an operand as one, one after another,
 * which is a file of streams too. */
int source_io(struct io **out, const char *path, struct err *e);

#endif
