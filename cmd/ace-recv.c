/*
 * ace-recv: the receiving end of a device's connection.  Every shard is
 * verified whole, put into the spool, and answered with a receipt; with
 * --reply aggregate the step's aggregate follows as soon as there is one.
 *
 * Two processes: one reads and spools, the other answers.  A device that
 * writes its next shard while the answer to the last one is on its way would
 * otherwise block us both.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/wait.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "spool/fence.h"
#include "spool/verdict.h"

enum {
	OPT_SPOOL = CLI_LONG, OPT_REPLY, OPT_MAX, OPT_ONCE,
	OPT_STALE, OPT_PUBLISH, OPT_RUN, OPT_FENCE
};

static const struct cli_opt options[] = {
	{ OPT_SPOOL, "spool", "DIR", "where shards are kept (needed)" },
	{ OPT_REPLY, "reply", "WHAT", "receipt (default) or aggregate" },
	{ 'd', "device", "NAME", "shards of this device only" },
	{ OPT_RUN, "run", "NAME", "shards of this run only" },
	{ OPT_MAX, "max-shard", "SIZE", "refuse larger ones (on the wire)" },
	{ OPT_STALE, "max-staleness", "N",
	    "refuse those computed at a model N steps older" },
	{ OPT_ONCE, "once", NULL, "end after one shard" },
	{ OPT_PUBLISH, "publish", NULL,
	    "the input is the aggregate: hand it to those who wait" },
	{ OPT_FENCE, "fence", "STEP",
	    "the device's state was restored, as of STEP" },
	FILTER_OPT_SYNC,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const char *spool, *device, *run;
	int aggregate, once, publish, fence;
	uint64_t max_shard, max_stale, fence_step;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const what[] = { "receipt", "aggregate", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case OPT_SPOOL:
		o->spool = val;
		return 0;
	case OPT_REPLY:
		return num_choice(&o->aggregate, val, what, "--reply", e);
	case 'd':
		o->device = val;
		return 0;
	case OPT_RUN:
		o->run = val;
		return 0;
	case OPT_MAX:
		return num_size(&o->max_shard, val, "--max-shard", e);
	case OPT_STALE:
		return num_u64(&o->max_stale, val, 0, 1u << 30,
		    "--max-staleness", e);
	case OPT_ONCE:
		o->once = 1;
		return 0;
	case OPT_PUBLISH:
		o->publish = o->f.mute = 1;
		return 0;
	case OPT_FENCE:
		o->fence = 1;
		return num_u64(&o->fence_step, val, 0, UINT64_MAX, "--fence",
		    e);
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* What the reading process tells the answering one. */
struct answer {
	struct receipt r;
	char run[SHARD_NAME + 1];
	int end;		/* all was read; without it the answers are
				   an aborted stream */
};

struct run {
	struct opts *o;
	const struct cli *c;
	struct inbox inbox;
	struct reader *in;
	struct writer *out;
	const struct kern *kern;
	struct values v;
	struct io *to;		/* the pipe to the answering process */
};

/* ---- reading ---- */

static void
refuse(struct receipt *r, const char *why)
{
	if (r->verdict != RECEIPT_ACCEPTED)
		return;		/* the first reason stays */
	r->verdict = RECEIPT_INVALID;
	(void)snprintf(r->reason, sizeof(r->reason), "%.150s", why);
}

/* Not ours to speak for: no receipt, which would have to be kept and would stand
 * in the way of those whose shard it is.  The connection ends. */
static int
check_sender(const struct run *x, const struct shard *sh, struct err *e)
{
	if (x->o->device != NULL &&
	    strcmp(shard_device(sh), x->o->device) != 0)
		return err_set(e, ERR_DATA, "mismatch: a shard of device "
		    "'%.80s' where '%.80s' sends", shard_device(sh),
		    x->o->device);
	if (x->o->run != NULL && strcmp(shard_run(sh), x->o->run) != 0)
		return err_set(e, ERR_DATA, "mismatch: a shard of run '%.80s', "
		    "not '%.80s'", shard_run(sh), x->o->run);
	return 0;
}

static void
check_head(const struct shard *sh, struct receipt *r)
{
	memset(r, 0, sizeof(*r));
	memcpy(r->run, sh->run, SHARD_ID);
	memcpy(r->device, sh->device, SHARD_ID);
	r->step = sh->step;
	if ((sh->flags & SHARD_RECOVERED) != 0)
		refuse(r, "recovered from a damaged file");
}

/* The records of one frame: decoded, so that what is accepted can be summed.
 * What cannot be decoded is the end of the connection: it is damage, not an
 * opinion. */
static int
check_data(struct run *x, struct receipt *r, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	const struct record *rec;
	struct schema_span span;
	size_t i, n, count, at;
	char why[320];
	int k;

	rec = reader_records(x->in, &count);
	for (i = 0; i < count; i++) {
		if ((k = values_decode(x->in, &rec[i], x->v.x, x->v.cap, &n,
		    e)) < 0)
			return k;
		if ((at = x->kern->first_nonfinite(x->v.x, n)) == n)
			continue;
		schema_span(sc, rec[i].group, &span);
		(void)snprintf(why, sizeof(why), "non-finite value in tensor "
		    "'%.80s' at index %llu", sc->t[span.tensor].name,
		    (unsigned long long)(span.offset + at));
		refuse(r, why);
	}
	return 0;
}

/* The shard, frame for frame, to a temporary file; once it is refused, only
 * its digest is still wanted. */
static int
take_data(struct run *x, struct writer *w, struct receipt *r, struct err *e)
{
	const struct chain_frame *f;
	uint64_t bytes = 0;
	int k;

	if ((k = values_begin(&x->v, x->in, e)) < 0)
		return k;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND) {
		f = reader_frame(x->in);
		bytes += FRAME_HEAD_SIZE + f->wire_len +
		    frame_padding(f->wire_len);
		if (x->o->max_shard != 0 && bytes > x->o->max_shard)
			refuse(r, "limit: larger than --max-shard");
		if ((k == READER_DATA && (k = check_data(x, r, e)) < 0) ||
		    (r->verdict == RECEIPT_ACCEPTED &&
		    (k = writer_pass(w, x->in, e)) < 0))
			return k;
	}
	return k < 0 ? k : 0;
}

static int
tell(struct run *x, const struct answer *a, struct err *e)
{
	int r = io_write(x->to, a, sizeof(*a), e);

	return r < 0 ? r : io_flush(x->to, e);
}

static int
tell_receipt(struct run *x, const struct receipt *r, const struct shard *sh,
    struct err *e)
{
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);
	struct answer a;

	memset(&a, 0, sizeof(a));
	a.r = *r;
	(void)snprintf(a.run, sizeof(a.run), "%s", run != NULL ? run : "");
	cli_say(x->c, 1, "'%s' step %llu: %s%s%s", shard_device(sh),
	    (unsigned long long)r->step, receipt_verdict_name(r->verdict),
	    r->reason[0] != '\0' ? ": " : "", r->reason);
	return tell(x, &a, e);
}

/* Into the spool, with a verdict that is on disk. */
static int
spool_shard(struct run *x, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	struct writer *w = NULL;
	char *temp = NULL;
	int k;

	if ((k = inbox_begin(&x->inbox, sh, e)) == 0 &&
	    (k = inbox_temp(&x->inbox, sh, &temp, &w, e)) == 0 &&
	    (k = writer_shard(w, sh, reader_schema(x->in), e)) == 0)
		k = take_data(x, w, r, e);
	if (k == 0 && r->verdict == RECEIPT_ACCEPTED &&
	    (k = writer_send(w, &reader_end_of_shard(x->in)->sums, e)) == 0)
		k = writer_finish(w, e);
	if (k == 0) {
		memcpy(r->digest, reader_end_of_shard(x->in)->digest,
		    SHARD_DIGEST);
		k = verdict_settle(&x->inbox, sh, reader_schema(x->in), temp, r,
		    e);
	} else if (temp != NULL) {
		(void)unlink(temp);
	}
	writer_free(w);
	alloc_free(temp);
	return k;
}

static int
take_shard(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	struct receipt r;
	int k;

	if ((k = check_sender(x, sh, e)) < 0)
		return k;
	check_head(sh, &r);
	k = spool_shard(x, sh, &r, e);
	return k < 0 ? k : tell_receipt(x, &r, sh, e);
}

static int
take(struct run *x, struct err *e)
{
	int r;

	while ((r = reader_next(x->in, e)) > 0) {
		if (r != READER_SHARD)
			continue;
		if ((r = take_shard(x, e)) < 0 || x->o->once)
			break;
	}
	return r;
}

/* The reading process. */
static int
receive(struct run *x, int to, struct err *e)
{
	struct answer a;
	int r;

	/* nobody would hear what we accept */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if ((r = io_create_fd(&x->to, to, "<answers>", e)) == 0 &&
	    (r = take(x, e)) == 0) {
		memset(&a, 0, sizeof(a));
		a.end = 1;
		r = tell(x, &a, e);
	}
	io_free(x->to);
	return r;
}

/* ---- answering ---- */

/* Until there is an aggregate: 0, and *path is NULL if there never will be.  Or
 * until the device is gone, and nobody waits. */
static int
wait_for(const struct run *x, const struct answer *a, char **path,
    struct err *e)
{
	struct wait w = wait_begin(-1, STDOUT_FILENO);
	int k, r;

	while ((r = inbox_aggregate(&x->inbox, a->run, a->r.step, path,
	    e)) == INBOX_COMING)
		if ((k = wait_more(&w, e)) < 0)
			return k;
	return r < 0 ? r : 0;
}

/* The step's aggregate, which appears when it is whole, to w. */
static int
send_aggregate(const struct run *x, const struct answer *a, struct err *e)
{
	char *path = NULL;
	int k;

	if ((k = wait_for(x, a, &path, e)) < 0 || path == NULL)
		return k;
	k = filter_copy_file(path, &x->o->f.in, x->out, e);
	alloc_free(path);
	return k;
}

static int
answer_one(const struct run *x, const struct answer *a, struct err *e)
{
	int r = writer_receipt(x->out, &a->r, e);

	/* who was refused ends with it, and waits for nothing */
	if (r < 0 || !x->o->aggregate || receipt_is_refused(&a->r))
		return r;
	return send_aggregate(x, a, e);
}

/* 1: the reading process ended before all was read. */
static int
answer_all(const struct run *x, int from, struct err *e)
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
			r = answer_one(x, &a, e);
	} while (r == 0 && !a.end);
	io_free(io);
	return r;
}

/* The end of the reading process, which is of no use any more (r < 0), has
 * done its work (0) or has failed (1). */
static int
reap(pid_t pid, int r, struct err *e)
{
	int status = 0;

	if (r < 0)
		(void)kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (r <= 0)
		return r;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
		return err_set(e, ERR_SYS, "the reading process was killed");
	e->quiet = 1;		/* it has said why */
	return -WEXITSTATUS(status);
}

/* Answers in this process, reads in a child. */
static int
serve(struct run *x, struct err *e)
{
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);
	int fd[2], r, k;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return err_sys(e, "cannot answer");
	if (pid == 0) {
		(void)close(fd[0]);
		_exit(cli_exit(x->c, receive(x, fd[1], e), e));
	}
	(void)close(fd[1]);
	reader_free(x->in);
	x->in = NULL;
	r = answer_all(x, fd[0], e);
	(void)close(fd[0]);
	k = filter_end(x->out, reap(pid, r, e), e);
	(void)signal(SIGPIPE, was);
	if (r <= 0 && k < 0 && e->quiet && was == SIG_DFL)
		(void)raise(SIGPIPE);	/* as if we had left it alone */
	return k;
}

/* ---- publishing ---- */

static int
publish_shard(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);
	struct writer_opts wo = { "ace-recv", NULL, 0 };
	struct writer *w = NULL;
	struct io *io;
	char *path;
	int r;

	if ((r = inbox_begin(&x->inbox, sh, e)) < 0)
		return r;
	path = inbox_path(&x->inbox, run != NULL ? run : "", &sh->step,
	    "aggregate.aceg", e);
	if (path == NULL)
		return -ERR_SYS;
	if ((r = io_create(&io, path, 0, e)) == 0 &&
	    (r = writer_open(&w, io, &wo, e)) == 0 &&
	    (r = filter_copy(x->in, w, e)) == 0)
		r = writer_end(w, x->inbox.sync, e);
	if (r == 0)
		r = inbox_durable(&x->inbox, inbox_run_of(sh), &sh->step, e);
	writer_free(w);
	alloc_free(path);
	return r;
}

static int
publish(struct run *x, struct err *e)
{
	int r;

	while ((r = reader_next(x->in, e)) > 0)
		if (r == READER_SHARD && (r = publish_shard(x, e)) < 0)
			break;
	return r;
}

/* What the spool has of the device, and a new incarnation for it. */
static int
fence(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	int r;

	if (o->device == NULL || o->run == NULL)
		return err_set(e, ERR_USAGE, "--fence of what? (--device NAME "
		    "--run NAME)");
	r = fence_send(&x->inbox, o->run, o->device, o->fence_step, x->out, e);
	return filter_end(x->out, r, e);
}

static int
run(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct run x = { .o = o, .c = c, .inbox = INBOX_INIT,
	    .v = VALUES_INIT };
	int r;

	if (o->spool == NULL)
		return err_set(e, ERR_USAGE, "where to? (--spool DIR)");
	if ((o->publish || o->fence) && (o->aggregate || o->once))
		return err_set(e, ERR_USAGE, "--reply and --once are of "
		    "shards that arrive");
	if (o->fence && (o->publish || path != NULL))
		return err_set(e, ERR_USAGE, "--fence reads no input and "
		    "publishes nothing");
	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	x.inbox.sync = o->f.sync;
	x.inbox.max_stale = o->max_stale;
	x.v.differences = 1;
	if ((o->publish || (r = filter_out(&o->f, &x.out, e)) == 0) &&
	    (r = inbox_open(&x.inbox, o->spool, e)) == 0 && (o->fence ||
	    (r = filter_in(&o->f, &x.in, path, e)) == 0))
		r = o->fence ? fence(&x, e) :
		    o->publish ? publish(&x, e) : serve(&x, e);
	values_release(&x.v);
	writer_free(x.out);
	reader_free(x.in);
	inbox_close(&x.inbox);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-recv",
		.usage = "--spool DIR [--reply WHAT] [--device NAME] "
		    "[--max-shard SIZE] [--once | --publish | --fence STEP] "
		    "[FILE]",
		.about = "Receives a device's shards into a spool and answers "
		    "with receipts, or with the aggregate.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .max_stale = UINT64_MAX };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, &c, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
