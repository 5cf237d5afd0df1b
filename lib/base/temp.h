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

/* temp_target(path, e): where path's last links lead, allocated: the name that
 * a rename would have to replace, which need not be there. */
char *temp_target(const char *path, struct err *e);
/* temp_beside(path, temp, fd, e): a temporary in path's directory; *temp its
 * name, allocated. */
int temp_beside(const char *path, char **temp, int *fd, struct err *e);
/* temp_place(fd, temp, path, name, e): fd is closed, checked, and what it was
 * open on gets the name path, and the mode of a file that was made there.
 * name: for messages. */
int temp_place(int fd, const char *temp, const char *path, const char *name,
    struct err *e);

#endif
