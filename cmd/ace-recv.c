/*
 * ace-recv: the receiving end of a device's connection.  It verifies every shard to its
 * end, puts it into the spool and answers with a receipt; with --reply aggregate the
 * average of the step follows as soon as there is one.
 *
 * One process reads shards into the spool, another one answers (spool/receive.h).
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
#include "base/temp.h"
#include "kern/kern.h"
#include "pipe/event.h"
#include "pipe/program.h"
#include "spool/clients.h"
#include "spool/join.h"
#include "spool/receive.h"
#include "spool/roster.h"
#include "spool/waiting.h"

struct opts {
	struct filter *f;
	struct receive_opts shard;
	const char *spool;
	int aggregate;
	enum act { RECEIVE, INIT, PUBLISH, JOIN, LEAVE } act;
};

static int
set_act(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct opts *o = arg;
	const enum act act = (enum act)row->value;

	if (o->act != RECEIVE && o->act != act)
		return err_set(e, ERR_USAGE, "--create, --publish, --join and "
		    "--leave exclude each other: give one");
	o->act = act;
	o->f->mute = 1;
	return 0;
}

static const char *const replies[] = { "receipt", "aggregate", NULL };
static const struct opt schema_rows[] = {
	{ 0, "schema", "FILE",
	    "accept this model only (default that of the first one)",
	    OPT_CALL(filter_schema), .right = OPT_READ },
	OPT_END
};
static const struct opt options[] = {
	{ 0, "spool", "DIR", "folder that keeps the shards (needed)",
	    OPT_PATH(struct opts, spool, OPT_DIR) },
	{ 0, "reply", "WHAT", NULL, OPT_WORD(struct opts, aggregate, replies),
	    .def = "receipt" },
	{ 'd', "device", "NAME", "accept shards of this device only",
	    OPT_TEXT(struct opts, shard.device) },
	{ 0, "run", "NAME", "accept this run only (default that of the first)",
	    OPT_TEXT(struct opts, shard.run) },
	OPT_SHARED(schema_rows),
	{ 0, "create", NULL, "make the spool, and the file of its limits",
	    OPT_CALL(set_act), .value = INIT },
	{ 0, "publish", NULL,
	    "the input is the average: give it to the devices that wait",
	    OPT_CALL(set_act), .value = PUBLISH },
	{ 0, "join", NULL,
	    "let the device into the run: rounds wait for it",
	    OPT_CALL(set_act), .value = JOIN },
	{ 0, "leave", NULL,
	    "the device has left: no round waits for it any more",
	    OPT_CALL(set_act), .value = LEAVE },
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	OPT_SHARED(filter_opts_max),
	FILTER_OPTS_OUT,
	OPT_END
};

struct run {
	const struct opts *o;
	struct spool spool;
	int clients;		/* descriptor from clients_open */
	struct reader *in;
	struct writer *out;
};

struct reading {
	pid_t pid;		/* 0: the reading process has ended */
	int status;		/* its status once it has ended */
};

static int
gave_up(void *reading)
{
	struct reading *p = reading;

	if (p->pid != 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->pid = 0;
	return p->pid == 0 && p->status != 0;
}

/* Wait for the end of the reading process, after the answers ended with r.  r < 0: stop
 * the reading process; 0: it has done its work; 1: it failed, so return its error. */
static int
reap(struct reading *p, int r, struct err *e)
{
	if (r < 0 && p->pid != 0)
		(void)kill(p->pid, SIGTERM);
	while (p->pid != 0 && waitpid(p->pid, &p->status, 0) < 0 &&
	    errno == EINTR)
		continue;
	if (r <= 0)
		return r;
	if (!WIFEXITED(p->status) || WEXITSTATUS(p->status) == 0)
		return err_set(e, ERR_SYS, "the process that reads the shards was "
		    "killed by signal %d: see the system's log", WTERMSIG(p->status));
	e->quiet = 1;		/* the reading process has printed its message */
	return -WEXITSTATUS(p->status);
}

/* Handle SIGALRM: the device does not read its answers.  Exit in the middle of the write;
 * then the reading process ends, too (PR_SET_PDEATHSIG). */
static void
weary(int sig)
{
	static const char says[] = "ace-recv: truncated: timed out: the device does not "
	    "read its answers (limits: time)\n";

	temp_abandon();
	(void)!write(STDERR_FILENO, says, sizeof(says) - 1);
	_exit(ERR_DATA);
}

/* Unblock a signal, which may have been blocked when this program was started. */
static void
listen_to(int sig)
{
	sigset_t s;

	(void)sigemptyset(&s);
	(void)sigaddset(&s, sig);
	(void)sigprocmask(SIG_UNBLOCK, &s, NULL);
}

/* Read in a child and answer in this process.  from: the descriptor of standard input if that
 * is the input, else -1; it stays open here, for fd_linger after the child has failed. */
static int
serve(struct run *x, int from, struct err *e)
{
	const struct cli *c = x->o->f->cli;
	struct reading p = { 0, 0 };
	struct receive_answers a = { &x->spool, STEPS_INIT, x->o->aggregate,
	    &x->o->f->in, x->out, x->o->shard.limits.time, gave_up, &p };
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);
	int fd[2], r, k;

	if (pipe2(fd, O_CLOEXEC) < 0 || (p.pid = fork()) < 0)
		return err_sys(e, "cannot start the process that reads the shards");
	if (p.pid == 0) {
		(void)close(fd[0]);
		/* end with the other process: without it nothing would be answered */
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		listen_to(SIGTERM);
		sandbox_narrow(&c->box, 0);
		r = receive_all(&x->spool, x->in, &x->o->shard, fd[1], e);
		_exit(cli_exit(c, r, e));
	}
	sandbox_narrow(&c->box, p.pid);
	(void)close(fd[1]);
	listen_to(SIGALRM);
	(void)signal(SIGALRM, weary);
	reader_free(x->in);
	x->in = NULL;
	r = receive_answer(&a, fd[0], e);
	(void)close(fd[0]);
	k = filter_end(x->out, reap(&p, r, e), e);
	(void)signal(SIGALRM, SIG_IGN);		/* all answers are written */
	if (k < 0 && r > 0)
		fd_linger(from);
	(void)signal(SIGPIPE, was);
	if (r <= 0 && k < 0 && e->quiet && was != SIG_IGN)
		(void)raise(SIGPIPE);	/* end as if SIGPIPE were not ignored */
	return k;
}

static int
operate(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	const int joins = o->act == JOIN;
	int r = roster_change(&x->spool, o->shard.device, joins, e);

	/* assume that the device begins with the common model */
	return r < 0 || !joins ? r : join_known(&x->spool, o->shard.device, 0, e);
}

static int
check(const struct opts *o, const char *path, struct err *e)
{
	if (o->spool == NULL)
		return err_set(e, ERR_USAGE, "no spool was given: add --spool DIR");
	if (o->act != RECEIVE && (o->aggregate || o->shard.run != NULL))
		return err_set(e, ERR_USAGE, "--create, --publish, --join and "
		    "--leave exclude --reply and --run: leave --reply and --run out");
	if (o->f->mute && o->f->output != NULL)
		return err_set(e, ERR_USAGE, "--create, --publish, --join and "
		    "--leave write nothing: leave out --output '%s'", o->f->output);
	if ((o->act == PUBLISH || o->act == INIT) && o->shard.device != NULL)
		return err_set(e, ERR_USAGE, "--%s is for all devices: leave --device out",
		    o->act == INIT ? "create" : "publish");
	if (o->act == RECEIVE || o->act == PUBLISH)
		return 0;
	if (o->f->in.schema != NULL)
		return err_set(e, ERR_USAGE, "--create, --join and --leave read no shards: leave "
		    "--schema out");
	if (path != NULL)
		return err_set(e, ERR_USAGE, "--create, --join and --leave read no "
		    "input: leave out '%s'", path);
	if (o->act != INIT && o->shard.device == NULL)
		return err_set(e, ERR_USAGE, "no device was given: add --device NAME");
	return 0;
}

/* Receive the shards of a device, within the spool's limits for it. */
static int
take(struct run *x, struct opts *o, const char *path, struct err *e)
{
	struct limits *a = &o->shard.limits;
	int r;

	/* a shard of another model gets a receipt with the reason */
	o->f->in.any_model = 1;
	o->f->in.max_table = RECEIVE_TABLE;
	a->schema = o->f->in.schema;
	o->shard.tells = o->aggregate;
	if ((r = limits_read(a, &x->spool, o->shard.device, e)) == 0 &&
	    (r = clients_enter(x->clients, a->clients, o->shard.device, a->each,
	    e)) == 0 && (r = filter_in(o->f, &x->in, path, e)) == 0) {
		temp_sweep(x->spool.state.dir);
		r = serve(x, path == NULL || strcmp(path, "-") == 0 ?
		    STDIN_FILENO : -1, e);
	}
	return r;
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct run x = { .o = o, .spool = SPOOL_INIT, .clients = -1 };
	const volatile sig_atomic_t asked = 0;
	/* messages about waits go to standard error, which ssh takes to the device */
	struct waiting wait = { .f = o->f, .asked = &asked };
	int r = check(o, *path, e);

	if (r < 0)
		return r;
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	x.spool.sync = o->f->sync;
	x.spool.wait = &wait;
	if ((o->f->mute || (r = filter_out(o->f, &x.out, e)) == 0) &&
	    (r = spool_open(&x.spool, o->spool, o->act != LEAVE, e)) == 0 &&
	    (o->act == LEAVE || (r = clients_open(&x.spool, &x.clients, e)) == 0)) {
		if (o->act == RECEIVE)
			r = take(&x, o, *path, e);
		else if (o->act == INIT)
			r = limits_init(&x.spool, e);
		else if (o->act != PUBLISH)
			r = operate(&x, e);
		else if ((r = filter_in(o->f, &x.in, *path, e)) == 0)
			r = receive_publish(&x.spool, x.in, e);
	}
	if (x.clients >= 0)
		(void)close(x.clients);
	writer_free(x.out);
	reader_free(x.in);
	spool_close(&x.spool);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-recv",
			.usage = "--spool DIR [--reply WHAT] [--device NAME] "
			    "[--create | --publish | --join | --leave] [FILE]",
			.about = "Receives a device's shards into a spool and answers "
			    "with receipts, or with the average.",
			.examples = "ace-compress -S state -c q8 edge1.aceg | "
			    "ace-recv --spool spool |\n"
			    "        ace-ack -S state >rest.aceg\n"
			    "ace-recv --spool spool --device edge2 "
			    "edge2.aceg >receipts\n",
			.opt = options,
			.one = 1,
			.serves = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f, .shard = { .cli = &p.cli } };

	return program_main(&p, argc, argv, &o);
}
