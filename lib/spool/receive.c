#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "spool/answer.h"
#include "spool/join.h"
#include "spool/receive.h"
#include "spool/verdict.h"

/* One that is too large is read to its end all the same, so that its device
 * hears why; but not for ever. */
enum { RECEIVE_BEYOND = 8 };

struct receive {
	const struct receive_opts *o;
	const struct inbox *inbox;
	struct reader *in;
	const struct kern *kern;
	struct values v;
	struct io *to;		/* the pipe to the answering process */
};

/* This shard belongs to somebody else: no receipt is written, since it would
 * have to be kept and would stand in the way of the shard's owner. The
 * connection ends. */
static int
receive_check_sender(const struct receive *x, const struct shard *sh,
    struct err *e)
{
	const char *device = text_get(&sh->kv, SHARD_KEY_DEVICE);

	/* a shard without a device name belongs to nobody */
	if (x->o->device != NULL &&
	    (device == NULL || strcmp(device, x->o->device) != 0))
		return err_set(e, ERR_DATA, "mismatch: a shard of device "
		    "'%.80s' where '%.80s' sends", shard_device(sh),
		    x->o->device);
	return admit_run(x->inbox, x->o->run, inbox_run_of(sh), e);
}

static void
receive_check_head(const struct receive *x, const struct shard *sh,
    struct receipt *r)
{
	memset(r, 0, sizeof(*r));
	memcpy(r->run, sh->run, SHARD_ID);
	memcpy(r->device, sh->device, SHARD_ID);
	r->step = sh->step;
	admit_head(&x->o->admit, sh, reader_schema(x->in), r);
}

/* Decodes the records of one frame, so that whatever is accepted can be added
 * up later. What cannot be decoded ends the connection: it was damaged on the
 * way, and is not a shard to be refused. */
static int
receive_check_data(struct receive *x, struct receipt *r, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	const struct record *rec;
	struct schema_span span;
	size_t i, n, count;
	int k;

	rec = reader_records(x->in, &count);
	for (i = 0; i < count; i++) {
		if ((k = values_decode(x->in, &rec[i], x->v.buf, x->v.cap, &n,
		    e)) < 0)
			return k;
		schema_span(sc, rec[i].group, &span);
		admit_values(x->kern, &sc->t[span.tensor], span.offset,
		    x->v.buf, n, r);
	}
	return 0;
}

/* Writes the shard, frame by frame, to a temporary file; once it is refused,
 * only its digest is still needed. w is NULL when it was refused before. */
static int
receive_data(struct receive *x, struct writer *w, struct receipt *r,
    struct err *e)
{
	const struct chain_frame *f;
	uint64_t bytes = 0;
	size_t names = 0;
	int k;

	if ((k = values_begin(&x->v, x->in, e)) < 0)
		return k;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND) {
		f = reader_frame(x->in);
		bytes += FRAME_HEAD_SIZE + f->wire_len +
		    frame_padding(f->wire_len);
		if (bytes > x->o->admit.shard)
			admit_refuse(r, "limit: larger than --max-shard");
		if (bytes / RECEIVE_BEYOND > x->o->admit.shard)
			return err_set(e, ERR_DATA, "limit: a shard of more "
			    "than %d times --max-shard", RECEIVE_BEYOND);
		if (r->verdict != RECEIPT_ACCEPTED)
			continue;
		if ((k == READER_DATA && (k = receive_check_data(x, r, e)) < 0) ||
		    (k == READER_NOTE &&
		    (k = admit_note(x->in, &names, r, e)) < 0) ||
		    (r->verdict == RECEIPT_ACCEPTED &&
		    (k = writer_pass(w, x->in, e)) < 0))
			return k;
	}
	return k < 0 ? k : 0;
}

static int
receive_tell_receipt(struct receive *x, const struct receipt *r,
    const struct shard *sh, struct err *e)
{
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);
	struct answer a;

	memset(&a, 0, sizeof(a));
	a.r = *r;
	(void)snprintf(a.run, sizeof(a.run), "%s", run != NULL ? run : "");
	cli_say(x->o->cli, 1, "'%s' step %llu: %s%s%s", shard_device(sh),
	    (unsigned long long)r->step, receipt_verdict_name(r->verdict),
	    r->reason[0] != '\0' ? ": " : "", r->reason);
	return answer_tell(x->to, &a, e);
}

/* Takes the shard into the spool, with a verdict that is on disk.  A step that is
 * over gets no directory: there may be any number of them. */
static int
receive_spool(struct receive *x, const struct shard *sh, int over,
    struct receipt *r, struct err *e)
{
	struct writer *w = NULL;
	char *temp = NULL;
	int k;

	if ((over || (k = inbox_begin(x->inbox, sh, e)) == 0) &&
	    (k = inbox_temp(x->inbox, sh, &temp, &w, e)) == 0 &&
	    (k = writer_shard(w, sh, reader_schema(x->in), e)) == 0)
		k = receive_data(x, w, r, e);
	if (k == 0 && r->verdict == RECEIPT_ACCEPTED &&
	    (k = writer_send(w, &reader_end_of_shard(x->in)->sums, e)) == 0)
		k = writer_finish(w, e);
	if (k == 0) {
		memcpy(r->digest, reader_end_of_shard(x->in)->digest,
		    SHARD_DIGEST);
		k = verdict_settle(x->inbox, sh, reader_schema(x->in), temp, r,
		    e);
	} else if (temp != NULL) {
		(void)unlink(temp);
	}
	writer_free(w);
	alloc_free(temp);
	return k;
}

/* Reads the shard to its end without leaving a trace of it in the spool. */
static int
receive_skip(struct receive *x, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	int k = receive_data(x, NULL, r, e);

	if (k < 0)
		return k;
	memcpy(r->digest, reader_end_of_shard(x->in)->digest, SHARD_DIGEST);
	return inbox_sign(x->inbox, inbox_run_of(sh), r, e);
}

/* A model without values asks for what the others know from its step on; see
 * join_next. */
static int
receive_ask(struct receive *x, const struct shard *sh, struct err *e)
{
	struct answer a;
	int k;

	memset(&a, 0, sizeof(a));
	a.r.verdict = RECEIPT_INVALID;	/* nothing of it is kept */
	(void)snprintf(a.run, sizeof(a.run), "%s", inbox_run_of(sh));
	(void)snprintf(a.device, sizeof(a.device), "%s", shard_device(sh));
	a.r.step = sh->step;
	cli_say(x->o->cli, 1, "'%s' asks from step %llu on", a.device,
	    (unsigned long long)sh->step);
	if ((k = receive_data(x, NULL, &a.r, e)) < 0)
		return k;
	return answer_tell(x->to, &a, e);
}

static int
receive_shard(struct receive *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	struct receipt r, room;
	int k;

	if ((k = receive_check_sender(x, sh, e)) < 0)
		return k;
	if (x->o->tells && sh->kind == SHARD_MODEL &&
	    reader_schema(x->in)->total == 0)
		return receive_ask(x, sh, e);
	receive_check_head(x, sh, &r);
	room = r;
	room.verdict = RECEIPT_ACCEPTED;
	if ((k = verdict_head(x->inbox, sh, reader_schema(x->in), &r, e)) < 0)
		return k;
	if ((k = admit_place(&x->o->admit, x->inbox, sh, &room, e)) < 0)
		return k;
	if (room.verdict != RECEIPT_ACCEPTED) {
		r = room;
		k = receive_skip(x, sh, &r, e);
	} else {
		k = receive_spool(x, sh, k, &r, e);
	}
	return k < 0 ? k : receive_tell_receipt(x, &r, sh, e);
}

static int
receive_take(struct receive *x, struct err *e)
{
	int r;

	reader_patience(x->in, x->o->idle, x->o->time);
	while ((r = reader_next(x->in, e)) > 0) {
		if (r != READER_SHARD)
			continue;
		reader_patience(x->in, x->o->silence, x->o->time);
		if ((r = receive_shard(x, e)) < 0 || x->o->once)
			break;
		reader_patience(x->in, x->o->idle, x->o->time);
	}
	return r;
}

int
receive_all(const struct inbox *s, struct reader *in,
    const struct receive_opts *o, int to, struct err *e)
{
	struct receive x = { .o = o, .inbox = s, .in = in, .v = VALUES_INIT };
	struct answer a;
	int r;

	x.v.differences = 1;
	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((r = io_create_fd(&x.to, to, "<answers>", e)) == 0 &&
	    (r = receive_take(&x, e)) == 0) {
		memset(&a, 0, sizeof(a));
		a.end = 1;
		r = answer_tell(x.to, &a, e);
	}
	io_free(x.to);
	values_release(&x.v);
	return r;
}

/* ---- the other way: an aggregate ---- */

static int
receive_publish_shard(const struct inbox *s, struct reader *in, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);
	struct writer_opts wo = { "ace-recv", NULL, 0 };
	struct writer *w = NULL;
	struct io *io;
	char *path;
	int r;

	if ((r = inbox_begin(s, sh, e)) < 0)
		return r;
	path = inbox_path(s, run != NULL ? run : "", &sh->step,
	    "aggregate.aceg", e);
	if (path == NULL)
		return -ERR_SYS;
	if ((r = io_create(&io, path, 0, e)) == 0 &&
	    (r = writer_open(&w, io, &wo, e)) == 0 &&
	    (r = filter_copy(in, w, e)) == 0)
		r = writer_end(w, s->sync, e);
	if (r == 0)
		r = inbox_durable(s, inbox_run_of(sh), &sh->step, e);
	writer_free(w);
	alloc_free(path);
	return r;
}

int
receive_publish(const struct inbox *s, const char *run, struct reader *in,
    struct err *e)
{
	int r;

	while ((r = reader_next(in, e)) > 0) {
		if (r != READER_SHARD)
			continue;
		if (reader_shard(in)->kind == SHARD_MODEL)
			return join_model(s, run, in, e);
		if ((r = receive_publish_shard(s, in, e)) < 0)
			break;
	}
	return r;
}
