/*
 * The names in a directory, in no order.
 */
#ifndef ACE_SCAN_H
#define ACE_SCAN_H

#include <dirent.h>

struct err;

/* Call each(arg, name, e) for every name that does not begin with a dot until a call
 * returns non-zero. Return what the last call returned. A missing directory has no
 * names. */
int scan(const char *path, int (*each)(void *, const char *, struct err *),
    void *arg, struct err *e);

/* opendir(3) by the descriptor of a registered folder (base/at.h). */
DIR *scan_open(const char *path);

#endif
