/*
 * A program that is one stage: reader, stage, writer.
 */
#ifndef ACE_STAGE_PROGRAM_H
#define ACE_STAGE_PROGRAM_H

#include "pipe/filter.h"
#include "stage/stage.h"

struct err;

/* stage_program(f, s, changes, path, e): all of path (NULL: standard input)
 * through s, which stays the caller's, to f's output.  changes: values are not
 * what they were, so that what stands between the shards goes on only if it is
 * still true. */
int stage_program(struct filter *f, struct stage *s, int changes,
    const char *path, struct err *e);

#endif
