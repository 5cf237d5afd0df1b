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

struct cli;
struct err;
struct filter;

struct stage_import_opts {
	struct filter *f;	/* the program's: output */
	int format;		/* -1: by the file's name */
	struct format_opts fo;
	struct shard sh;	/* of the first file */
	char **path;
	size_t npath;
	int many;		/* each path holds files, one after another */
	const struct cli *cli;	/* whom to speak for */
};

int stage_import_run(const struct stage_import_opts *o, struct err *e);

#endif
