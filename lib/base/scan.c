#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

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

int
scan(const char *path, int (*each)(void *, const char *, struct err *),
    void *arg, struct err *e)
{
	DIR *d = scan_open(path);
	struct dirent *de;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	while (r == 0 && (errno = 0, de = readdir(d)) != NULL)
		if (de->d_name[0] != '.')
			r = each(arg, de->d_name, e);
	if (r == 0 && errno != 0)
		r = err_sys(e, "'%s'", path);
	(void)closedir(d);
	return r;
}
