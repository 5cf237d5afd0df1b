#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memlimit.h"

static uint64_t memlimit_bytes = UINT64_MAX;

/* Read the beginning of a small file as a string; "" on errors. */
static void
memlimit_text(const char *path, char *text, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t k = fd < 0 ? 0 : read(fd, text, n - 1);

	text[k > 0 ? k : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
}

/* Return memory.max of one cgroup, or UINT64_MAX if it is "max" or cannot be read. */
static uint64_t
memlimit_max(const char *dir)
{
	char path[PATH_MAX + 16], text[32], *end;
	unsigned long long v;

	(void)snprintf(path, sizeof(path), "%s/memory.max", dir);
	memlimit_text(path, text, sizeof(text));
	v = strtoull(text, &end, 10);
	return end == text ? UINT64_MAX : v;
}

uint64_t
memlimit_cgroup(const char *self, const char *root)
{
	char text[PATH_MAX], dir[PATH_MAX], *at;
	uint64_t least = UINT64_MAX, v;
	const size_t base = strlen(root);
	int k;

	memlimit_text(self, text, sizeof(text));
	/* the lines are number:controllers:path; cgroup version 2 is 0::path */
	at = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (at == NULL)
		return least;
	at += *at == '\n' ? 4 : 3;
	at[strcspn(at, "\n")] = '\0';
	k = snprintf(dir, sizeof(dir), "%s%s", root, at);
	if (k < 0 || (size_t)k >= sizeof(dir))
		return least;
	for (;;) {
		v = memlimit_max(dir);
		least = v < least ? v : least;
		at = strrchr(dir, '/');
		if (at == NULL || (size_t)(at - dir) < base)
			return least;
		*at = '\0';
	}
}

static void
memlimit_least(uint64_t v)
{
	memlimit_bytes = v < memlimit_bytes ? v : memlimit_bytes;
}

void
memlimit_look(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES);
	const long size = sysconf(_SC_PAGESIZE);
	struct rlimit l;

	if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
		memlimit_least(l.rlim_cur);
	if (getrlimit(RLIMIT_DATA, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
		memlimit_least(l.rlim_cur);
	if (pages > 0 && size > 0)
		memlimit_least((uint64_t)pages * (uint64_t)size);
	memlimit_least(memlimit_cgroup("/proc/self/cgroup", "/sys/fs/cgroup"));
}

uint64_t
memlimit_limit(void)
{
	return memlimit_bytes;
}

uint64_t
memlimit_of(uint64_t want)
{
	return memlimit_bytes / 4 < want ? memlimit_bytes / 4 : want;
}
