/*
 * A program drops the access it does not need, after parsing its command line and before
 * reading its input.  It keeps access only to what the command line names, to the folders of
 * output and temporary files, and to /usr, and can start no program and open no connection.
 * A stream that exploits a bug can do no more than that.
 *
 * The kernel enforces this in two ways: Landlock for files, and seccomp, which allows
 * only the system calls that a running filter needs, some only with certain arguments. If
 * the kernel lacks one, the other still works; sandbox_enter says what is in force.
 */
#ifndef ACE_SANDBOX_H
#define ACE_SANDBOX_H

#include <sys/types.h>

struct err;

enum sandbox_want { SANDBOX_AUTO, SANDBOX_REQUIRE, SANDBOX_OFF };

enum sandbox_how {
	SANDBOX_READ,		/* a file, or a directory and all in it */
	SANDBOX_LINKS,		/* the same, and files to which the directory's links point */
	SANDBOX_WRITE,		/* a file, and files in the directory of its target */
	SANDBOX_TEMP,		/* a directory for temporary files */
	/* the program's own directory; its parent if the directory is to be created */
	SANDBOX_DIR
};

/* The work of a program after its command line, beyond reading and writing open files;
 * each stage allows more system calls. */
enum sandbox_stage {
	SANDBOX_MAKES = 1,	/* create named files (-o, or in its own directory);
				 * sandbox_allow sets it */
	SANDBOX_STARTS = 2,	/* start one more process of itself */
	SANDBOX_WAITS = 4,	/* wait for that process */
	SANDBOX_OWNERS = 8	/* keep owner and permissions of replaced files */
};

struct sandbox {
	int fd;			/* descriptor of the rules; -1: none */
	int level;		/* Landlock's version, 0: not supported */
	unsigned stages;	/* enum sandbox_stage, set before sandbox_enter */
	int narrows;		/* 1: system calls are filtered, so sandbox_narrow works */
	int partial;		/* 1: Landlock or seccomp is not in force */
	unsigned long long handled;	/* Landlock's rights that the rules restrict */
};

/* Start without rules: nothing is allowed. s->level is 0 if the kernel has no Landlock
 * or refuses it. */
void sandbox_begin(struct sandbox *s);

/* Allow path, unless it is NULL, "" or "-". A missing file to read, or an object outside file
 * systems such as a pipe, needs no rule. -ERR_SYS: no memory or descriptor, or path too long;
 * -ERR_REFUSED: an unsafe link at the end of a path to write (temp_target). */
int sandbox_allow(struct sandbox *s, const char *path, enum sandbox_how how,
    struct err *e);

/* Enforce the rules for this process, its future threads and its children.  Write to
 * says[n] what is in force.  Return 0, or -ERR_SYS if want is SANDBOX_REQUIRE and a
 * mechanism is missing.  s->fd is closed in any case; keep s for sandbox_narrow. */
int sandbox_enter(struct sandbox *s, enum sandbox_want want, char *says,
    unsigned long n, struct err *e);

/* Allow no further process; call it after the process of SANDBOX_STARTS was started. Allow
 * waiting for `child' and signals to it; 0: the program waits for no process. */
void sandbox_narrow(const struct sandbox *s, pid_t child);

#endif
