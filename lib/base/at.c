#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "base/at.h"

static struct at *at_all;

void
at_add(struct at *a)
{
	a->next = at_all;
	at_all = a;
}

void
at_drop(struct at *a)
{
	struct at **p = &at_all;

	while (*p != NULL && *p != a)
		p = &(*p)->next;
	if (*p != NULL)
		*p = a->next;
}

/* Return the longest registered folder that path begins with, or NULL; set *len to its length.
 * If a state directory is inside a spool, its paths belong to the state directory. */
static const struct at *
at_find(const char *path, size_t *len)
{
	const struct at *a, *found = NULL;
	size_t n;

	for (*len = 0, a = at_all; a != NULL; a = a->next) {
		n = strlen(a->dir);
		if (n > *len && strncmp(path, a->dir, n) == 0 &&
		    (path[n] == '/' || path[n] == '\0')) {
			found = a;
			*len = n;
		}
	}
	return found;
}

int
at_dir(const char *path)
{
	size_t n;
	const struct at *a = at_find(path, &n);

	return a != NULL ? a->fd : AT_FDCWD;
}

const char *
at_name(const char *path)
{
	size_t n;

	if (at_find(path, &n) == NULL)
		return path;
	for (path += n; *path == '/'; path++)
		;
	return *path != '\0' ? path : ".";
}
