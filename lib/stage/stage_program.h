/*
 * A program that is one stage: reader, stage, writer.
 */
#ifndef ACE_STAGE_PROGRAM_H
#define ACE_STAGE_PROGRAM_H

#include "pipe/filter.h"
#include "stage/stage.h"

struct err;

/* stage_program(f, s, changes, path, e): sends all of path (NULL: standard
 * input) through s, which stays the caller's, to f's output.  changes: the
 * stage changes values, so that frames between the shards are passed on only
 * if their type says that they are still true. */
int stage_program(struct filter *f, struct stage *s, int changes,
    const char *path, struct err *e);

#endif
