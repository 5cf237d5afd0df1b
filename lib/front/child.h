/*
 * A pipeline of programs that ace-cloud or ace-edge starts, listens to and ends.
 *
 * Each program's standard output is the next one's input.  The programs' lines on standard
 * error are passed one by one to a function of the caller, except with own_voice.  The
 * programs are one process group: they end before child_run returns, in every case.
 */
#ifndef ACE_CHILD_H
#define ACE_CHILD_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct err;

enum { CHILD_MOST = 10, CHILD_WORDS = 64 };

struct child {
	char *word[CHILD_WORDS + 1];	/* [n] its command line, then NULL */
	size_t n;
	int own_voice;		/* 1: its standard error is ours */
	int far;		/* 1: it connects to the cloud, whose programs write lines
				 * under their own names */
	pid_t pid;		/* 0: it has ended, or was not started */
	int status;		/* status from waitpid */
	int stopped;		/* 1: it ran on after a failure or a signal, so we ended it */
};

struct children {
	struct child child[CHILD_MOST];
	size_t n;
	struct err *e;		/* if r is not 0: why the pipeline was not built or started */
	int r;
	int circle;		/* 1: the last program's output is the first one's input */
	int inherit;		/* descriptor that programs with own_voice inherit; 0: none */
	int first;		/* result: index of the program that failed first; -1: none */
	pid_t group;		/* process group of the programs; 0: none was started */
	int hear;		/* pipe from the programs' standard errors; -1: it has ended */
	size_t held;		/* bytes in `line', which has no newline yet */
	char line[4096];
};

/* child_add(c, p, word, ..., NULL): add words to program p; p NULL: to a new program at
 * the end of the pipeline.  The words are copied.  A program ace-NAME is taken from this
 * program's directory if it is there.  Return the program.  After a failure, which c->e and
 * c->r keep, no words are added. */
struct child *child_add(struct children *c, struct child *p, const char *word,
    ...) __attribute__((sentinel));
void child_release(struct children *c);

/* child_quote(word, f): write a word quoted for a shell. */
void child_quote(const char *word, FILE *f);
/* child_print(c, f): write the pipeline as one would type it in a shell, unless c->r is set.
 * Release the pipeline and return c->r. */
int child_print(struct children *c, FILE *f);

/* Receives the programs' messages.  line(arg, line): called for each line, without its
 * newline.  tick(arg, failed): called at least once a second; failed: a program has
 * failed. */
struct child_ear {
	void (*line)(void *arg, const char *line);
	void (*tick)(void *arg, int failed);
	void *arg;
};

/* child_run(c, ear): start the pipeline and wait until all its programs have ended.  Return
 * 0 if none failed, 1 if one did (see c->first and the statuses), c->r if the pipeline could
 * not be started.  An end by SIGPIPE does not count as a failure.  After the first failure
 * the other programs are ended if they run for CHILD_GRACE more seconds.  INT, TERM and HUP,
 * unless ignored, first end the programs; then this process ends by the same signal. */
enum { CHILD_GRACE = 10 };
int child_run(struct children *c, const struct child_ear *ear);

/* child_cause(c): return the index of the program that caused the failure of the pipeline.
 * A program that only reports that its input or output broke off failed because of its
 * neighbour in the pipeline. */
size_t child_cause(const struct children *c);

/* child_status(p): return the exit status as a shell does: 128 plus the signal for a
 * killed program. */
int child_status(const struct child *p);

/* child_output(words, out, n, e): run one program without input and copy its output
 * into out, n - 1 bytes at most and a NUL. It inherits standard error. Return its
 * status as child_status, or -ERR_SYS. -ERR_DATA: the output is longer; the program was
 * killed. */
int child_output(char *const *words, char *out, size_t n, struct err *e);

/* child_exec(words, e): replace this process by a program. Return only on failure,
 * with -ERR_SYS. */
int child_exec(char *const *words, struct err *e);

#endif
