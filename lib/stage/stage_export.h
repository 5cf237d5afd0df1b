/*
 * What ace-export does: one shard of a stream becomes a file that trainers
 * read.
 */
#ifndef ACE_STAGE_EXPORT_H
#define ACE_STAGE_EXPORT_H

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

/* stage_export_run(o, path, e): path NULL is standard input.  Exactly one
 * shard of the stream may be meant by step and device: none is -ERR_DATA,
 * several are -ERR_USAGE.  With many it may be any number, and the last values
 * of a file are written when the shard's end was verified, so that a file that
 * is whole is good. */
int stage_export_run(const struct stage_export_opts *o, const char *path,
    struct err *e);

#endif
