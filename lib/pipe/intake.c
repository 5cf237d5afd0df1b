#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/mono.h"
#include "base/temp.h"
#include "base/wait.h"
#include "format/values.h"
#include "pipe/aside.h"
#include "pipe/intake.h"
#include "pipe/track.h"

enum { INTAKE_CHUNK = 64 * 1024 };

struct intake_in {
	const char *name;
	int fd;			/* -1: nothing more comes */
	int temp;		/* a file with what came of the current shard */
	uint64_t at;		/* bytes in it */
	struct track track;
	struct reader *r;	/* of temp */
	int whole;		/* r stands at a shard that was verified */
	int ended;		/* with a whole stream */
};

struct intake_shard {
	struct reader *r;	/* an input's, or NULL: */
	uint64_t place;		/* of what was set aside, */
	unsigned char device[SHARD_ID];	/* whose it is */
};

struct intake {
	struct intake_rule rule;
	const struct reader_opts *o;
	struct intake_in *in;
	size_t n;
	struct pollfd *poll;	/* of the inputs, and of what is written */
	unsigned char *buf;
	struct values v;	/* decodes each shard once, as a check */
	struct aside aside;	/* of a single input: this step's shards */
	struct intake_shard *got;	/* of this step */
	size_t ngot, cap;
	int any;		/* a shard came; all others must have its */
	unsigned char run[SHARD_ID];
	struct schema schema;
	int closed;		/* a step, `last' the latest */
	uint64_t last, step;
	double since;		/* when the step's first shard came, or 0 */
	double quiet;		/* when the last input ended, or 0 */
};

/* ---- what is said of those that are not taken ---- */

static void
intake_say(const struct intake *t, const char *what)
{
	if (t->rule.say != NULL)
		t->rule.say(t->rule.arg, what);
}

static void
intake_end(struct intake_in *in)
{
	if (in->fd > STDIN_FILENO)
		(void)close(in->fd);
	in->fd = -1;
	in->whole = 0;
}

/* Reads no more from this input. */
static int
intake_lose(struct intake *t, struct intake_in *in, const struct err *why)
{
	char what[ERR_LINE + 128];

	(void)snprintf(what, sizeof(what), "lost '%.100s': %s", in->name,
	    ERR_MSG(why));
	intake_say(t, what);
	intake_end(in);
	return 0;
}

static void
intake_passed_over(const struct intake *t, const struct shard *s,
    const char *why)
{
	char what[640];

	(void)snprintf(what, sizeof(what), "step %llu of '%s' passed over: %s",
	    (unsigned long long)s->step, shard_device(s), why);
	intake_say(t, what);
}

/* ---- one input ---- */

/* Reads the current shard to its end and empties the file, for the next one. */
static int
intake_done(struct intake_in *in, struct err *e)
{
	int k = reader_rewind(in->r, e);

	while (k >= 0 && (k = reader_next(in->r, e)) > 0 && k != READER_SEND)
		continue;
	if (k < 0)
		return k;
	in->whole = 0;
	in->at = 0;
	if (ftruncate(in->temp, 0) < 0 || lseek(in->temp, 0, SEEK_SET) < 0)
		return err_sys(e, "<temporary>");
	return 0;
}

/* Does the shard belong to the run and model of the others?  NULL: yes, or why
 * not. */
static const char *
intake_foreign(const struct intake *t, const struct reader *r, char why[320])
{
	const struct shard *s = reader_shard(r);
	char differs[256];

	if ((s->flags & SHARD_RECOVERED) != 0)
		return "recovered from a damaged file";
	if (t->any && memcmp(t->run, s->run, SHARD_ID) != 0)
		return "mismatch: another run than the first shard's";
	if (!t->any ||
	    schema_diff(&t->schema, reader_schema(r), differs) == 0)
		return NULL;
	(void)snprintf(why, 320, "mismatch: another model than the first "
	    "shard's: %s", differs);
	return why;
}

/* Has the device given a shard to this step before?  1 or 0. */
static int
intake_twice(const struct intake *t, const struct intake_in *in)
{
	const struct shard *s = reader_shard(in->r), *u;
	size_t i;

	for (i = 0; i < t->ngot; i++)
		if (t->n == 1 && s->step == t->step &&
		    memcmp(t->got[i].device, s->device, SHARD_ID) == 0)
			return 1;
	for (i = 0; i < t->n; i++) {
		if (&t->in[i] == in || !t->in[i].whole)
			continue;
		u = reader_shard(t->in[i].r);
		if (u->step == s->step &&
		    memcmp(u->device, s->device, SHARD_ID) == 0)
			return 1;
	}
	return 0;
}

/* A shard was verified.  Passes it over, and says why, if it is not wanted. */
static int
intake_judge(struct intake *t, struct intake_in *in, struct err *e)
{
	const struct shard *s = reader_shard(in->r);
	char buf[320];
	const char *why = intake_foreign(t, in->r, buf);
	int k;

	if (why == NULL && t->closed && s->step <= t->last)
		why = "late, the step is over";
	if (why == NULL && t->n == 1 && t->ngot != 0 && s->step < t->step)
		why = "late, a later step has begun";
	if (why == NULL && intake_twice(t, in))
		why = "the device has sent that step before";
	if (why != NULL) {
		intake_passed_over(t, s, why);
		return intake_done(in, e);
	}
	if (!t->any) {
		memcpy(t->run, s->run, SHARD_ID);
		if ((k = schema_copy(&t->schema, reader_schema(in->r), e)) < 0)
			return k;
		t->any = 1;
	}
	return 0;
}

/* The file holds everything up to the end of a shard, or of the input: verifies
 * and decodes it. */
static int
intake_verify(struct intake *t, struct intake_in *in, struct err *e)
{
	struct err own = ERR_INIT;
	int k;

	while ((k = reader_next(in->r, &own)) > 0 && k != READER_SHARD)
		continue;
	if (k == 0) {
		intake_end(in);
		in->ended = 1;
		t->quiet = mono_now();
		return 0;
	}
	if (k > 0 && (k = reader_mark(in->r, 0, &own)) == 0 &&
	    (k = values_begin(&t->v, in->r, &own)) == 0)
		while ((k = values_next(&t->v, &own)) > 0)
			continue;
	if (k >= 0)
		k = reader_rewind(in->r, &own);
	if (k == -ERR_SYS)
		return err_move(e, &own);
	if (k < 0)
		return intake_lose(t, in, &own);
	in->whole = 1;
	return intake_judge(t, in, e);
}

/* Reads once from an input that has something, and sets it aside. */
static int
intake_read(struct intake *t, struct intake_in *in, struct err *e)
{
	uint64_t want = track_want(&in->track);
	size_t n = want < INTAKE_CHUNK ? (size_t)want : INTAKE_CHUNK;
	struct err own = ERR_INIT;
	uint32_t end = 0;
	ssize_t k = read(in->fd, t->buf, n);

	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (k < 0) {
		(void)err_sys(&own, "cannot read");
		return intake_lose(t, in, &own);
	}
	if (k > 0 && pwrite(in->temp, t->buf, (size_t)k, (off_t)in->at) != k)
		return err_sys(e, "<temporary>");
	in->at += (uint64_t)k;
	if (k > 0)
		(void)track_bytes(&in->track, t->buf, (size_t)k, &end);
	if (k == 0 || in->track.lost || end == FRAME_SEND)
		return intake_verify(t, in, e);
	return 0;
}

/* ---- a step ---- */

/* Of a single input: sets its shard aside, if it belongs to the current
 * step. */
static int
intake_put(struct intake *t, struct err *e)
{
	struct intake_in *in = &t->in[0];
	struct intake_shard *g;
	int k;

	if (!in->whole || (t->ngot != 0 &&
	    reader_shard(in->r)->step != t->step))
		return 0;
	if ((k = alloc_grow(&t->got, &t->cap, t->ngot + 1, sizeof(*g), e)) < 0)
		return k;
	g = &t->got[t->ngot++];
	t->step = reader_shard(in->r)->step;
	*g = (struct intake_shard){ .r = NULL };
	memcpy(g->device, reader_shard(in->r)->device, SHARD_ID);
	if ((k = aside_put(&t->aside, in->r, &g->place, e)) < 0)
		return k;
	return intake_done(in, e);
}

/* How many shards of the current step are there.  With several inputs the
 * current step is the lowest one of which a shard is there. */
static size_t
intake_present(struct intake *t)
{
	uint64_t step = UINT64_MAX;
	size_t i, n = t->ngot;

	for (i = 0; t->n > 1 && i < t->n; i++) {
		if (!t->in[i].whole ||
		    reader_shard(t->in[i].r)->step > step)
			continue;
		n = reader_shard(t->in[i].r)->step < step ? 1 : n + 1;
		step = reader_shard(t->in[i].r)->step;
	}
	if (n == 0)
		return 0;
	if (t->n > 1 && t->step != step) {
		t->since = 0;		/* an earlier one came after it */
		t->step = step;
	}
	if (!(t->since > 0))
		t->since = mono_now();
	return n;
}

/* 1 when no input is left that could still give the step a shard, else 0. */
static int
intake_all(const struct intake *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->in[i].fd >= 0 && !t->in[i].whole)
			return 0;
	return 1;
}

/* Is the current step over, with n shards of it here?  An enum quorum_now, or
 * -ERR_REFUSED when it cannot have its quorum. */
static int
intake_over(const struct intake *t, size_t n, struct err *e)
{
	int all = intake_all(t);
	enum quorum_now now = quorum_now(&t->rule.q, n, all,
	    mono_now() - t->since);

	if (now != QUORUM_FAILED)
		return (int)now;
	return err_set(e, ERR_REFUSED, "quorum not reached: %zu of %zu shards "
	    "of step %llu%s", n, t->rule.q.quorum,
	    (unsigned long long)t->step, all ? "" : " at the deadline");
}

/* No shard of a next step is there.  1: none will come; 0: go on waiting. */
static int
intake_ended(struct intake *t, struct err *e)
{
	const struct quorum *q = &t->rule.q;
	size_t i, live = 0, ended = 0;
	char what[200];

	for (i = 0; i < t->n; i++) {
		live += t->in[i].fd >= 0;
		ended += t->in[i].ended != 0;
	}
	if (t->n == 1)
		return live == 0;
	if (live + ended < q->quorum)
		return err_set(e, ERR_REFUSED, "quorum not reached: %zu inputs "
		    "lost, %zu of %zu left", t->n - live - ended, live + ended,
		    q->quorum);
	if (live >= q->quorum && (ended == 0 ||
	    quorum_left(q, mono_now() - t->quiet) != 0))
		return 0;
	for (i = 0; i < t->n; i++)
		if (t->in[i].fd >= 0) {
			(void)snprintf(what, sizeof(what), "gave up '%.100s': "
			    "the others have ended", t->in[i].name);
			intake_say(t, what);
		}
	return 1;
}

/* Waits until something has come or the deadline is there. */
static int
intake_wait(struct intake *t, size_t present, struct err *e)
{
	double since = present != 0 ? t->since : t->quiet;
	double left = since > 0 ? quorum_left(&t->rule.q,
	    mono_now() - since) : -1;
	int ms = left < 0 ? -1 : left > 1e6 ? 1000000000 :
	    left > 0 ? (int)(left * 1e3) + 1 : 0, k = 0;
	size_t i;

	for (i = 0; i < t->n; i++) {
		t->poll[i].fd = t->in[i].whole ? -1 : t->in[i].fd;
		t->poll[i].events = POLLIN;
		t->poll[i].revents = 0;
	}
	t->poll[t->n] = (struct pollfd){ .fd = t->rule.out };
	if (poll(t->poll, t->n + 1, ms) < 0) {
		if (errno != EINTR)
			return err_sys(e, "cannot wait");
		return 0;
	}
	if (t->poll[t->n].revents != 0 &&
	    (k = wait_orphan(t->rule.out, 0, e)) < 0)
		return k;
	for (i = 0; i < t->n && k == 0; i++)
		if (t->poll[i].revents != 0)
			k = intake_read(t, &t->in[i], e);
	return k;
}

/* Lets go of the shards of the step before. */
static int
intake_begin(struct intake *t, struct err *e)
{
	size_t i;
	int k = aside_empty(&t->aside, e);

	t->ngot = 0;
	t->since = 0;
	for (i = 0; i < t->n && k == 0 && t->closed; i++)
		if (t->in[i].whole &&
		    reader_shard(t->in[i].r)->step <= t->last)
			k = intake_done(&t->in[i], e);
	return k;
}

static int
intake_collect(struct intake *t, struct err *e)
{
	size_t i;
	int k;

	for (i = 0; t->n > 1 && i < t->n; i++) {
		if (!t->in[i].whole || reader_shard(t->in[i].r)->step != t->step)
			continue;
		if ((k = alloc_grow(&t->got, &t->cap, t->ngot + 1,
		    sizeof(*t->got), e)) < 0)
			return k;
		t->got[t->ngot++] = (struct intake_shard){ .r = t->in[i].r };
	}
	t->closed = 1;
	t->last = t->step;
	t->quiet = 0;
	return 1;
}

int
intake_step(struct intake *t, struct err *e)
{
	size_t n;
	int k = intake_begin(t, e);

	while (k == 0) {
		if (t->n == 1 && (k = intake_put(t, e)) < 0)
			break;
		n = intake_present(t);
		if (n == 0 && (k = intake_ended(t, e)) != 0)
			return k < 0 ? k : 0;
		if ((k = intake_over(t, n, e)) == QUORUM_OVER)
			return intake_collect(t, e);
		if (k == QUORUM_WAIT)
			k = intake_wait(t, n, e);
	}
	return k;
}

size_t
intake_count(const struct intake *t)
{
	return t->ngot;
}

struct reader *
intake_reader(const struct intake *t, size_t i)
{
	return t->got[i].r;
}

const struct aside *
intake_aside(const struct intake *t, size_t i, uint64_t *place)
{
	*place = t->got[i].place;
	return &t->aside;
}

int
intake_again(struct intake *t, struct err *e)
{
	size_t i;
	int k = 0;

	for (i = 0; i < t->ngot && k == 0; i++)
		if (t->got[i].r != NULL)
			k = reader_rewind(t->got[i].r, e);
	return k;
}

/* ---- all of them ---- */

/* Opens an input.  One that cannot be opened is lost, which is no error, since
 * the others may be enough.  A FIFO is opened without waiting for its
 * writer. */
static int
intake_open_one(struct intake *t, struct intake_in *in, const char *path,
    struct err *e)
{
	struct err own = ERR_INIT;
	struct io *io;
	int k, std = path == NULL || strcmp(path, "-") == 0;

	in->name = std ? "<stdin>" : path;
	in->fd = std ? STDIN_FILENO : open(path,
	    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in->fd < 0) {
		(void)err_sys(&own, "cannot open");
		return intake_lose(t, in, &own);
	}
	if (fd_is_terminal(in->fd))
		return err_set(e, ERR_USAGE,
		    "'%s' is a terminal: a shard stream is binary", in->name);
	fd_pipe_size(in->fd, 1 << 20);
	if ((k = temp_open(&in->temp, e)) < 0)
		return k;
	if ((k = io_open_fd(&io, in->temp, in->name, e)) < 0) {
		(void)close(in->temp);
		return k;
	}
	io_own(io);
	return reader_open(&in->r, io, t->o, e);
}

int
intake_open(struct intake **out, char **paths, size_t n,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e)
{
	struct intake *t = alloc_get(1, sizeof(*t), e);
	size_t i;
	int k = 0;

	*out = t;
	if (t == NULL)
		return -ERR_SYS;
	t->rule = *q;
	t->o = o;
	t->aside = (struct aside)ASIDE_INIT;
	t->v = (struct values)VALUES_INIT;
	t->schema = (struct schema)SCHEMA_INIT;
	t->n = n != 0 ? n : 1;
	t->in = alloc_get(t->n, sizeof(*t->in), e);
	t->poll = alloc_get(t->n + 1, sizeof(*t->poll), e);
	t->buf = alloc_get(INTAKE_CHUNK, 1, e);
	if (t->in == NULL || t->poll == NULL || t->buf == NULL) {
		t->n = 0;
		return -ERR_SYS;
	}
	for (i = 0; i < t->n; i++)
		t->in[i] = (struct intake_in){ .fd = -1, .temp = -1,
		    .track = TRACK_INIT };
	for (i = 0; i < t->n && k == 0; i++)
		k = intake_open_one(t, &t->in[i], n != 0 ? paths[i] : NULL, e);
	return k;
}

void
intake_free(struct intake *t)
{
	size_t i;

	if (t == NULL)
		return;
	aside_close(&t->aside);
	for (i = 0; i < t->n; i++) {
		intake_end(&t->in[i]);
		reader_free(t->in[i].r);
	}
	values_release(&t->v);
	schema_release(&t->schema);
	alloc_free(t->in);
	alloc_free(t->poll);
	alloc_free(t->buf);
	alloc_free(t->got);
	alloc_free(t);
}
