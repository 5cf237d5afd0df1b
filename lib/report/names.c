#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/scan.h"
#include "report/names.h"
#include "spool/inbox.h"

struct names {
	const unsigned char *id;
	char *out;
};

static int
names_each(void *arg, const char *file, struct err *e)
{
	struct names *x = arg;
	char name[SHARD_NAME + 1];
	unsigned char id[SHARD_ID];

	(void)e;
	if (!inbox_device(file, name, id) || name[0] == '\0' ||
	    memcmp(id, x->id, SHARD_ID) != 0)
		return 0;
	(void)snprintf(x->out, SHARD_NAME + 1, "%s", name);
	return 1;
}

int
names_beside(const char *path, const unsigned char id[SHARD_ID],
    char out[SHARD_NAME + 1])
{
	struct names x = { id, out };
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) + 1 : 0;
	char *dir = alloc_get(n + 2, 1, NULL);
	int found = 0;

	if (dir != NULL) {
		memcpy(dir, n != 0 ? path : ".", n != 0 ? n : 1);
		found = scan(dir, names_each, &x, NULL) == 1;
	}
	alloc_free(dir);
	if (!found)
		shard_hex(id, out);
	return found;
}
