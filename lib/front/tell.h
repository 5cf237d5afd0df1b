/*
 * Make one line per round from the events of the running programs.  ace-cloud and
 * ace-edge print these lines on standard error and write them to the log.
 */
#ifndef ACE_TELL_H
#define ACE_TELL_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "front/child.h"
#include "front/place.h"
#include "pipe/filter.h"

struct cli;

enum { TELL_LINE = 400, TELL_HELD = 32, TELL_TO = 3 };

struct tell {
	const struct cli *cli;
	const char *who;	/* the program's name, which begins each line */
	const char *trainer;	/* the program that computes, or NULL */
	int cloud;		/* 1: ace-cloud, which averages; 0: ace-edge */
	const struct agreement *said;
	FILE *log;		/* the folder's log, or NULL */
	/* these get all events: --events, the trainer, and the folder's file events */
	struct filter to[TELL_TO];
	int kept;		/* descriptor of the folder's file `round', or -1 */
	int shows;		/* 1: standard error is a terminal, on which one line is
				 * updated */
	int drawn;		/* 1: such a line is on the terminal */
	double spoke;		/* clock_now when something was last shown */
	enum tell_state { TELL_STARTS, TELL_COMPUTES, TELL_SENDS, TELL_WAITS } state;
	/* current round, from 1; begun: the last round whose beginning was written as event */
	uint64_t round, begun;
	uint64_t rounds, done;	/* rounds: number done by this process; done: the last one done */
	int over;		/* 1: all rounds were done when this process began */
	double now, began;	/* event's clock_now (watch: Unix time); start of this process */
	/* when the current round began; when its shard was sent; when the receipt came */
	double since, sent, taken;
	uint64_t values, bytes;	/* of the last shard sent or, on the cloud, of the last average */
	uint64_t participants, excluded;	/* number of devices averaged; left out */
	char missing[TELL_LINE];	/* names of the devices that are waited for; "": unknown */
	struct { char program[24], kind[16]; } error[CHILD_MOST];	/* errors of the programs */
	size_t nerrors;
	const char *kind;	/* kind of the failure's cause, set by tell_cause */
	/* lines of programs, held back until it is known whether a program failed */
	struct tell_line { double at; char text[ERR_LINE + 32]; } held[TELL_HELD];
	size_t nheld;
};

/* tell_begin(t, c, who, cloud, f): begin; t is zero but for trainer, to[0] and to[1]. Lines are
 * also appended to the folder's file log, and its file round has the next round's number.
 * tell_start(t): call it before each start of the programs; tell_begin calls it for the first. */
void tell_begin(struct tell *t, const struct cli *c, const char *who, int cloud,
    const struct place *f);
void tell_start(struct tell *t);
/* tell_end(t, r, e): end. If r < 0, write the event that the run failed with the error e. */
void tell_end(struct tell *t, int r, const struct err *e);

/* tell_ear(t): return the callbacks for child_run. */
struct child_ear tell_ear(struct tell *t);

/* tell_say(t, fmt, ...): write a line to the log and, without -q, to standard error, in place
 * of the line that is updated, if any. */
void tell_say(struct tell *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* tell_failed(t, cause): print that the round failed, and write the event. */
void tell_failed(struct tell *t, const char *cause);

/* tell_cause(t, c, out): copy the sentence that states the cause of a failure, and set
 * t->kind: a word of err_kind_name, "invalid" for a refused shard, or "" if unknown.  Return
 * the program to blame. */
const struct child *tell_cause(struct tell *t, const struct children *c,
    char out[ERR_LINE]);

/* tell_watch(f, e): print the last rounds of a folder and what its run does now, from its file
 * events; for a cloud, also the devices that ace-status finds in its spool.  If standard
 * output is a terminal, lines are cut to its width, and devices get half of its height. */
int tell_watch(const struct place *f, struct err *e);

#endif
