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
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "kern/kern.h"
#include "pipe/program.h"
#include "spool/answer.h"
#include "spool/clients.h"
#include "spool/fence.h"
#include "spool/join.h"
#include "spool/receive.h"
#include "spool/roster.h"
#include "spool/serving.h"
#include "spool/waiting.h"

enum {
	OPT_SPOOL = CLI_LONG, OPT_REPLY, OPT_MAX, OPT_ONCE,
	OPT_STALE, OPT_PUBLISH, OPT_RUN, OPT_FENCE, OPT_JOIN, OPT_LEAVE, OPT_KIND, OPT_WEIGHT,
	OPT_CONTRIB, OPT_AHEAD, OPT_QUOTA, OPT_OPEN, OPT_SILENCE, OPT_TIME,
	OPT_IDLE, OPT_CLIENTS, OPT_EACH
};

static const struct cli_opt options[] = {
	{ OPT_SPOOL, "spool", "DIR", "where shards are kept (needed)" },
	{ OPT_REPLY, "reply", "WHAT", "receipt (default) or aggregate" },
	{ 'd', "device", "NAME", "shards of this device only" },
	{ OPT_RUN, "run", "NAME",
	    "shards of this run only (default that of the spool)" },
	{ FILTER_SCHEMA, "schema", "FILE",
	    "shards of this model only (default that of the first one)" },
	{ OPT_KIND, "kind", "LIST",
	    "of these kinds only (default gradient,delta,sum,mean)" },
	{ OPT_MAX, "max-shard", "SIZE",
	    "refuse larger ones (on the wire, default 256Mi)" },
	{ OPT_WEIGHT, "max-weight", "X", "heavier ones (default 1e6)" },
	{ OPT_CONTRIB, "max-contributors", "N",
	    "those of more devices (default 1024)" },
	{ OPT_AHEAD, "max-ahead", "N",
	    "those of more than N steps after the last closed one "
	    "(default 10000)" },
	{ OPT_QUOTA, "quota", "SIZE",
	    "those of a device with so much in open steps (default 4Gi)" },
	{ OPT_OPEN, "max-open", "N",
	    "or with shards in so many of them (default 1024)" },
	{ OPT_SILENCE, "timeout", "TIME",
	    "end when nothing comes in the middle of a shard (default 60s)" },
	{ OPT_IDLE, "idle", "TIME", "or between two of them (default 2h)" },
	{ OPT_TIME, "max-time", "TIME",
	    "or when no shard is whole after so long (default 24h)" },
	{ OPT_CLIENTS, "max-clients", "N",
	    "serve so many connections at a time (default 256)" },
	{ OPT_EACH, "max-each", "N",
	    "and so many of --device (default 16)" },
	{ OPT_STALE, "max-staleness", "N",
	    "refuse those computed at a model N steps older" },
	{ OPT_ONCE, "once", NULL, "end after one shard" },
	{ OPT_PUBLISH, "publish", NULL,
	    "the input is the aggregate: hand it to those who wait" },
	{ OPT_FENCE, "fence", "STEP",
	    "the device's state was restored, as of STEP" },
	{ OPT_JOIN, "join", NULL,
	    "the device comes into a run: write what the others know" },
	{ OPT_LEAVE, "leave", NULL,
	    "the device has left: nobody waits for it any more" },
	FILTER_OPT_SYNC,
	{ FILTER_MAX, "max-elements", "N",
	    "refuse larger models (default 68719476736)" },
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter *f;
	struct receive_opts shard;
	const char *spool;
	int aggregate;
	enum act { RECEIVE, PUBLISH, FENCE, JOIN, LEAVE } act;
	uint64_t max_stale, fence_step, clients, each;
};

/* How long it may take, and how many at a time. */
static int
set_patience(struct opts *o, int key, const char *val, struct err *e)
{
	switch (key) {
	case OPT_SILENCE:
		return num_time(&o->shard.silence, val, "--timeout", e);
	case OPT_IDLE:
		return num_time(&o->shard.idle, val, "--idle", e);
	case OPT_TIME:
		return num_time(&o->shard.time, val, "--max-time", e);
	case OPT_CLIENTS:
		return num_u64(&o->clients, val, 1, CLIENTS_LIMIT,
		    "--max-clients", e);
	case OPT_EACH:
		return num_u64(&o->each, val, 1, CLIENTS_LIMIT, "--max-each",
		    e);
	default:
		return 0;
	}
}

/* What is let in. */
static int
set_limit(struct opts *o, int key, const char *val, struct err *e)
{
	struct admit *a = &o->shard.admit;

	switch (key) {
	case OPT_KIND:
		return admit_kinds(a, val, e);
	case OPT_MAX:
		return num_size(&a->shard, val, "--max-shard", e);
	case OPT_WEIGHT:
		return num_f64(&a->weight, val, 1e-300, ADMIT_WEIGHT_MOST,
		    "--max-weight", e);
	case OPT_CONTRIB:
		return num_u64(&a->contributors, val, 1, 1 << 20,
		    "--max-contributors", e);
	case OPT_AHEAD:
		return num_u64(&a->ahead, val, 1, ADMIT_STEP_MOST,
		    "--max-ahead", e);
	case OPT_QUOTA:
		return num_size(&a->quota, val, "--quota", e);
	case OPT_OPEN:
		return num_u64(&a->open, val, 1, 1 << 20, "--max-open", e);
	default:
		return set_patience(o, key, val, e);
	}
}

static int
set_act(struct opts *o, enum act act, struct err *e)
{
	if (o->act != RECEIVE && o->act != act)
		return err_set(e, ERR_USAGE, "one of --publish, --fence, "
		    "--join, --leave");
	o->act = act;
	return 0;
}

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
		r = num_choice(&o->aggregate, val, what, "--reply", e);
		o->shard.tells = o->aggregate;
		return r;
	case 'd':
		o->shard.device = val;
		return 0;
	case OPT_RUN:
		o->shard.run = val;
		return 0;
	case OPT_STALE:
		return num_u64(&o->max_stale, val, 0, 1u << 30,
		    "--max-staleness", e);
	case OPT_ONCE:
		o->shard.once = 1;
		return 0;
	case OPT_PUBLISH:
		o->f->mute = 1;
		return set_act(o, PUBLISH, e);
	case OPT_JOIN:
		return set_act(o, JOIN, e);
	case OPT_LEAVE:
		o->f->mute = 1;
		return set_act(o, LEAVE, e);
	case OPT_FENCE:
		if (set_act(o, FENCE, e) < 0)
			return -ERR_USAGE;
		return num_u64(&o->fence_step, val, 0, UINT64_MAX, "--fence",
		    e);
	default:
		return set_limit(o, key, val, e);
	}
}

/* What a device waits for is said where its connection takes the words back. */
static void
says(void *arg, const char *what)
{
	cli_say(arg, 0, "%s", what);
}

struct run {
	const struct opts *o;
	struct inbox inbox;
	struct reader *in;
	struct writer *out;
};

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

/* The device does not take its answers.  It leaves as it is, in the middle of a
 * write; the reading process follows (PR_SET_PDEATHSIG). */
static void
weary(int sig)
{
	static const char says[] = "ace-recv: truncated: the time is over, and "
	    "nobody takes the answers\n";

	(void)sig;
	(void)!write(STDERR_FILENO, says, sizeof(says) - 1);
	_exit(ERR_DATA);
}

/* Answers in this process, reads in a child.  Where the shards came from is still
 * open here when the child has given up. */
static int
serve(struct run *x, int from, struct err *e)
{
	const struct cli *c = x->o->f->cli;
	const struct answer_opts a = { &x->inbox, x->o->aggregate,
	    &x->o->f->in, x->out, x->o->shard.time };
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);
	int fd[2], r, k;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return err_sys(e, "cannot answer");
	if (pid == 0) {
		(void)close(fd[0]);
		/* nobody would hear what we accept */
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		r = receive_all(&x->inbox, x->in, &x->o->shard, fd[1], e);
		_exit(cli_exit(c, r, e));
	}
	(void)close(fd[1]);
	(void)signal(SIGALRM, weary);
	reader_free(x->in);
	x->in = NULL;
	r = answer_all(&a, fd[0], e);
	(void)close(fd[0]);
	k = filter_end(x->out, reap(pid, r, e), e);
	if (k < 0 && r > 0)
		fd_linger(from);
	(void)signal(SIGPIPE, was);
	if (r <= 0 && k < 0 && e->quiet && was == SIG_DFL)
		(void)raise(SIGPIPE);	/* as if we had left it alone */
	return k;
}

/* What the spool has of the device, and a new incarnation for it; or what a
 * device has to know that comes into the run; or one less to wait for. */
static int
operate(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	const char *run = o->shard.run, *device = o->shard.device;
	int r = 0;

	if (o->act != FENCE)
		r = roster_change(&x->inbox, run, device, o->act == JOIN, e);
	if (o->act == LEAVE)
		return r;
	if (r == 0)
		r = o->act == JOIN ?
		    join_send(&x->inbox, run, device, x->out, e) :
		    fence_send(&x->inbox, run, device, o->fence_step, x->out,
		    e);
	return filter_end(x->out, r, e);
}

/* Checks that the options given may be used together. */
static int
check(const struct opts *o, const char *path, struct err *e)
{
	const int reads = o->act == RECEIVE || o->act == PUBLISH;

	if (o->spool == NULL)
		return err_set(e, ERR_USAGE, "where to? (--spool DIR)");
	if (o->act != RECEIVE && (o->aggregate || o->shard.once))
		return err_set(e, ERR_USAGE, "--reply and --once are of "
		    "shards that arrive");
	if (!reads && path != NULL)
		return err_set(e, ERR_USAGE, "--fence, --join and --leave read "
		    "no input, not '%s'", path);
	if (!reads && (o->shard.device == NULL || o->shard.run == NULL))
		return err_set(e, ERR_USAGE, "which device, of which run? "
		    "(--device NAME --run NAME)");
	if (!reads && strchr(o->shard.run, '*') != NULL)
		return err_set(e, ERR_USAGE, "--fence, --join and --leave are of "
		    "one run, not '%s'", o->shard.run);
	return 0;
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct run x = { .o = o, .inbox = INBOX_INIT };
	const volatile sig_atomic_t asked = 0;
	struct waiting wait = { .say = says, .asked = &asked,
	    .arg = (void *)(uintptr_t)o->f->cli };
	int r = check(o, *path, e), place = -1;

	(void)n;
	o->shard.admit.schema = o->f->in.schema;
	if (o->act == RECEIVE) {
		/* one of another model gets a receipt that says so */
		o->f->in.any_model = 1;
		o->f->in.max_table = RECEIVE_TABLE;
	}
	if (r < 0)
		return r;
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	x.inbox.sync = o->f->sync;
	x.inbox.max_stale = o->max_stale;
	x.inbox.wait = &wait;
	if ((o->f->mute || (r = filter_out(o->f, &x.out, e)) == 0) &&
	    (r = inbox_open(&x.inbox, o->spool, e)) == 0 &&
	    (o->act != RECEIVE || (r = clients_enter(&x.inbox, o->clients,
	    o->shard.device, o->each, &place, e)) == 0) &&
	    (o->act > PUBLISH || (r = filter_in(o->f, &x.in, *path, e)) == 0)) {
		if (o->act == RECEIVE)
			serving_tell(&x.inbox, "ace-recv",
			    o->f->cli->confined);
		r = o->act == RECEIVE ? serve(&x, *path == NULL ||
		    strcmp(*path, "-") == 0 ? STDIN_FILENO : -1, e) :
		    o->act == PUBLISH ?
		    receive_publish(&x.inbox, o->shard.run, x.in, e) :
		    operate(&x, e);
	}
	writer_free(x.out);
	reader_free(x.in);
	inbox_close(&x.inbox);
	if (place >= 0)
		(void)close(place);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-recv",
			.usage = "--spool DIR [--reply WHAT] [--device NAME] "
			    "[--max-shard SIZE] [--once | --publish | --fence STEP | "
			    "--join | --leave] [FILE]",
			.about = "Receives a device's shards into a spool and answers "
			    "with receipts, or with the aggregate.",
			.examples = "ace-compress -S state -c q8 edge1.aceg | "
			    "ace-recv --spool spool |\n"
			    "        ace-ack -S state >rest.aceg\n"
			    "ace-recv --spool spool --device edge2 "
			    "edge2.aceg >receipts\n",
			.opt = options,
			.one = 1
		},
		.set = set,
		.run = run
	};
	struct opts o = { .f = &p.f, .max_stale = UINT64_MAX,
	    .clients = CLIENTS_MOST, .each = CLIENTS_EACH, .shard = {
	    .admit = admit_default, .cli = &p.cli, .silence = 60,
	    .idle = 7200, .time = 86400 } };

	return program_main(&p, argc, argv, &o);
}
