/*
 * A program gives up what it does not need, once its command line is read and
 * before it reads a byte of anybody's: of the files it keeps those that its
 * command line names, and it can start no program and open no connection. What
 * is in a stream can then make it do no more than that, whatever mistake is
 * found in it.
 *
 * Two walls, both of the kernel: Landlock, for files, and seccomp, which lets only
 * those system calls through that a filter needs once it has started, some of them
 * with some arguments only. What is not on that list fails with EPERM. A kernel
 * without one of the walls has the other; sandbox_enter says what is in force.
 */
#ifndef ACE_SANDBOX_H
#define ACE_SANDBOX_H

#include <sys/types.h>

struct err;

enum sandbox_want { SANDBOX_AUTO, SANDBOX_REQUIRE, SANDBOX_OFF };

enum sandbox_how {
	SANDBOX_READ,		/* a file, or a directory and all in it */
	SANDBOX_WRITE,		/* a file, and the directory it is made in */
	SANDBOX_TEMP,		/* a directory for temporary files */
	SANDBOX_DIR		/* a directory that is the program's own; its
				 * parent where it is to be made */
};

/* What a program does after its command line, beyond reading and writing what is
 * open: each allows some system calls more. */
enum sandbox_stage {
	SANDBOX_MAKES = 1,	/* files with names: -o, or a directory of its
				 * own; sandbox_allow sets it */
	SANDBOX_STARTS = 2,	/* one more process of itself */
	SANDBOX_WAITS = 4,	/* for that process */
	SANDBOX_OWNERS = 8	/* what it replaces keeps its owner and its rights */
};

struct sandbox {
	int fd;			/* of the rules; -1 there are none */
	int level;		/* Landlock's version, 0 the kernel has none */
	unsigned stages;	/* enum sandbox_stage, to be set before
				 * sandbox_enter */
	int narrows;		/* system calls are filtered */
	int partial;		/* one wall is missing, or both: the kernel has
				 * none */
	unsigned long long handled;
};

/* sandbox_begin(s): no rules yet, so that nothing is allowed. Where the kernel
 * has no Landlock, or refuses it, s->level is 0. */
void sandbox_begin(struct sandbox *s);

/* sandbox_allow(s, path, how, e): path stays allowed. One that is not there, or
 * is no file of a file system, such as a pipe, needs no rule. -ERR_SYS: there is
 * no memory. */
int sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e);

/*
 * sandbox_enter(s, want, says, n, e): from here on the rules hold, for this
 * process, its threads that are still to come, and its children. says char[n]
 * becomes what is in force. Returns 0, or -ERR_SYS when want is SANDBOX_REQUIRE
 * and not both walls stand; s is released in any case.
 */
int sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e);

/* sandbox_narrow(s, child): after SANDBOX_STARTS has done its work: no process is
 * started any more, and `child', which is waited for, is the only other one that a
 * signal can be sent to; 0: none is. */
void sandbox_narrow(const struct sandbox *s, pid_t child);

#endif
