#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/pack.h"
#include "base/scan.h"
#include "report/names.h"

struct names {
	const unsigned char *id;
	char *out;
};

/* Up to the first dot, %XX as the byte that it is; 0 it is no such name. */
static int
names_decode(const char *file, char out[SHARD_NAME + 1])
{
	char hex[3] = "", *end;
	size_t n;

	for (n = 0; *file != '.' && *file != '\0' && n < SHARD_NAME; file++) {
		if (*file != '%') {
			out[n++] = *file;
			continue;
		}
		if (file[1] == '\0' || file[2] == '\0')
			return 0;
		memcpy(hex, file + 1, 2);
		out[n++] = (char)strtoul(hex, &end, 16);
		if (*end != '\0' || out[n - 1] == '\0')
			return 0;
		file += 2;
	}
	out[n] = '\0';
	return *file == '.';
}

static int
names_each(void *arg, const char *file, struct err *e)
{
	struct names *x = arg;
	char name[SHARD_NAME + 1];
	unsigned char id[SHARD_ID];

	(void)e;
	if (!names_decode(file, name))
		return 0;
	pack_hash128(name, strlen(name), id);
	if (memcmp(id, x->id, SHARD_ID) != 0)
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
