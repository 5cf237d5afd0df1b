#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/temp.h"
#include "base/wait.h"
#include "format/checks.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "spool/history.h"
#include "spool/join.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/receive.h"
#include "spool/steps.h"
#include "spool/verdict.h"
#include "spool/waiting.h"

/* ---- between the two processes ---- */

/* A message from the reading process to the answering one. */
struct receive_said {
	enum receive_what {
		RECEIVE_SHARD,
		RECEIVE_QUESTION,	/* asks for averages from r.step on (join_next) */
		RECEIVE_END		/* all was read; without this message the answers are
					   an aborted stream */
	} what;
	struct receipt r;	/* of the shard; of a question only the step is used */
	char run[SHARD_NAME + 1];
	char device[SHARD_NAME + 1];	/* "": no name */
};

/* ---- reading ---- */

struct receive {
	const struct receive_opts *o;
	const struct spool *spool;
	struct reader *in;
	const struct kern *kern;
	struct io *to;		/* the pipe to the answering process */
	struct values v;

	/* the current shard, its receipt and its history */
	const struct shard *sh;
	const struct schema *sc;
	struct receipt r;
	struct history history;
};

/* Fail if the shard is not of the device that may send, or not of the run of --run.  No
 * verdict is stored: the device that the shard names would get it for a shard of its own. */
static int
receive_check_sender(const struct receive *x, struct err *e)
{
	const struct shard *sh = x->sh;
	const char *device = text_get(&sh->kv, SHARD_KEY_DEVICE);

	/* a shard without a device name belongs to nobody */
	if (x->o->device != NULL &&
	    (device == NULL || strcmp(device, x->o->device) != 0))
		return err_set(e, ERR_DATA, "mismatch: the shard is of device "
		    "'%.80s', but only '%.80s' may send here", shard_device(sh),
		    x->o->device);
	return x->o->run == NULL || strcmp(spool_run_of(sh), x->o->run) == 0 ? 0 :
	    err_set(e, ERR_DATA, "mismatch: the shard is of run '%.80s', expected '%.80s' (--run)",
	    spool_run_of(sh), x->o->run);
}

/* Decode and check the records of one frame, so that every accepted shard can be
 * averaged.  A record that cannot be decoded ends the connection without a verdict, since it
 * may have been damaged on its way. */
static int
receive_check_data(struct receive *x, struct err *e)
{
	const struct record *rec;
	struct schema_span span;
	size_t i, n, count;
	int k;

	rec = reader_records(x->in, &count);
	for (i = 0; i < count; i++) {
		if ((k = history_upto(&x->history, x->sc, rec[i].group, x->v.buf, e)) < 0 ||
		    (k = values_decode(x->in, &rec[i], x->v.buf, x->v.cap, &n, e)) < 0 ||
		    (k = history_group(&x->history, rec[i].group, 1, x->v.buf, n, e)) < 0)
			return k;
		schema_span(x->sc, rec[i].group, &span);
		limits_values(x->kern, &x->sc->t[span.tensor], span.offset,
		    x->v.buf, n, &x->r);
	}
	return 0;
}

/* Write the shard's frames to w.  Once the shard is refused, only read the rest, for
 * the digest.  w may be NULL if it is refused already. */
static int
receive_frames(struct receive *x, struct writer *w, struct checks *c, struct err *e)
{
	const struct chain_frame *f;
	struct receipt *r = &x->r;
	uint64_t bytes = 0;
	int k;

	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND) {
		f = reader_frame(x->in);
		bytes += FRAME_HEAD_SIZE + f->wire_len +
		    frame_padding(f->wire_len);
		if (bytes > x->o->limits.shard)
			limits_refuse(r, "limit: the shard is larger than %llu bytes "
			    "(limits: shard)", (unsigned long long)x->o->limits.shard);
		if (bytes / LIMITS_BEYOND > x->o->limits.shard)
			return reader_place(x->in, err_set(e, ERR_DATA, "limit: the shard is "
			    "larger than %d times %llu bytes (limits: shard)", LIMITS_BEYOND,
			    (unsigned long long)x->o->limits.shard), e);
		if (k == READER_DATA && c->sign)
			limits_refuse(r, "corrupt: a frame follows the signature");
		if (r->verdict != RECEIPT_ACCEPTED)
			continue;
		if ((k == READER_DATA && (k = receive_check_data(x, e)) < 0) ||
		    (k == READER_NOTE &&
		    (k = limits_note(&x->o->limits, c, x->in, r, e)) < 0) ||
		    (r->verdict == RECEIPT_ACCEPTED &&
		    (k = writer_pass(w, x->in, e)) < 0))
			return k;
	}
	return k < 0 ? k : 0;
}

static int
receive_data(struct receive *x, struct writer *w, struct err *e)
{
	struct checks c = { 0 };
	int k = values_begin(&x->v, x->in, e);

	if (k == 0)
		k = receive_frames(x, w, &c, e);
	text_release(&c.policy);
	return k;
}

static int
receive_tell(struct receive *x, enum receive_what what, struct err *e)
{
	struct receive_said a;
	int k;

	memset(&a, 0, sizeof(a));
	a.what = what;
	if (what != RECEIVE_END) {
		a.r = x->r;
		(void)snprintf(a.run, sizeof(a.run), "%s", spool_run_of(x->sh));
		(void)snprintf(a.device, sizeof(a.device), "%s", spool_device_of(x->sh));
	}
	k = io_write(x->to, &a, sizeof(a), e);
	return k < 0 ? k : io_flush(x->to, e);
}

/* Receive the shard into the spool.  When this returns, the files that decide its verdict are on
 * disk.  over 1: its step is closed; model: what verdict_head returned. */
static int
receive_spool(struct receive *x, int over, int model, struct err *e)
{
	const struct writer_opts o = { "ace-recv", NULL, 0, 0 };
	struct receipt *r = &x->r;
	struct writer *w = NULL;
	char temp[SPOOL_PATH] = "";
	struct io *io;
	int k;

	if ((over ||
	    (k = history_begin(&x->history, x->spool, x->sh, x->sc, r, e)) == 0) &&
	    (k = spool_temp(x->spool, x->sh, &TEMP_NAME[1], temp, &io, e)) == 0 &&
	    (k = writer_open(&w, io, &o, e)) == 0 &&
	    (k = writer_shard(w, x->sh, x->sc, e)) == 0)
		k = receive_data(x, w, e);
	if (k == 0 && r->verdict == RECEIPT_ACCEPTED &&
	    (k = history_end(&x->history, x->spool, x->sc, x->v.buf, e)) == 0 &&
	    (k = writer_send(w, &reader_end_of_shard(x->in)->sums, e)) == 0)
		k = writer_finish(w, e);
	if (k == 0) {
		memcpy(r->digest, reader_end_of_shard(x->in)->digest, SHARD_DIGEST);
		k = verdict_shard(x->spool, x->sh, x->sc, model, temp, &x->history, r, e);
	} else if (temp[0] != '\0') {
		temp_remove(temp);
	}
	history_drop(&x->history);
	writer_free(w);
	return k;
}

/* Pass on the question of a device: a model without values asks for the averages from its
 * step on (join_next). */
static int
receive_ask(struct receive *x, struct err *e)
{
	char why[256];
	int k = verdict_run(x->spool, x->sh, x->sc, why, e);

	if (k < 0)
		return k;
	cli_say(x->o->cli, 1, "'%s' requests the averages from step %llu on",
	    shard_device(x->sh), (unsigned long long)x->sh->step);
	x->r.verdict = RECEIPT_INVALID;	/* only read the rest; this receipt is not stored */
	if ((k = receive_data(x, NULL, e)) < 0)
		return k;
	return receive_tell(x, RECEIVE_QUESTION, e);
}

static int
receive_shard(struct receive *x, struct err *e)
{
	const struct shard *sh = x->sh = reader_shard(x->in);
	const struct limits *a = &x->o->limits;
	struct receipt *r = &x->r;
	int k, model;

	x->sc = reader_schema(x->in);
	*r = (struct receipt){ .step = sh->step };
	if ((k = receive_check_sender(x, e)) < 0)
		return k;
	if (x->o->tells && sh->kind == SHARD_MODEL && x->sc->total == 0)
		return receive_ask(x, e);
	memcpy(r->run, sh->run, SHARD_ID);
	memcpy(r->device, sh->device, SHARD_ID);
	limits_head(a, sh, x->sc, r);
	if ((k = model = verdict_head(x->spool, sh, x->sc, r, e)) < 0 ||
	    (k = limits_room(a, x->spool, sh, x->sc, e)) < 0 ||
	    (k = receive_spool(x, k, model, e)) < 0)
		return k;
	cli_say(x->o->cli, 1, "'%s' step %llu: %s%s%s", shard_device(sh),
	    (unsigned long long)r->step, receipt_verdict_name(r->verdict),
	    r->reason[0] != '\0' ? ": " : "", r->reason);
	return receive_tell(x, RECEIVE_SHARD, e);
}

static int
receive_take(struct receive *x, struct err *e)
{
	const struct limits *a = &x->o->limits;
	struct io *io = reader_io(x->in);
	int r;

	do {
		io_patience(io, a->idle, a->time);
		while ((r = reader_next(x->in, e)) > 0 && r != READER_SHARD)
			;
		io_patience(io, a->silence, a->time);
	} while (r > 0 && (r = receive_shard(x, e)) == 0);
	return r;
}

int
receive_all(const struct spool *s, struct reader *in,
    const struct receive_opts *o, int to, struct err *e)
{
	struct receive x = { .o = o, .spool = s, .in = in, .v = VALUES_INIT,
	    .history = HISTORY_INIT };
	int r;

	x.v.differences = 1;
	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((r = io_create_fd(&x.to, to, "<answers>", e)) == 0 &&
	    (r = receive_take(&x, e)) == 0)
		r = receive_tell(&x, RECEIVE_END, e);
	io_free(x.to);
	values_release(&x.v);
	return r;
}

/* ---- answering ---- */

/* Have SIGALRM sent after these seconds; 0: cancel it.  A device that does not read its
 * answers blocks write(2), which nothing else interrupts. */
static void
receive_within(double secs)
{
	const double whole = floor(secs);
	struct itimerval t = { .it_value = { (time_t)whole,
	    (suseconds_t)((secs - whole) * 1e6) } };

	(void)setitimer(ITIMER_REAL, &t, NULL);
}

/* Wait for the average.  Return 0 with its path, or with path "" if it will never come; or 1
 * if the reading process failed.  When the device is gone, fail with wait_orphan's error. */
static int
receive_await(const struct receive_answers *o, uint64_t step, char path[SPOOL_PATH],
    struct err *e)
{
	struct wait w = wait_begin(-1, STDOUT_FILENO);
	int k, r;

	path[0] = '\0';
	receive_within(0);
	waiting_begin(o->spool->wait);
	while ((r = manifest_average(o->spool, step, e)) == MANIFEST_COMING) {
		if (o->gave_up(o->reading))
			return 1;
		if (waiting_due(o->spool->wait))
			waiting_device(o->spool, step);
		if ((k = statedir_there(&o->spool->state, e)) < 0 ||
		    (k = wait_more(&w, e)) < 0)
			return k;
	}
	if (r == MANIFEST_HERE)
		spool_path(o->spool, &step, SPOOL_AVERAGE, path);
	receive_within(o->patience);
	return r < 0 ? r : 0;
}

/* Fail if this accepted shard was excluded because of a mismatch, such as another model than
 * the other devices have: the device would wait for the average for ever. */
static int
receive_split(const struct receive_answers *o, const struct receive_said *a,
    struct err *e)
{
	const struct receipt_list_line *own;
	struct receipt_list l;
	int k = manifest_of(o->spool, a->r.step, &l, e);

	own = k > 0 ? receipt_list_find(&l, &a->r) : NULL;
	if (own != NULL && strncmp(own->r.reason, "mismatch: ", 10) == 0)
		k = err_set(e, ERR_REFUSED, "mismatch: step %llu has no average: %s",
		    (unsigned long long)a->r.step, own->r.reason + 10);
	receipt_list_release(&l);
	return k < 0 ? k : 0;
}

/* Send the average of a step to the device, once it is there, unless this connection has
 * sent it already.  Return 1 if the reading process failed. */
static int
receive_hand(struct receive_answers *o, const struct receive_said *a,
    uint64_t step, struct err *e)
{
	char path[SPOOL_PATH];
	size_t i;
	int k;

	for (i = o->given.n; i > 0; i--)
		if (o->given.step[i - 1] == step)
			return 0;
	k = receive_await(o, step, path, e);
	if (path[0] != '\0' && (k = steps_add(&o->given, step, e)) == 0) {
		if ((k = filter_copy_file(path, o->in, o->out, e)) == -ERR_DATA) {
			e->kind = ERR_CORRUPT;
			(void)err_before(e, k, "the average '%s' cannot be read, but a "
			    "device needs it (restore it from a backup): ", path);
		}
	} else if (path[0] == '\0' && k == 0 && a->what == RECEIVE_SHARD) {
		k = receive_split(o, a, e);
	}
	return k;
}

static int
receive_reply(struct receive_answers *o, const struct receive_said *a,
    struct err *e)
{
	int r = writer_receipt(o->out, &a->r, e);

	/* a device whose shard was refused does not wait for an average */
	if (r < 0 || !o->aggregate || receipt_is_refused(&a->r))
		return r;
	/* the receipts that follow are sent even if the reading process failed */
	r = receive_hand(o, a, a->r.step, e);
	return r < 0 ? r : 0;
}

/* Answer a question: send the averages of the closed steps from a->r.step on that join_next
 * finds, and the step to begin with.  Return 1 if the reading process failed. */
static int
receive_teach(struct receive_answers *o, const struct receive_said *a,
    struct err *e)
{
	uint64_t from = a->r.step, next;
	int k;

	for (receive_within(0); (k = join_next(o->spool, a->device, from, &next, e)) > 0;
	    from = next + 1, receive_within(0))
		if ((k = receive_hand(o, a, next, e)) != 0)
			return k;
	from = next > from ? next : from;
	if (k < 0 || (k = join_known(o->spool, a->device, from, e)) < 0)
		return k;
	receive_within(o->patience);
	return join_tell(a->run, a->device, from, o->out, e);
}

int
receive_answer(struct receive_answers *o, int from, struct err *e)
{
	struct receive_said a;
	struct io *io;
	size_t n;
	int r = io_open_fd(&io, from, "<answers>", e);

	if (r < 0)
		return r;
	do {
		receive_within(0);
		if ((r = io_read(io, &a, sizeof(a), &n, e)) < 0)
			break;
		receive_within(o->patience);
		if (n != sizeof(a))
			r = 1;
		else if (a.what != RECEIVE_END)
			r = a.what == RECEIVE_QUESTION ? receive_teach(o, &a, e) :
			    receive_reply(o, &a, e);
	} while (r == 0 && a.what != RECEIVE_END);
	io_free(io);
	steps_release(&o->given);
	receive_within(o->patience);	/* limit the writing of the stream's end, too */
	return r;
}

/* ---- storing an average ---- */

/* Return 1 if the step has this average already, or 0 if it has none.  A different
 * average is refused: devices that have the first one would go on from another model. */
static int
receive_published(const struct shard *sh, const char *path,
    const unsigned char digest[SHARD_DIGEST], struct err *e)
{
	struct receipt had;
	int r = spool_shard(path, &had, e);

	if (r <= 0 || memcmp(had.digest, digest, SHARD_DIGEST) == 0)
		return r != -ERR_DATA ? r :
		    err_file(e, err_after(e, r, " (remove the file)"), path);
	return err_set(e, ERR_REFUSED, "step %llu already has a different average, '%s', "
	    "which stays: let only one ace-aggregate publish to a spool",
	    (unsigned long long)sh->step, path);
}

static int
receive_publish_shard(const struct spool *s, struct reader *in, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	struct writer *w = NULL;
	char path[SPOOL_PATH];
	int fd = -1, r;

	if ((r = spool_begin(s, &sh->step, e)) < 0)
		return r;
	/* remove the temporary files of killed processes */
	temp_sweep(spool_path(s, &sh->step, ".", path));
	spool_path(s, &sh->step, SPOOL_AVERAGE, path);
	if ((r = writer_file(&w, path, "ace-recv", e)) == 0 &&
	    (r = filter_copy(in, w, e)) == 0 &&
	    (r = spool_lock(s, &fd, e)) == 0 &&
	    (r = receive_published(sh, path, reader_end_of_shard(in)->digest,
	    e)) == 0)
		r = writer_end(w, s->sync, e);
	if (fd >= 0)
		(void)close(fd);
	if (r > 0)	/* the process that stored it may have died before the sync */
		r = spool_durable(s, &sh->step, e);
	writer_free(w);
	return r;
}

int
receive_publish(const struct spool *s, struct reader *in, struct err *e)
{
	const struct shard *sh;
	char why[256];
	int r;

	while ((r = reader_next(in, e)) > 0) {
		if (r != READER_SHARD)
			continue;
		sh = reader_shard(in);
		if (sh->kind != SHARD_MEAN && sh->kind != SHARD_SUM)
			r = err_set(e, ERR_DATA, "mismatch: step %llu of '%.80s' has kind "
			    "%s, expected mean or sum (--publish)", (unsigned long long)sh->step,
			    shard_device(sh), shard_kind_name(sh->kind));
		else if ((r = verdict_run(s, sh, reader_schema(in), why, e)) == VERDICT_OTHER)
			r = err_set(e, ERR_DATA, "mismatch: the average is of another model than "
			    "run '%.80s': %s", shard_run(sh), why);
		else if (r >= 0)
			r = receive_publish_shard(s, in, e);
		if (r < 0)
			break;
	}
	return r;
}
