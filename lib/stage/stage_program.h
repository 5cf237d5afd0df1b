/*
 * A program that is one stage: reader, stage, writer.
 */
#ifndef ACE_STAGE_PROGRAM_H
#define ACE_STAGE_PROGRAM_H

#include "pipe/filter.h"
#include "stage/stage.h"

struct err;

/* stage_program(f, s, path, e): all of path (NULL: standard input) through s,
 * which stays the caller's, to f's output. */
int stage_program(struct filter *f, struct stage *s, const char *path,
    struct err *e);

#endif
