#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
