#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"

int
temp_open(int *fd, struct err *e)
{
	const char *dir = getenv("TMPDIR");
	size_t n;
	char *path;
	int r = 0;

	if (dir == NULL || dir[0] == '\0')
		dir = "/tmp";
	n = strlen(dir) + sizeof("/ace.XXXXXX");
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s/ace.XXXXXX", dir);
	if ((*fd = mkostemp(path, O_CLOEXEC)) < 0)
		r = err_sys(e, "'%s'", path);
	else
		(void)unlink(path);
	alloc_free(path);
	return r;
}

int
temp_create(char *path, int *fd, struct err *e)
{
	size_t n = strlen(path);
	struct stat st;
	int locked;

	for (;;) {
		memcpy(path + n - 6, "XXXXXX", 6);
		if ((*fd = mkostemp(path, O_CLOEXEC)) < 0)
			return err_sys(e, "'%s'", path);
		locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
		/* a file system without locks has nobody who sweeps */
		if (!locked && errno != EWOULDBLOCK)
			return 0;
		if (fstat(*fd, &st) < 0)
			break;
		if (locked && st.st_nlink == 1)
			return 0;
		/* swept away before the lock was there, or about to be */
		(void)close(*fd);
	}
	(void)err_sys(e, "'%s'", path);
	(void)close(*fd);
	(void)unlink(path);
	return -ERR_SYS;
}

void
temp_sweep(const char *dir)
{
	const size_t fixed = sizeof(TEMP_NAME) - 7;	/* less the Xs */
	const struct dirent *de;
	DIR *d = opendir(dir);
	size_t n;
	int fd;

	while (d != NULL && (de = readdir(d)) != NULL) {
		n = strlen(de->d_name);
		if (n < fixed + 6 || strncmp(de->d_name + n - fixed - 6,
		    TEMP_NAME, fixed) != 0)
			continue;
		fd = openat(dirfd(d), de->d_name, O_RDONLY | O_CLOEXEC |
		    O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)unlinkat(dirfd(d), de->d_name, 0);
		if (fd >= 0)
			(void)close(fd);
	}
	if (d != NULL)
		(void)closedir(d);
}
