/*
 * A program that reads or writes streams, from command line to exit status. OPT_SHARED
 * rows of its options set its struct filter.
 */
#ifndef ACE_PROGRAM_H
#define ACE_PROGRAM_H

#include "base/cli.h"
#include "pipe/filter.h"

struct program {
	struct cli cli;
	struct filter f;
	/* opens inputs, as in struct filter; NULL: io_open */
	int (*open)(struct io **out, const char *path, struct err *e);
	/* NULL for a program with commands, each of which has its own */
	cli_run *run;
};

/* Run the program and return its exit status.  o: passed to p->run, and where the options are
 * stored unless p->cli.own is set. */
int program_main(struct program *p, int argc, char **argv, void *o);

#endif
