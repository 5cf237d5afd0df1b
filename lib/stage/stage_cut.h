/*
 * What ace-cut does: the chosen shards of files, folders and archives become a
 * stream, byte for byte; of the chosen tensors only their groups are sent.
 */
#ifndef ACE_STAGE_CUT_H
#define ACE_STAGE_CUT_H

#include <stddef.h>

#include "pipe/pick.h"

struct err;
struct filter;

struct stage_cut_opts {
	struct filter *f;	/* the program's: input and output */
	struct pick pick;
	const char *tensor;	/* a shell pattern, or NULL: all */
};

/* stage_cut_run(o, path, n, e): a cli_run with struct stage_cut_opts; no
 * operands are standard input.  When no shard is chosen: -ERR_DATA, "mismatch". */
int stage_cut_run(void *o, char **path, size_t n, struct err *e);

#endif
