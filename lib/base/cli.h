/*
 * The command line, the same in every program: a table of options, the text of
 * --help made from that table, and one way to print an error and to exit.
 */
#ifndef ACE_CLI_H
#define ACE_CLI_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct cli_opt {
	int key;		/* the letter, or >= CLI_LONG for long only */
	const char *name;	/* long name without dashes */
	const char *arg;	/* its name in --help; NULL: takes none */
	const char *help;	/* one line */
};
enum { CLI_LONG = 256 };

/* Takes an option: 0, or < 0 an error; a key that it does not know is 0 too. */
typedef int cli_set(void *o, int key, const char *val, struct err *e);
/* Does it all, with n operands; path[n] is NULL. */
typedef int cli_run(void *o, char **path, size_t n, struct err *e);

/* One of several things a program does, `prog NAME [options]': its options are
 * its own. */
struct cli_command {
	const char *name;	/* NULL ends the table */
	const char *usage;	/* after the name: "[options] [FILE]" */
	const char *about;	/* one line, without a full stop */
	const struct cli_opt *opt;
	cli_set *set;
	cli_run *run;
	int one;		/* takes one FILE at most */
};

struct cli {
	const char *prog;	/* "ace-score" */
	const char *usage;	/* after the name: "[-S DIR] [FILE]" */
	const char *about;	/* one sentence */
	const char *examples;	/* two calls, as one would type them */
	const struct cli_opt *opt;	/* ends with key 0 */
	const struct cli_command *commands;	/* NULL: it has none */
	const struct cli_command *command;	/* set by cli_command */
	const char *(*loops)(void);	/* in use, for --version: kern_name */
	int one;		/* takes one FILE at most */
	int open;		/* set by a program that starts others: it has
				 * no sandbox */
	int quiet, verbose;	/* set by -q, -v; -vv is 2 */
	int sandbox;		/* an enum sandbox_want, set by --sandbox */
	char confined[80];	/* set: the sandbox that is in force, in words */
	int first;		/* index of the first operand in argv */
};

/*
 * cli_parse(c, argc, argv, set, o, e): calls set(o, key, arg, e) for each
 * option; -q -v -h -V are dealt with here (every program has them).
 * Returns 0, 1 when --help or --version was printed (exit 0), -ERR_USAGE.
 * Abbreviated long options are refused; options end at the first operand.
 *
 * When it returns 0 the program is in its sandbox: of the files there are, it
 * may open its operands and the options whose arg is "FILE", write where -o
 * says, do all in the options whose arg is "DIR", and read and replace those
 * whose arg is "ARCHIVE".
 */
int cli_parse(struct cli *c, int argc, char **argv, cli_set *set, void *o,
    struct err *e);

/*
 * cli_command(c, argc, argv, set, o, e): for a program with commands.  The first
 * word names one, into c->command, and the options behind it are that one's.
 * Without a command only the common options are known, and --help lists the
 * commands.
 * Returns as cli_parse; no command, or one that is not in the table, is
 * -ERR_USAGE.
 */
int cli_command(struct cli *c, int argc, char **argv, cli_set *set, void *o,
    struct err *e);

/* cli_exit(c, r, e): the exit status for main to return after the result r: 0
 * when r >= 0; otherwise it prints "prog: message" once and returns -r.  Whether
 * all that was printed on standard output could be written is checked here. */
int cli_exit(const struct cli *c, int r, const struct err *e);

/* cli_main(c, argc, argv, set, run, o): a whole program: takes the command line,
 * calls run(o, path, n, e) with the operands, and returns the exit status. */
int cli_main(struct cli *c, int argc, char **argv, cli_set *set, cli_run *run,
    void *o);

/* cli_say(c, level, fmt...): prints a message on standard error: one of level 0
 * unless -q was given, one of level 1 only with -v, of level 2 with -vv.  When c is NULL nothing is
 * printed. */
void cli_say(const struct cli *c, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
