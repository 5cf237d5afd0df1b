/*
 * A program that reads or writes streams, from its command line to its exit
 * status.  Rows OPT_SHARED of its options are for its struct filter.
 */
#ifndef ACE_PROGRAM_H
#define ACE_PROGRAM_H

#include "base/cli.h"
#include "pipe/filter.h"

struct program {
	struct cli cli;
	struct filter f;
	/* how inputs are opened, see struct filter; NULL: by io_open */
	int (*open)(struct io **out, const char *path, struct err *e);
	cli_run *run;		/* with commands: NULL, since each has one */
};

/* program_main(p, argc, argv, o): the program, whose options are o's unless
 * p->cli.own is set; returns the exit status. */
int program_main(struct program *p, int argc, char **argv, void *o);

#endif
