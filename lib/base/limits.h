/*
 * A file of limits: lines NAME VALUE, or NAME VALUE WHO for one alone.  The names are
 * rows as options have them, with their defaults.
 */
#ifndef ACE_LIMITS_H
#define ACE_LIMITS_H

#include "base/io.h"
#include "base/opt.h"

#define LIMITS_FILE "limits"	/* what it is called, wherever it is */

/* limits_read(path, rows, own, other, who, e): takes the lines that are of `who', NULL:
 * of all, into own, and those of others into `other', since what is not taken has to be
 * right as well.  0 also where there is no such file. */
int limits_read(const char *path, const struct opt *rows, void *own,
    void *other, const char *who, struct err *e);
/* limits_uncomment(line): ends a line, in place, where a comment begins: with # at its
 * begin or after a blank.  What is written \# is a # of a name. */
void limits_uncomment(char *line);
/* limits_write(path, head, rows, sync, e): writes a file with all defaults, below the
 * comment `head'.  -ERR_REFUSED where there is one. */
int limits_write(const char *path, const char *head, const struct opt *rows,
    enum io_sync sync, struct err *e);

#endif
