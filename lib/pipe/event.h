/*
 * Events of a run, for programs that watch it. An event is a line of JSON, written to the
 * descriptor of --events by one write(2), so that lines of several programs do not mix.
 * The table in event.c is the schema; ace-cloud(1), EVENTS, explains it.
 */
#ifndef ACE_EVENT_H
#define ACE_EVENT_H

#include "base/opt.h"

struct err;
struct filter;

/* The option --events, which sets an int to the descriptor. FILTER_OPT_EVENTS: the row for
 * the option table of a program, whose struct filter then gets the descriptor. */
extern const struct opt event_opts[];
#define FILTER_OPT_EVENTS { .type = OPT_IS_ROWS, .rows = event_opts, .shared = 1, \
	.at = offsetof(struct filter, events) }

enum event {
	EVENT_BEGINS, EVENT_SENT, EVENT_RECEIPT, EVENT_AVERAGE, EVENT_WAITS, EVENT_CLOSED,
	EVENT_ENDS, EVENT_FAILS, EVENT_ERROR, EVENT_N
};

/* Write the event to f's descriptor, if it has one. The arguments are the fields of its
 * row in event.c: uint64_t for a step and for counts, double for numbers, const char * for
 * texts (NULL: ""). Write errors do not stop the program. */
void event_say(const struct filter *f, enum event ev, ...);
/* Write line[n] to fd. Drop it if the reader has ended, or takes nothing for a second (if fd
 * does not block: now). */
void event_write(int fd, const char *line, size_t n);

/* Return the event's name, the value of its member "event". */
const char *event_name(enum event ev);

#endif
