/*
 * What ace-import does: files that trainers write become a dense stream, one
 * shard per file, one step each.  The files of a trainer that lives for a whole
 * run may come through one pipe.
 */
#ifndef ACE_STAGE_IMPORT_H
#define ACE_STAGE_IMPORT_H

#include <stddef.h>

#include "files/format.h"
#include "format/shard.h"

struct err;
struct filter;

struct stage_import_opts {
	struct filter *f;	/* the program's: output */
	int format;		/* -1: by the file's name */
	struct format_opts fo;
	struct shard sh;	/* of the first file */
	int many;		/* each path holds files, one after another */
};

/* stage_import_run(o, path, n, e): a cli_run with struct stage_import_opts; no
 * operands are standard input. */
int stage_import_run(void *o, char **path, size_t n, struct err *e);

#endif
