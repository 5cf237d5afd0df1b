/*
 * Events: what happens in a run, for the programs that watch it.  An event is a
 * line of JSON on the descriptor that --events names, written by one write(2), so
 * that the lines of several programs do not mix.  The table in event.c is the whole
 * schema; ace-cloud(1), EVENTS, explains it.
 */
#ifndef ACE_EVENT_H
#define ACE_EVENT_H

#include "base/opt.h"

struct err;
struct filter;

/* The row of --events, of an int; and for the table of a filter. */
extern const struct opt event_opts[];
#define FILTER_OPT_EVENTS { .type = OPT_IS_ROWS, .rows = event_opts, .shared = 1, \
	.at = offsetof(struct filter, events) }

enum event {
	EVENT_SENT,		/* round, values, bytes: a shard was coded */
	EVENT_RECEIPT,		/* round, result, reason: the receiver answered */
	EVENT_AVERAGE,		/* round, participants, values, bytes: it came back */
	EVENT_WAITS,		/* round, missing, text: who is waited for */
	EVENT_CLOSED,		/* round, participants, excluded, weight */
	EVENT_N
};

/* event_say(f, ev, ...): write the event to f's descriptor, if it has one.  The
 * arguments are the fields of ev in the order above: uint64_t for counts and
 * sizes, double for weights, const char * for texts (NULL: "").  A reader that has
 * gone does not stop the program. */
void event_say(const struct filter *f, enum event ev, ...);

/* event_name(ev): the value of the member "event". */
const char *event_name(enum event ev);

#endif
