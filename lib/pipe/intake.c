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
	int temp;		/* what came of the shard at hand, and no more */
	uint64_t at;		/* bytes in it */
	struct track track;
	struct reader *r;	/* of temp */
	int whole;		/* r stands at a shard that was verified */
	int ended;		/* as it should */
};

struct intake_shard {
	struct reader *r;
	int fd;			/* of what was set aside; -1: an input's */
};

struct intake {
	struct intake_rule rule;
	const struct reader_opts *o;
	struct intake_in *in;
	size_t n;
	struct pollfd *poll;	/* of the inputs, and of what is written */
	unsigned char *buf;
	struct values v;	/* to decode once */
	struct intake_shard *got;	/* of this step */
	size_t ngot, cap;
	int any;		/* what all belong to: */
	unsigned char run[SHARD_ID];
	struct schema schema;
	int closed;		/* a step, `last' the latest */
	uint64_t last, step;
	double since;		/* its first shard came; 0: none has */
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

/* No more of this input. */
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

/* Reads on to the end of the shard at hand, so that the next can come. */
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

/* Is it one of ours?  NULL, or why not. */
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

/* A device gives one shard to a step. */
static int
intake_twice(const struct intake *t, const struct intake_in *in)
{
	const struct shard *s = reader_shard(in->r), *u;
	size_t i, n = t->n > 1 ? t->n : t->ngot;

	for (i = 0; i < n; i++) {
		if (t->n > 1 && (&t->in[i] == in || !t->in[i].whole))
			continue;
		u = reader_shard(t->n > 1 ? t->in[i].r : t->got[i].r);
		if (u->step == s->step &&
		    memcmp(u->device, s->device, SHARD_ID) == 0)
			return 1;
	}
	return 0;
}

/* The shard was verified: is it wanted? */
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

/* All that came is in the file: up to the end of a shard, or of the input. */
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

/* One read of what is there. */
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

/* The single input: its shard aside, if it belongs to the step at hand. */
static int
intake_aside(struct intake *t, struct err *e)
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
	if ((k = aside_shard(&g->r, &g->fd, in->r, t->o, e)) < 0)
		return k;
	return intake_done(in, e);
}

/* The step at hand: how many of its shards are there.  Several inputs: the
 * first step that a shard is there of. */
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

/* 1: nobody who could still add to the step is there. */
static int
intake_all(const struct intake *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->in[i].fd >= 0 && !t->in[i].whole)
			return 0;
	return 1;
}

/* n shards of the step at hand are there: an enum quorum_now, or the error that
 * it failed. */
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

/* Nothing of a next step is there: 1 nothing will be. */
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

/* Until something has come, or it is time. */
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

/* What was handed out before is done with. */
static int
intake_begin(struct intake *t, struct err *e)
{
	size_t i;
	int k = 0;

	for (i = 0; i < t->ngot; i++)
		if (t->got[i].fd >= 0) {
			reader_free(t->got[i].r);
			(void)close(t->got[i].fd);
		}
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
		t->got[t->ngot++] = (struct intake_shard){ t->in[i].r, -1 };
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
		if (t->n == 1 && (k = intake_aside(t, e)) < 0)
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

int
intake_again(struct intake *t, struct err *e)
{
	size_t i;
	int k = 0;

	for (i = 0; i < t->ngot && k == 0; i++)
		k = t->got[i].fd < 0 ? reader_rewind(t->got[i].r, e) :
		    aside_again(&t->got[i].r, t->got[i].fd, t->o, e);
	return k;
}

/* ---- all of them ---- */

/* Not there is lost, not an error: the others may be enough.  A FIFO whose
 * writer has not come yet does not hold us. */
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
	if (isatty(in->fd))
		return err_set(e, ERR_USAGE,
		    "'%s' is a terminal: a shard stream is binary", in->name);
	fd_pipe_size(in->fd, 1 << 20);
	if ((k = temp_open(&in->temp, e)) < 0 ||
	    (k = io_open_fd(&io, in->temp, in->name, e)) < 0)
		return k;
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
	t->v = (struct values)VALUES_INIT;
	t->schema = (struct schema)SCHEMA_INIT;
	t->n = n != 0 ? n : 1;
	t->in = alloc_get(t->n, sizeof(*t->in), e);
	t->poll = alloc_get(t->n + 1, sizeof(*t->poll), e);
	t->buf = alloc_get(INTAKE_CHUNK, 1, e);
	if (t->in == NULL || t->poll == NULL || t->buf == NULL) {
		t->n = t->in != NULL ? t->n : 0;
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
	t->closed = 0;
	(void)intake_begin(t, NULL);
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
