#include <math.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/wait.h"
#include "pipe/filter.h"
#include "spool/answer.h"
#include "spool/join.h"
#include "spool/waiting.h"

int
answer_tell(struct io *to, const struct answer *a, struct err *e)
{
	int r = io_write(to, a, sizeof(*a), e);

	return r < 0 ? r : io_flush(to, e);
}

/* Waits until there is an aggregate: 0, and *path is NULL if there never will
 * be one. It also ends when the device is gone and nobody waits any more. */
static int
answer_wait(const struct answer_opts *o, const char *run, uint64_t step,
    char **path, struct err *e)
{
	struct wait w = wait_begin(-1, STDOUT_FILENO);
	int k, r;

	waiting_begin(o->inbox->wait);
	while ((r = inbox_aggregate(o->inbox, run, step, path,
	    e)) == INBOX_COMING) {
		if (waiting_due(o->inbox->wait))
			waiting_device(o->inbox, run, step);
		if ((k = wait_more(&w, e)) < 0)
			return k;
	}
	return r < 0 ? r : 0;
}

/* From here on an answer is written, or, with 0 seconds, none any more.  Who does
 * not read keeps write(2) waiting, which nothing else ends. */
static void
answer_within(double secs)
{
	const double whole = floor(secs);
	struct itimerval t = { .it_value = { (time_t)whole,
	    (suseconds_t)((secs - whole) * 1e6) } };

	(void)setitimer(ITIMER_REAL, &t, NULL);
}

/* Copies an aggregate, which appears only when it is whole, to the device. */
static int
answer_file(const struct answer_opts *o, char *path, struct err *e)
{
	int k;

	answer_within(o->patience);
	k = filter_copy_file(path, o->in, o->out, e);
	answer_within(0);
	alloc_free(path);
	return k;
}

static int
answer_aggregate(const struct answer_opts *o, const struct answer *a,
    struct err *e)
{
	char *path = NULL;
	int k = answer_wait(o, a->run, a->r.step, &path, e);

	return k < 0 || path == NULL ? k : answer_file(o, path, e);
}

static int
answer_one(const struct answer_opts *o, const struct answer *a,
    struct err *e)
{
	int r;

	answer_within(o->patience);
	r = writer_receipt(o->out, &a->r, e);
	answer_within(0);
	/* a device whose shard was refused gets no aggregate and does not
	 * wait */
	if (r < 0 || !o->aggregate || receipt_is_refused(&a->r))
		return r;
	return answer_aggregate(o, a, e);
}

/* What a device that asks has to know, all of which it waits for. */
static int
answer_ask(const struct answer_opts *o, const struct answer *a, struct err *e)
{
	struct join_asked q = { a->run, a->device, a->r.step };
	uint64_t next;
	char *path;
	int k;

	while ((k = join_next(o->inbox, &q, &next, e)) > 0) {
		if ((k = answer_wait(o, a->run, next, &path, e)) == 0 &&
		    path != NULL)
			k = answer_file(o, path, e);
		if (k < 0)
			return k;
		q.step = next + 1;
	}
	if (k < 0)
		return k;
	q.step = next > q.step ? next : q.step;
	answer_within(o->patience);
	k = join_tell(o->inbox, &q, o->out, e);
	answer_within(0);
	return k;
}

int
answer_all(const struct answer_opts *o, int from, struct err *e)
{
	struct answer a;
	struct io *io;
	size_t n;
	int r = io_open_fd(&io, from, "<answers>", e);

	if (r < 0)
		return r;
	do {
		if ((r = io_read(io, &a, sizeof(a), &n, e)) < 0)
			break;
		if (n != sizeof(a))
			r = 1;
		else if (!a.end)
			r = a.device[0] != '\0' ? answer_ask(o, &a, e) :
			    answer_one(o, &a, e);
	} while (r == 0 && !a.end);
	io_free(io);
	answer_within(o->patience);	/* the stream's end, too */
	return r;
}
