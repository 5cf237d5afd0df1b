/* The names in a directory, in no particular order. */
#ifndef ACE_SCAN_H
#define ACE_SCAN_H

#include <dirent.h>

struct err;

/* Call each(arg, PATH/NAME, NAME, e) for every name except . and .. until a call returns
 * non-zero; with hidden = 0 leave out names that begin with a dot. Return what the last call
 * returned, or -ERR_SYS. A missing directory has no names. */
typedef int scan_fn(void *arg, const char *path, const char *name, struct err *e);
int scan(const char *path, int hidden, scan_fn *each, void *arg, struct err *e);

/* Like opendir(3), but look path up from its registered folder, if any (base/at.h). */
DIR *scan_open(const char *path);

#endif
