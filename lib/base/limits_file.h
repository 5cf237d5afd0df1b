/*
 * A file of limits: lines NAME VALUE, or NAME VALUE WHO for one device. Each name is a
 * row of an option table, with its default.
 */
#ifndef ACE_LIMITS_FILE_H
#define ACE_LIMITS_FILE_H

#include "base/io.h"
#include "base/opt.h"

#define LIMITS_FILE "limits"	/* file name, in any folder */

/* Parse the lines with WHO = who (NULL: those without WHO) into own, and all others into
 * `other', because they must be valid, too. -ERR_USAGE, with file and line, for a bad line.
 * Return 0 also if the file is absent. */
int limits_file_read(const char *path, const struct opt *rows, void *own,
    void *other, const char *who, struct err *e);
/* End a line, in place, at a comment: # at the beginning or after a blank. Replace \# by #. */
void limits_file_uncomment(char *line);
/* Write a file with the text `head', and each row with its default. -ERR_REFUSED if the file
 * exists. */
int limits_file_write(const char *path, const char *head, const struct opt *rows,
    enum io_sync sync, struct err *e);

#endif
