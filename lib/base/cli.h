/*
 * The command line of all programs: a table of options, --help generated from it, and
 * one way to print an error and exit.
 */
#ifndef ACE_CLI_H
#define ACE_CLI_H

#include <stddef.h>

#include "base/opt.h"
#include "base/sandbox.h"

struct cli_line;
struct err;

/* Do the work of a program. o: its options (cli_main); path: its n operands; path[n] is NULL.
 * Return a number >= 0 for exit status 0, or an error < 0. */
typedef int cli_run(void *o, char **path, size_t n, struct err *e);

/* Handle an option, except those that all programs have, after it was set to val; if its
 * function reads a file, before that.  own: c->own; row: the first row of its name.  Return
 * 0, an error < 0, or 1 to end the program. */
typedef int cli_heard(void *own, const struct opt *row, const char *val,
    struct err *e);

/* A command of a program, `prog NAME [options]', with its own options. */
struct cli_command {
	const char *name;	/* NULL ends the table */
	const char *usage;	/* after the name: "[options] [FILE]" */
	const char *about;	/* description: one line, without a full stop */
	const struct opt *opt;
	cli_run *run;
	int one;		/* 1: takes at most one FILE */
};

struct cli {
	const char *prog;	/* "ace-score" */
	const char *usage;	/* after the name: "[-S DIR] [FILE]" */
	const char *about;	/* one sentence */
	const char *examples;	/* calls as users type them, one per line; or NULL */
	const struct opt *opt;	/* the program's options; NULL: only the common options */
	/* the structs that are filled by opt and by its OPT_SHARED rows */
	void *own, *shared;
	cli_heard *heard;	/* or NULL */
	const struct cli_command *commands;	/* NULL: no commands */
	/* 1: the command is optional, and an unknown word is an operand */
	int bare;
	const struct cli_command *command;	/* set by cli_command; NULL: none given */
	/* called before the message of an error is printed; or NULL */
	void (*failed)(const struct cli *c, const struct err *e);
	/* kern_name.  Its result is printed by --version; a result of NULL means that
	 * ACE_KERNEL names kernels that cannot be used */
	const char *(*kernels)(void);
	int one;		/* 1: takes at most one FILE */
	int mixed;		/* 1: options may follow operands, up to "--" */
	int replaces;		/* 1: the program renames new files to its operands' names */
	int models;		/* 1: operands may be folders with links to files */
	int open;		/* 1: no sandbox, for programs that start others */
	/* 1: a program that serves a network: report an incomplete sandbox.  Such a
	 * program may fork once; both processes then call sandbox_narrow */
	int serves;
	int quiet, verbose;	/* set by -q, -v; -vv is 2 */
	int sandbox;		/* an enum sandbox_want, set by --sandbox */
	struct sandbox box;	/* set by cli_parse: the sandbox in force */
	int first;		/* index of the first operand in argv */
	struct cli_line *line;	/* state of cli_parse */
};

/*
 * Set the defaults of c's options and parse the command line. If several rows have the
 * option's name, all are set; the common options are handled here. Return 0, 1 if the
 * program ends now (exit 0), as after --help, or an error < 0. Long options cannot be
 * abbreviated. Options end at the first operand unless c->mixed is set.
 *
 * When it has returned 0 the program is in its sandbox, as far as the system has one, unless
 * c->open or --sandbox off: it can open its operands, temporary files, /usr, and the files
 * that options name, with the rights given in the options' rows.
 */
int cli_parse(struct cli *c, int argc, char **argv, struct err *e);

/* Like cli_parse, for a program with commands.  The first word selects c->command, whose
 * options follow it.  Without a command only c's own options are valid, and --help lists
 * the commands.  A missing or unknown command is -ERR_USAGE unless c->bare is set. */
int cli_command(struct cli *c, int argc, char **argv, struct err *e);

/* Return the exit status of main for result r: 0 if r >= 0; else print "prog: message", unless
 * e->quiet is 1, and return -r. If standard output could not be written, return ERR_SYS in
 * place of 0, and report only that, or nothing if its reader has ended. */
int cli_exit(const struct cli *c, int r, const struct err *e);

/* Run a whole program: parse the command line, call run(o, path, n, e) or the command's
 * function with the operands, and return the exit status.  If c->own is NULL, it is first
 * set to o. */
int cli_main(struct cli *c, int argc, char **argv, cli_run *run, void *o);

/* Print a message on standard error: level 0 unless -q, level 1 with -v, level 2 with
 * -vv; nothing if c is NULL. */
void cli_say(const struct cli *c, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Return the columns of a terminal, 80 if it has no size, or 0 if fd is not a terminal.
 * For a terminal, set *rows (0: no size), unless rows is NULL. */
int cli_columns(int fd, int *rows);

#endif
