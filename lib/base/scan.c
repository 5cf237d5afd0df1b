#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/scan.h"

DIR *
scan_open(const char *path)
{
	const int fd = openat(AT(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d == NULL && fd >= 0)
		(void)close(fd);
	return d;
}

/* Return 1 for . and .., and without hidden for all names that begin with a dot. */
static int
scan_skips(const char *name, int hidden)
{
	return name[0] == '.' && (!hidden || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0);
}

int
scan(const char *path, int hidden, scan_fn *each, void *arg, struct err *e)
{
	DIR *d = scan_open(path);
	struct dirent *de;
	char *below;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	while (r == 0 && (errno = 0, de = readdir(d)) != NULL) {
		if (scan_skips(de->d_name, hidden))
			continue;
		below = alloc_path(path, de->d_name, e);
		r = below != NULL ? each(arg, below, de->d_name, e) : -ERR_SYS;
		alloc_free(below);
	}
	if (r == 0 && errno != 0)
		r = err_sys(e, "'%s'", path);
	(void)closedir(d);
	return r;
}
