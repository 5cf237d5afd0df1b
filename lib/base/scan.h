/*
 * The names in a directory, in no order.
 */
#ifndef ACE_SCAN_H
#define ACE_SCAN_H

#include <dirent.h>

struct err;

/* scan(path, each, arg, e): calls each(arg, name, e) for every name that does
 * not begin with a dot, until a call returns other than 0, and returns what the
 * last call returned.  A directory that is not there has no names. */
int scan(const char *path, int (*each)(void *, const char *, struct err *),
    void *arg, struct err *e);

/* scan_open(path): opendir(3), from the descriptor of a folder above (base/at.h). */
DIR *scan_open(const char *path);

#endif
