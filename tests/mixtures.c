/*
 * mixtures [-n COUNT] [-s SEED] [-v]: COUNT spools, each with honest devices and
 * fewer hostile ones that send whatever they like, in any order, for three steps.
 *
 * After each step, whatever came:
 *   - the aggregator closes the honest devices' step, with all of them in it
 *   - the aggregate is no larger than values may be, and, by rules that bear so
 *     many bad devices, between the honest ones' values; by the mean no heavier
 *     than the devices may be together
 *   - it says a norm of the model that is near the honest ones'
 *   - nothing takes longer than 60 seconds
 *
 * In some, of honest devices alone, one was there hours before a quorum was, and
 * the last one comes while the aggregator waits: it waits for that one, too.
 *
 * It is receive_all, which ace-recv calls, and aggregate_run, which
 * ace-aggregate calls, in one process.  The same seed makes the same spools.
 */
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "away.h"
#include "hostile.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "format/values.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "spool/inbox.h"
#include "spool/receive.h"
#include "mean/aggregate.h"

enum { MOST = 6, STEPS = 3, TABLE = 4096, SHARD = 4096, LONG = 3600 };

static char name[] = "mixtures";
static struct cli quiet = { .prog = name, .quiet = 1 };
static int verbose;
static volatile sig_atomic_t asked;
static uint64_t theirs;		/* shards of hostile devices in aggregates */

static void
wedged(int sig)
{
	(void)sig;
	bad("it waits", 0, NULL);
}

/* ---- the two programs ---- */

static void
receive(const struct world *w, const char *device, const unsigned char *p,
    size_t n)
{
	struct receive_opts o = { .cli = &quiet, .device = device,
	    .run = "run" };
	struct reader_opts ro = { .max_elements = 1 << 20, .max_table = TABLE };
	struct inbox s = INBOX_INIT;
	struct err e = ERR_INIT;
	struct reader *in = NULL;
	struct io *io;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)admit_defaults(&o.admit, &e);
	s.sync = IO_SYNC_NONE;
	o.admit.weight = 1;
	o.admit.contributors = 1;
	o.admit.open = 64;
	o.admit.shard = SHARD;
	/* once somebody honest was there, the run has its model */
	if (w->pinned)
		o.admit.schema = &w->sc;
	if (null < 0)
		bad("no /dev/null", 0, NULL);
	must(inbox_open(&s, w->dir, &e), &e);
	if (io_open_mem(&io, p, n, &e) == 0 &&
	    reader_open(&in, io, &ro, &e) == 0)
		(void)receive_all(&s, in, &o, null, &e);
	if (e.code == ERR_SYS)
		bad("the receiver failed", 0, &e);
	(void)close(null);
	reader_free(in);
	inbox_close(&s);
}

static void
average(const struct world *w, uint64_t step)
{
	char *argv[] = { name, NULL };
	struct aggregate_opts o = { .device = "aggregate",
	    .who = { .rule_text = w->rule, .theta = -1, .by = w->by,
	    .rho = w->rho }, .expect = w->honest, .quorum = w->honest,
	    .steps = 1, .spool = w->dir, .run = "run", .asked = &asked };
	struct err e = ERR_INIT;
	struct filter f;
	int r;

	if (w->late) {
		o.quorum = w->honest - 1;
		o.deadline = LONG;
	} else if (w->deadline) {
		o.expect = w->honest + w->hostile + 1;
		o.deadline = 1e-3;
	}
	must(robust_parse(&o.who.rule, w->rule, &e), &e);
	filter_init(&f, &quiet, argv);
	f.output = w->out;
	f.sync = IO_SYNC_NONE;
	o.f = &f;
	r = aggregate_run(&o, NULL, 0, &e);
	filter_release(&f);
	if (r < 0)
		bad("no aggregate", step, &e);
}

/* ---- what has to be true ---- */

static void
check_values(const struct world *w, const struct values *v, uint64_t step)
{
	size_t i, at;

	for (i = 0; i < v->n; i++) {
		at = v->group * GROUP + i;
		if (!(fabsf(v->x[i]) <= VALUES_MOST * 1.0001f))
			bad("a value is too large", step, NULL);
		if (w->bounded && (v->x[i] < w->low[at] ||
		    v->x[i] > w->high[at]))
			bad("a value is outside of the honest ones", step, NULL);
	}
}

/* The norms are those of whom the rule takes. */
static void
check_norm(const struct world *w, const struct shard *sh, uint64_t step)
{
	const char *norm = text_get(&sh->kv, SHARD_KEY_NORM);
	const double x = norm != NULL ? strtod(norm, NULL) : 0;

	if (strstr(w->rule, "krum") == NULL && !(x > 4 && x <= 40))
		bad("the model's norm is lost", step, NULL);
}

static void
check_head(const struct world *w, const struct shard *sh, uint64_t step)
{
	if (sh->step != step)
		bad("another step was closed", sh->step, NULL);
	if (strstr(w->rule, "krum") == NULL &&
	    strncmp(w->rule, "norm", 4) != 0 && sh->contributors < w->honest)
		bad("an honest device is missing", step, NULL);
	theirs += sh->contributors > w->honest ?
	    sh->contributors - w->honest : 0;
	if (sh->weight > w->honest + w->hostile)
		bad("the aggregate is too heavy", step, NULL);
	check_norm(w, sh, step);
}

static void
check(const struct world *w, uint64_t step)
{
	const struct reader_opts ro = { .max_elements = 1 << 20 };
	struct values v = VALUES_INIT;
	struct err e = ERR_INIT;
	struct reader *r = NULL;
	struct io *io;
	unsigned shards = 0;
	int k;

	must(io_open(&io, w->out, &e), &e);
	must(reader_open(&r, io, &ro, &e), &e);
	while ((k = reader_next(r, &e)) > 0) {
		if (k != READER_SHARD)
			continue;
		shards++;
		check_head(w, reader_shard(r), step);
		if ((k = values_begin(&v, r, &e)) < 0)
			break;
		while ((k = values_next(&v, &e)) > 0)
			check_values(w, &v, step);
		if (k < 0)
			break;
	}
	if (k < 0 || shards != 1)
		bad("the aggregate cannot be read", step, &e);
	values_release(&v);
	reader_free(r);
}

/* ---- a mixture ---- */

/* The stream of an honest device, and its name; its length. */
static size_t
gradient(struct world *w, unsigned d, uint64_t step, char device[32],
    unsigned char *p)
{
	struct made m;
	size_t i;

	(void)snprintf(device, 32, "honest%u", d);
	begin(w, &m, device, step);
	for (i = 0; i < VALUES; i++) {
		w->low[i] = d == 0 || m.x[i] < w->low[i] ? m.x[i] : w->low[i];
		w->high[i] = d == 0 || m.x[i] > w->high[i] ? m.x[i] : w->high[i];
	}
	return stream(&m, p);
}

static void
honest(struct world *w, unsigned d, uint64_t step, unsigned char *p)
{
	char device[32];
	const size_t n = gradient(w, d, step, device, p);

	receive(w, device, p, n);
}

static void
hostile(const struct world *w, uint64_t step, unsigned char *p)
{
	char device[32];
	unsigned d = below(w->hostile), n;

	(void)snprintf(device, sizeof(device), "evil%u", d);
	for (n = 1 + below(3); n > 0; n--)
		receive(w, device, p, attack(w, device, step, p));
}

/* The step's clients in some order: honest ones in theirs, others in between. */
static void
clients(struct world *w, uint64_t step)
{
	static unsigned char p[STREAM];
	unsigned d = 0;

	while (d < w->honest)
		if (w->hostile > 0 && below(2))
			hostile(w, step, p);
		else
			honest(w, d++, step, p);
	while (w->hostile > 0 && below(3) > 0)
		hostile(w, step, p);
}

/* The first device's shard came long before the others'; who sends the last one
 * is another process, while the aggregator waits for it. */
static pid_t
early_and_late(struct world *w, uint64_t step)
{
	static unsigned char p[STREAM];
	const struct timespec then[2] = { { time(NULL) - 2 * LONG, 0 },
	    { time(NULL) - 2 * LONG, 0 } };
	char path[128], device[32];
	unsigned d;
	size_t n;
	pid_t pid;

	for (d = 0; d + 1 < w->honest; d++)
		honest(w, d, step, p);
	(void)snprintf(path, sizeof(path), "%s/run/%llu/honest0.aceg", w->dir,
	    (unsigned long long)step);
	if (utimensat(AT_FDCWD, path, then, 0) < 0)
		bad("the first shard is not there", step, NULL);
	n = gradient(w, d, step, device, p);
	if ((pid = fork()) < 0)
		bad("no process", step, NULL);
	if (pid == 0) {
		(void)usleep(20000);	/* who does not wait is done by then */
		receive(w, device, p, n);
		_exit(0);
	}
	return pid;
}

/* One step. */
static void
round_of(struct world *w, uint64_t step)
{
	pid_t pid = -1;
	int status = 0;

	(void)alarm(60);
	if (w->late)
		pid = early_and_late(w, step);
	else
		clients(w, step);
	average(w, step);
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0))
		bad("the last device could not send", step, NULL);
	check(w, step);
}

static void
choose(struct world *w)
{
	static const char *const rules[] = { "mean", "median", "trim:%u",
		"krum:%u", "norm-ratio:2", "clip:100", "multikrum:%u:1",
		"weight-share:0.6", "norm-running:4", "median:reporters",
		"median:nonzero,finite" };
	static char rule[32];
	const unsigned how = below(11);

	w->honest = 2 + below(MOST - 1);
	w->hostile = below(w->honest);
	/* trim and krum have to be possible with the honest ones alone */
	if (how == 2)
		w->hostile = below((w->honest - 1) / 2 + 1);
	if (how == 3 || how == 6) {
		w->honest += w->honest < 3;
		w->hostile = below((w->honest - 3) / 2 + 1);
	}
	(void)snprintf(rule, sizeof(rule), rules[how], w->hostile);
	w->rule = rule;
	w->bounded = how == 1 || how == 2 || (how == 3 && w->hostile == 0);
	w->first = below(3) == 0 ? 0 : below(9000);
	w->stride = below(2) ? 1 : 1 + below(40);
	w->by = (int)below(3);
	w->rho = below(3) == 0 ? 1 : 0;
	w->deadline = below(3) == 0;
	if ((w->late = below(12) == 0)) {
		w->honest += w->honest < 3;
		w->hostile = 0;
	}
}

static void
one(void)
{
	struct world w;
	uint64_t step;
	unsigned i;

	memset(&w, 0, sizeof(w));
	(void)snprintf(w.dir, sizeof(w.dir), "mixture.XXXXXX");
	state = seed * UINT64_C(1000003) + mixture;
	choose(&w);
	model(&w.sc, "w", 1, VALUES);
	model(&w.other, below(2) ? "w" : "x", 1, below(VALUES) + 1);
	model(&w.huge, "w", TENSORS, 1);
	if (mkdtemp(w.dir) == NULL)
		bad("no directory", 0, NULL);
	(void)snprintf(w.out, sizeof(w.out), "%s.out", w.dir);
	if (verbose)
		(void)printf("%llu: %u honest, %u hostile, %s\n",
		    (unsigned long long)mixture, w.honest, w.hostile, w.rule);
	for (i = 0; i < STEPS; i++) {
		step = w.first + i * w.stride;
		w.pinned = i == 0 || below(2);
		round_of(&w, step);
	}
	(void)alarm(0);
	(void)nftw(w.dir, take_away, 16, FTW_DEPTH | FTW_PHYS);
	(void)unlink(w.out);
	schema_release(&w.sc);
	schema_release(&w.other);
	schema_release(&w.huge);
}

int
main(int argc, char **argv)
{
	uint64_t n = 1000, done;
	int c;

	while ((c = getopt(argc, argv, "n:s:v")) != -1)
		if (c == 'n')
			n = strtoull(optarg, NULL, 10);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c == 'v')
			verbose = 1;
		else
			return 2;
	(void)signal(SIGALRM, wedged);
	for (done = 0; done < n; done++, mixture++)
		one();
	(void)printf("%llu mixtures, no wedge; %llu shards of hostile devices in "
	    "the aggregates\n", (unsigned long long)done,
	    (unsigned long long)theirs);
	return 0;
}
