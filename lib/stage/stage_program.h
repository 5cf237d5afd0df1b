/*
 * A program that is one stage: its command line, then reader, stage, writer.
 */
#ifndef ACE_STAGE_PROGRAM_H
#define ACE_STAGE_PROGRAM_H

#include "base/cli.h"
#include "pipe/filter.h"
#include "stage/stage.h"

struct err;

/* What a stage does with the values.  Where it changes them, frames between the
 * shards are passed on only if their type says that they are still true.  Where
 * it passes them on unchanged, they are not copied from pipe to pipe, and where
 * it does not even read them, they are not verified there. */
enum stage_values { STAGE_CHANGES, STAGE_READS, STAGE_IGNORES };

/* A stage that is a program, and maybe a part of another; o are its options,
 * for which it has a table of rows. */
struct stage_kind {
	/* o and f, the program's, must live as long as the stage */
	int (*make)(struct stage **out, void *o, const struct filter *f,
	    struct err *e);
	enum stage_values values;
};

/* stage_program_pass(f, s, v, path, e): sends all of path (NULL: standard input)
 * through s, which stays the caller's, to f's output. */
int stage_program_pass(struct filter *f, struct stage *s, enum stage_values v,
    const char *path, struct err *e);

/* stage_program(k, o, c, argc, argv): the whole program, to its exit status. */
int stage_program(const struct stage_kind *k, void *o, const struct cli *c,
    int argc, char **argv);

#endif
