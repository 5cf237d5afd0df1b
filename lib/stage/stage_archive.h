/*
 * Runs in archives: an entry for each shard, RUN/STEP/DEVICE.aceg as in a
 * spool, and a stream of its own.  Entries are made from what a shard says of
 * itself, and files from that as well, never from the name of an entry: so that
 * no archive can name a place to write to.
 */
#ifndef ACE_STAGE_ARCHIVE_H
#define ACE_STAGE_ARCHIVE_H

#include <stddef.h>
#include <stdio.h>

#include "pipe/filter.h"
#include "pipe/pick.h"

struct err;

struct stage_archive_opts {
	struct filter *f;	/* the output of create and append */
	struct pick pick;
	const char *format;	/* tar, tar.gz, zip, ...; NULL: as the output's
				 * name ends */
	const char *into;	/* the folder to extract into */
	int append;		/* to what is at f->output */
};

/* stage_archive_create(o, path, n, e): the shards of n operands. */
int stage_archive_create(const struct stage_archive_opts *o, char **path,
    size_t n, struct err *e);
/* stage_archive_list(o, path, f, e): a line for each shard of an operand. */
int stage_archive_list(const struct stage_archive_opts *o, const char *path,
    FILE *f, struct err *e);
/* stage_archive_extract(o, path, e): each shard as a file below o->into. */
int stage_archive_extract(const struct stage_archive_opts *o, const char *path,
    struct err *e);

#endif
