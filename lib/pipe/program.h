/*
 * A program that reads or writes streams, from its command line to its exit
 * status: the options of struct filter beside its own, then one call.
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
	cli_set *set;		/* options of its own; with commands: NULL, */
	cli_run *run;		/* since each has these two */
	void *o;
};

/* program_main(p, argc, argv, o): calls p's or its command's set and run with
 * o; returns the exit status. */
int program_main(struct program *p, int argc, char **argv, void *o);

#endif
