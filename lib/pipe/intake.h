/*
 * Many inputs of which none is waited for alone.  What comes is set aside,
 * byte for byte, in an unnamed file for each; a shard is handed out when it
 * was read to its end, verified and decoded once.  So a device that is slow,
 * stops in the middle or sends damage costs nobody but itself.
 *
 * An input that is damaged, cut or cannot be read is lost: it is not read any
 * more.  A shard that does not belong to the others (another run or model, a
 * device twice, recovered from a damaged file) or comes to a step that is over
 * is passed over.  Both are said, by `say'.
 */
#ifndef ACE_INTAKE_H
#define ACE_INTAKE_H

#include <stddef.h>

#include "format/reader.h"
#include "sync/quorum.h"

struct aside;
struct err;
struct intake;

struct intake_rule {
	struct quorum q;	/* when a step is over; nobody is left who could
				   add to it when every input that has not
				   ended has given one */
	int out;		/* a pipe that somebody must go on reading, or
				   -1 */
	void (*say)(void *arg, const char *what);
	void *arg;
};

/* intake_open(out, paths, n, q, o, e): n == 0 is standard input.  *q is copied,
 * o has to live as long. */
int intake_open(struct intake **out, char **paths, size_t n,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e);
void intake_free(struct intake *t);

/* intake_step(t, e): waits for the next step that is over: 1; 0 when all
 * inputs have ended; wait_orphan's error when nobody reads q->out any more;
 * -ERR_REFUSED when the quorum is not there at the deadline, or cannot be any
 * more.  Several inputs give one shard each to a step, a single one gives
 * all. */
int intake_step(struct intake *t, struct err *e);

/* The shards of that step, until the next intake_step.  Of several inputs:
 * readers that stand at READER_SHARD and are the intake's; intake_again sets
 * them back.  Of a single one intake_reader is NULL, and the shard was set aside
 * in what intake_aside returns, at *place. */
size_t intake_count(const struct intake *t);
struct reader *intake_reader(const struct intake *t, size_t i);
const struct aside *intake_aside(const struct intake *t, size_t i,
    uint64_t *place);
int intake_again(struct intake *t, struct err *e);

#endif
