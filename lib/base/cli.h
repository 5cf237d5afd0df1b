/*
 * The command line, the same in every program: a table of options, the text of
 * --help made from that table, and one way to print an error and to exit.
 */
#ifndef ACE_CLI_H
#define ACE_CLI_H

#include <stddef.h>

#include "base/opt.h"
#include "base/sandbox.h"

struct cli_line;
struct err;

/* Does it all, with n operands; path[n] is NULL. */
typedef int cli_run(void *o, char **path, size_t n, struct err *e);

/* Hears that an option was given: its first row, and its value. */
typedef int cli_heard(void *own, const struct opt *row, const char *val,
    struct err *e);

/* One of several things a program does, `prog NAME [options]': its options are
 * its own. */
struct cli_command {
	const char *name;	/* NULL ends the table */
	const char *usage;	/* after the name: "[options] [FILE]" */
	const char *about;	/* one line, without a full stop */
	const struct opt *opt;
	cli_run *run;
	int one;		/* takes one FILE at most */
};

struct cli {
	const char *prog;	/* "ace-score" */
	const char *usage;	/* after the name: "[-S DIR] [FILE]" */
	const char *about;	/* one sentence */
	const char *examples;	/* two calls, as one would type them */
	const struct opt *opt;	/* its options; NULL: only the common ones */
	void *own, *shared;	/* the structs that opt is for, and its rows
				 * OPT_SHARED */
	/* called with each option that was given, when it was taken; or NULL */
	cli_heard *heard;
	const struct cli_command *commands;	/* NULL: it has none */
	int bare;		/* with commands: none is needed, and what is not the
				 * name of one is an operand */
	const struct cli_command *command;	/* set by cli_command */
	const char *(*loops)(void);	/* in use, for --version: kern_name */
	int one;		/* takes one FILE at most */
	int mixed;		/* options may follow operands, up to "--" */
	int replaces;		/* its operands are replaced, by names beside
				 * them */
	int open;		/* set by a program that starts others: it has
				 * no sandbox */
	int serves;		/* set by one that faces a network: it says where
				 * the sandbox is less than whole. It starts another
				 * process of itself, and calls sandbox_narrow */
	int quiet, verbose;	/* set by -q, -v; -vv is 2 */
	int sandbox;		/* an enum sandbox_want, set by --sandbox */
	struct sandbox box;	/* set: the sandbox that is in force, */
	char confined[80];	/* and in words */
	int first;		/* index of the first operand in argv */
	struct cli_line *line;	/* while it is read */
};

/*
 * cli_parse(c, argc, argv, e): writes the defaults of c's options, and what is
 * said of them, where their rows say.  One that several rows have in common goes
 * to all of them; -q -v -h -V are dealt with here (every program has them).
 * Returns 0, 1 when --help or --version was printed (exit 0), -ERR_USAGE.
 * Abbreviated long options are refused; options end at the first operand.
 *
 * When it returns 0 the program is in its sandbox: of the files there are, it
 * may open its operands, and to those that its options name it has the right that
 * their rows give.
 */
int cli_parse(struct cli *c, int argc, char **argv, struct err *e);

/*
 * cli_command(c, argc, argv, e): for a program with commands.  The first word
 * names one, into c->command, and the options behind it are that one's.
 * Without a command only c's own options are known, and --help lists the
 * commands.
 * Returns as cli_parse; no command, or one that is not in the table, is
 * -ERR_USAGE unless c->bare is set.
 */
int cli_command(struct cli *c, int argc, char **argv, struct err *e);

/* cli_exit(c, r, e): the exit status for main to return after the result r: 0
 * when r >= 0; otherwise it prints "prog: message" once and returns -r.  Whether
 * all that was printed on standard output could be written is checked here. */
int cli_exit(const struct cli *c, int r, const struct err *e);

/* cli_main(c, argc, argv, run, o): a whole program: takes the command line,
 * calls run(o, path, n, e), or that of its command, with the operands, and returns
 * the exit status.  Where c->own is NULL the options are o's. */
int cli_main(struct cli *c, int argc, char **argv, cli_run *run, void *o);

/* cli_say(c, level, fmt...): prints a message on standard error: one of level 0
 * unless -q was given, one of level 1 only with -v, of level 2 with -vv.  When c is NULL nothing is
 * printed. */
void cli_say(const struct cli *c, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
