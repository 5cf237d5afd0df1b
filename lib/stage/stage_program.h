/*
 * A program that is one stage: reader, stage, writer.
 */
#ifndef ACE_STAGE_PROGRAM_H
#define ACE_STAGE_PROGRAM_H

#include "pipe/filter.h"
#include "stage/stage.h"

struct err;

/* What a stage does with the values.  Where it changes them, frames between the
 * shards are passed on only if their type says that they are still true.  Where
 * it passes them on unchanged, they are not copied from pipe to pipe, and where
 * it does not even read them, they are not verified there. */
enum stage_values { STAGE_CHANGES, STAGE_READS, STAGE_IGNORES };

/* stage_program(f, s, v, path, e): sends all of path (NULL: standard input)
 * through s, which stays the caller's, to f's output. */
int stage_program(struct filter *f, struct stage *s, enum stage_values v,
    const char *path, struct err *e);

#endif
