/*
 * What ace-export does: one shard of a stream becomes a file that trainers
 * read.
 */
#ifndef ACE_STAGE_EXPORT_H
#define ACE_STAGE_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#include "files/format.h"

struct err;
struct filter;

struct stage_export_opts {
	struct filter *f;	/* the program's: input and output */
	int format;		/* -1: by the output's name */
	int has_step;
	uint64_t step;		/* of the shard, if has_step */
	const char *device;	/* of the shard, or NULL */
	const char *tensor;	/* a shell pattern, or NULL: all */
	int many;		/* all shards, one file after another */
	struct format_sink_opts so;
};

/* stage_export_run(o, path, n, e): a cli_run with struct stage_export_opts; *path
 * NULL is standard input.  Exactly one shard of the stream may be meant by step
 * and device: none is -ERR_DATA, several are -ERR_USAGE.  With many it may be any number, and the last values
 * of a file are written when the shard's end was verified, so that a file that
 * is whole is good. */
int stage_export_run(void *o, char **path, size_t n, struct err *e);

#endif
