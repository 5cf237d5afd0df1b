/*
 * mixtures [-n COUNT] [-s SEED] [-v]: COUNT spools, each with honest devices and
 * fewer hostile ones that send whatever they like, in any order, for three steps.
 *
 * After each step, whatever came:
 *   - the aggregator closes the honest devices' step, with all of them in it
 *   - the aggregate is finite, and, by rules that bear so many bad devices,
 *     between the honest ones' values; by the mean no heavier than the devices
 *     may be together
 *   - nothing takes longer than 60 seconds
 *
 * It is receive_all, which ace-recv calls, and stage_aggregate_run, which
 * ace-aggregate calls, in one process.  The same seed makes the same spools.
 */
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "away.h"
#include "forge.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "format/values.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "spool/inbox.h"
#include "spool/receive.h"
#include "stage/stage_aggregate.h"

enum { VALUES = 48, MOST = 6, STEPS = 3, STREAM = 1 << 16 };

static char name[] = "mixtures";
static struct cli quiet = { .prog = name, .quiet = 1 };
static uint64_t seed, mixture;
static int verbose;
static volatile sig_atomic_t asked;
static uint64_t theirs;		/* shards of hostile devices in aggregates */

/* What one mixture is made of. */
struct world {
	char dir[32], out[64];
	struct schema sc, other;	/* the model, and one that is none */
	unsigned honest, hostile;
	uint64_t first;			/* step */
	unsigned stride;		/* of the honest devices' steps */
	const char *rule;
	int bounded;			/* it bears so many bad devices */
	float low[VALUES], high[VALUES];
};

static void
bad(const char *what, uint64_t step, const struct err *e)
{
	(void)fprintf(stderr, "mixtures: seed %llu mixture %llu step %llu: %s: "
	    "%s\n", (unsigned long long)seed, (unsigned long long)mixture,
	    (unsigned long long)step, what, e != NULL ? ERR_MSG(e) : "");
	exit(1);
}

static void
wedged(int sig)
{
	(void)sig;
	bad("it waits", 0, NULL);
}

static void
must(int r, const struct err *e)
{
	if (r < 0)
		bad("cannot make the test", 0, e);
}

/* Numbers from the seed and the mixture alone: splitmix64. */
static uint64_t state;

static uint64_t
any(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static unsigned
below(unsigned n)
{
	return (unsigned)(any() % n);
}

/* ---- shards ---- */

struct made {
	const char *device, *run, *policy, *key, *value;
	const struct schema *sc;
	struct shard sh;
	float x[VALUES];
};

static void
model(struct schema *sc, const char *tensor, uint64_t n)
{
	struct schema_tensor t;
	struct err e = ERR_INIT;

	*sc = (struct schema)SCHEMA_INIT;
	sc->group_size = 16;
	memset(&t, 0, sizeof(t));
	t.name = (char *)(uintptr_t)tensor;
	t.ndim = 1;
	t.dim[0] = n;
	must(schema_add(sc, &t, &e), &e);
	must(schema_finish(sc, &e), &e);
}

/* The stream of one shard; its length. */
static size_t
stream(const struct made *m, unsigned char *out)
{
	const struct writer_opts wo = { "mixtures", NULL, 0 };
	struct err e = ERR_INIT;
	struct writer *w;
	struct io *io;
	struct shard sh = m->sh;
	const unsigned char *p;
	struct schema_span span;
	uint32_t g;
	size_t n;

	must(io_create_mem(&io, &e), &e);
	must(writer_open(&w, io, &wo, &e), &e);
	sh.kv = (struct text_kv)TEXT_KV_INIT;
	must(shard_set_run(&sh, m->run, &e), &e);
	must(shard_set_device(&sh, m->device, &e), &e);
	if (m->key != NULL)
		must(text_set(&sh.kv, m->key, m->value, &e), &e);
	must(writer_shard(w, &sh, m->sc, &e), &e);
	if (m->policy != NULL)
		must(writer_note(w, FRAME_POLI, m->policy, strlen(m->policy),
		    &e), &e);
	for (g = 0; g < m->sc->ngroups; g++) {
		schema_span(m->sc, g, &span);
		must(writer_values(w, g, m->x + span.offset, span.n, &e), &e);
	}
	must(writer_send(w, NULL, &e), &e);
	must(writer_finish(w, &e), &e);
	p = io_mem(io, &n);
	if (n > STREAM)
		bad("a stream is too long", 0, NULL);
	memcpy(out, p, n);
	writer_free(w);
	shard_release(&sh);
	return n;
}

/* A gradient with no zero in it, like those of the others. */
static void
begin(const struct world *w, struct made *m, const char *device, uint64_t step)
{
	size_t i;

	memset(m, 0, sizeof(*m));
	shard_init(&m->sh);
	m->sh.step = step;
	m->sh.samples = 32;
	m->device = device;
	m->run = "run";
	m->sc = &w->sc;
	for (i = 0; i < VALUES; i++)
		m->x[i] = (float)((double)(any() >> 40) * 0x1p-24 + 0.25);
}

/* ---- what hostile devices do ---- */

static void
huge(struct made *m)
{
	static const float values[] = { 3e38f, -3e38f, 1e30f, 0, INFINITY, NAN,
		1e-45f, 1e18f };
	const unsigned how = below(8);
	const size_t n = below(2) ? VALUES : below(VALUES);
	size_t i;

	for (i = 0; i < n; i++)
		m->x[i] = values[how];
}

/* Fields of the head that lie. */
static void
lie(struct made *m)
{
	static const double weights[] = { 1e6, 1e30, 1e308, 5e-324, 2, 1000 };

	switch (below(8)) {
	case 0: m->sh.weight = weights[below(6)]; break;
	case 1: m->sh.kind = below(SHARD_NKIND); break;
	case 2: m->sh.contributors = (uint32_t)any(); break;
	case 3: m->sh.contributors = below(2000); break;
	case 4: m->sh.samples = any(); break;
	case 5: m->sh.base_version = any() >> below(64); break;
	case 6: m->sh.incarnation = (uint32_t)any() >> below(32); break;
	default: m->sh.flags = (uint32_t)(1u << below(6)); break;
	}
}

static void
text(struct made *m)
{
	static const char *const policies[] = { "delay=nan\n", "interval=0\n",
		"force=2\n", "delay=1000\n", "interval=1\ndelay=999\n",
		"cuts=1,2\n", "cuts=1\ncuts.seconds=1e300\n", "x=y\n", "=\n" };
	static const char *const keys[] = { "model.norm", "interval", "stamp",
		"rule", "contributors" };
	static const char *const values[] = { "nan", "-1", "1e308", "", "x" };

	if (below(2))
		m->policy = policies[below(9)];
	else {
		m->key = keys[below(5)];
		m->value = values[below(5)];
	}
}

/* Steps of its own: before, after and between those of the others. */
static uint64_t
elsewhere(const struct world *w, uint64_t step)
{
	switch (below(6)) {
	case 0: return below(2) ? UINT64_MAX - below(2) : any();
	case 1: return step + 1 + below(10000);
	case 2: return step + w->stride;
	case 3: return step + 1;
	case 4: return step > 0 ? step - 1 : 0;
	default: return w->first > 0 ? any() % w->first : 0;
	}
}

/* A byte of a payload is changed, and every checksum is right again. */
static size_t
forged(unsigned char *p, size_t n)
{
	struct forge s;
	struct forge_frame *f;
	unsigned char *q;
	size_t i, k;

	forge_open(&s, p, n);
	for (i = 1 + below(3); i > 0; i--) {
		f = &s.f[below((unsigned)s.n)];
		if (f->n > 0)
			f->p[below((unsigned)f->n)] ^=
			    (unsigned char)(1u << below(8));
		if (below(8) == 0 && s.n > 2)
			forge_swap(&s, 1 + below((unsigned)s.n - 1),
			    1 + below((unsigned)s.n - 1));
		else if (below(8) == 0 && s.n > 2)
			forge_delete(&s, 1 + below((unsigned)s.n - 2));
	}
	for (i = 0; i < s.n; i++)
		if (forge_type(&s.f[i]) == FRAME_TAIL && s.f[i].n < 40)
			s.f[i].keep = KEEP_BODY;
	q = forge_seal(&s, &k);
	forge_free(&s);
	if (k > STREAM)
		k = STREAM;
	memcpy(p, q, k);
	free(q);
	return k;
}

/* One stream of a hostile device. */
static size_t
attack(const struct world *w, const char *device, uint64_t step,
    unsigned char *p)
{
	const unsigned how = below(12);
	struct made m;
	size_t n, i;

	begin(w, &m, device, step);
	if (how == 0)
		huge(&m);
	if (how == 1 || how == 2)
		lie(&m);
	if (how == 3)
		text(&m);
	if (how == 4 || how == 5)
		m.sh.step = elsewhere(w, step);
	if (how == 6)
		m.run = below(2) ? "other" : "";
	if (how == 7)
		m.sc = &w->other;
	if (how == 8)
		m.device = below(2) ? "honest0" : "";
	n = stream(&m, p);
	if (how == 9)
		n = forged(p, n);
	if (how == 10)
		n = below((unsigned)n);
	if (how == 11)
		for (i = below((unsigned)n); i < n; i += 1 + below(400))
			p[i] = (unsigned char)any();
	return n;
}

/* ---- the two programs ---- */

static void
receive(const struct world *w, const char *device, const unsigned char *p,
    size_t n)
{
	struct receive_opts o = { .admit = admit_default, .silence = 60,
	    .idle = 60, .time = 60, .cli = &quiet, .device = device,
	    .run = "run" };
	struct reader_opts ro = { .max_elements = 1 << 20 };
	struct inbox s = INBOX_INIT;
	struct err e = ERR_INIT;
	struct reader *in = NULL;
	struct io *io;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	s.sync = IO_SYNC_NONE;
	o.admit.weight = 1;
	o.admit.contributors = 1;
	o.admit.open = 64;
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
	struct stage_aggregate_opts o = { .device = "aggregate",
	    .who = { .rule_text = w->rule, .theta = -1 }, .expect = w->honest,
	    .quorum = w->honest, .steps = 1, .spool = w->dir, .run = "run",
	    .asked = &asked };
	struct err e = ERR_INIT;
	struct filter f;
	int r;

	must(robust_parse(&o.who.rule, w->rule, &e), &e);
	filter_init(&f, &quiet, 1, argv);
	f.output = w->out;
	f.sync = IO_SYNC_NONE;
	o.f = &f;
	r = stage_aggregate_run(&o, NULL, 0, &e);
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
		at = v->group * 16 + i;
		if (!isfinite(v->x[i]))
			bad("a value is not finite", step, NULL);
		if (w->bounded && (v->x[i] < w->low[at] ||
		    v->x[i] > w->high[at]))
			bad("a value is outside of the honest ones", step, NULL);
	}
}

static void
check(const struct world *w, uint64_t step)
{
	const struct reader_opts ro = { .max_elements = 1 << 20 };
	struct values v = VALUES_INIT;
	struct err e = ERR_INIT;
	struct reader *r = NULL;
	const struct shard *sh;
	struct io *io;
	unsigned shards = 0;
	int k;

	must(io_open(&io, w->out, &e), &e);
	must(reader_open(&r, io, &ro, &e), &e);
	while ((k = reader_next(r, &e)) > 0) {
		if (k != READER_SHARD)
			continue;
		sh = reader_shard(r);
		shards++;
		if (sh->step != step)
			bad("another step was closed", sh->step, NULL);
		if (strncmp(w->rule, "krum", 4) != 0 &&
		    strncmp(w->rule, "norm", 4) != 0 &&
		    sh->contributors < w->honest)
			bad("an honest device is missing", step, NULL);
		theirs += sh->contributors > w->honest ?
		    sh->contributors - w->honest : 0;
		if (sh->weight > w->honest + w->hostile)
			bad("the aggregate is too heavy", step, NULL);
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

static void
honest(struct world *w, unsigned d, uint64_t step, unsigned char *p)
{
	char device[32];
	struct made m;
	size_t i, n;

	(void)snprintf(device, sizeof(device), "honest%u", d);
	begin(w, &m, device, step);
	for (i = 0; i < VALUES; i++) {
		w->low[i] = d == 0 || m.x[i] < w->low[i] ? m.x[i] : w->low[i];
		w->high[i] = d == 0 || m.x[i] > w->high[i] ? m.x[i] : w->high[i];
	}
	n = stream(&m, p);
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

static void
choose(struct world *w)
{
	static const char *const rules[] = { "mean", "median", "trim:%u",
		"krum:%u", "norm-ratio:2", "clip:100" };
	static char rule[32];
	const unsigned how = below(6);

	w->honest = 2 + below(MOST - 1);
	w->hostile = below(w->honest);
	/* trim and krum have to be possible with the honest ones alone */
	if (how == 2)
		w->hostile = below((w->honest - 1) / 2 + 1);
	if (how == 3) {
		w->honest += w->honest < 3;
		w->hostile = below((w->honest - 3) / 2 + 1);
	}
	(void)snprintf(rule, sizeof(rule), rules[how], w->hostile);
	w->rule = rule;
	w->bounded = how == 1 || how == 2 || (how == 3 && w->hostile == 0);
	w->first = below(3) == 0 ? 0 : below(9000);
	w->stride = below(2) ? 1 : 1 + below(40);
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
	model(&w.sc, "w", VALUES);
	model(&w.other, below(2) ? "w" : "x", below(VALUES) + 1);
	if (mkdtemp(w.dir) == NULL)
		bad("no directory", 0, NULL);
	(void)snprintf(w.out, sizeof(w.out), "%s.out", w.dir);
	if (verbose)
		(void)printf("%llu: %u honest, %u hostile, %s\n",
		    (unsigned long long)mixture, w.honest, w.hostile, w.rule);
	for (i = 0; i < STEPS; i++) {
		step = w.first + i * w.stride;
		(void)alarm(60);
		clients(&w, step);
		average(&w, step);
		check(&w, step);
	}
	(void)alarm(0);
	(void)nftw(w.dir, take_away, 16, FTW_DEPTH | FTW_PHYS);
	(void)unlink(w.out);
	schema_release(&w.sc);
	schema_release(&w.other);
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
