/*
 * Files without a name, and files that do not have theirs yet.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

struct err;

/* temp_open(&fd, e): an empty file in $TMPDIR (or /tmp) that has no name any
 * more, so that nothing is left behind however the program ends. */
int temp_open(int *fd, struct err *e);

/* temp_create(path, fd, e): a new file, path ends with TEMP_NAME.  It is locked
 * while it is open (flock), so that temp_sweep(dir), which removes what killed
 * processes left there under such names, leaves it alone. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, int *fd, struct err *e);
void temp_sweep(const char *dir);

#endif
