/*
 * What the devices of mixtures.c send: honest ones a gradient, hostile ones
 * whatever they like.  All of it comes from a seed.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forge.h"

#include "base/err.h"
#include "base/io.h"
#include "format/values.h"
#include "format/writer.h"

enum { VALUES = 48, GROUP = 16, TENSORS = 200, STREAM = 1 << 16 };

static uint64_t seed, mixture;

/* What one mixture is made of. */
struct world {
	char dir[32], out[64];
	struct schema sc, other, huge;	/* the model, one that is none, and one
					 * with more tensors than may come */
	unsigned honest, hostile;
	int pinned;			/* the receivers are told the model */
	uint64_t first;			/* step */
	unsigned stride;		/* of the honest devices' steps */
	const char *rule;
	int bounded;			/* it bears so many bad devices */
	int by;				/* how it weighs, enum contrib_by */
	double rho;			/* and how drift counts */
	int deadline;			/* it waits for all, but not for long */
	int late;			/* it waits long; the last device comes
					 * meanwhile, the first came long ago */
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
	unsigned policies;		/* how often the policy is said */
	uint32_t without;		/* a bit for each group that is not sent */
	const struct schema *sc;
	struct shard sh;
	float x[VALUES];
};

/* A model of so many tensors of n values each. */
static void
model(struct schema *sc, const char *tensor, unsigned tensors, uint64_t n)
{
	struct schema_tensor t;
	struct err e = ERR_INIT;
	char more[64];

	*sc = (struct schema)SCHEMA_INIT;
	sc->group_size = GROUP;
	for (; tensors > 0; tensors--) {
		(void)snprintf(more, sizeof(more), "%s.%u", tensor, tensors);
		memset(&t, 0, sizeof(t));
		t.name = tensors > 1 ? more : (char *)(uintptr_t)tensor;
		t.ndim = 1;
		t.dim[0] = n;
		must(schema_add(sc, &t, &e), &e);
	}
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
	const float *x;
	unsigned i;
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
	for (i = 0; m->policy != NULL && i <= m->policies; i++)
		must(writer_note(w, FRAME_POLI, m->policy, strlen(m->policy),
		    &e), &e);
	for (g = 0; g < m->sc->ngroups; g++) {
		if ((m->without >> g % 32 & 1) != 0)
			continue;
		schema_span(m->sc, g, &span);
		x = m->sc->n == 1 ? m->x + span.offset : m->x;
		must(writer_values(w, g, x, span.n, &e), &e);
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

/* A gradient with no zero in it, like those of the others, of a model whose norm
 * is 10. */
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
	m->key = SHARD_KEY_NORM;
	m->value = "10";
	m->sc = &w->sc;
	for (i = 0; i < VALUES; i++)
		m->x[i] = (float)((double)(any() >> 40) * 0x1p-24 + 0.25);
}

/* ---- what hostile devices do ---- */

static void
huge(struct made *m)
{
	static const float values[] = { 3e38f, -3e38f, 1e30f, 0, INFINITY, NAN,
		1e-45f, 1e18f, -1e18f, 1.1e18f };
	const unsigned how = below(10);
	const size_t n = below(2) ? VALUES : below(VALUES);
	size_t i;

	for (i = 0; i < n; i++)
		m->x[i] = values[how];
}

/* Zeros here and there, and groups that are not there. */
static void
empty(struct made *m)
{
	const unsigned third = below(4);
	size_t i;

	for (i = 0; i < VALUES; i++)
		if (third == 3 || i % 3 == third)
			m->x[i] = 0;
	m->without = (uint32_t)any() & (uint32_t)any();
}

/* Fields of the head that lie. */
static void
lie(struct made *m)
{
	static const double weights[] = { 1e6, 1e30, 1e308, 5e-324, 2, 1000 };

	switch (below(9)) {
	case 0: m->sh.weight = weights[below(6)]; break;
	case 1: m->sh.kind = below(SHARD_NKIND); break;
	case 2: m->sh.contributors = (uint32_t)any(); break;
	case 3: m->sh.contributors = below(2000); break;
	case 4: m->sh.samples = any(); break;
	case 5: m->sh.samples = 0; break;
	case 6: m->sh.base_version = any() >> below(64); break;
	case 7: m->sh.incarnation = (uint32_t)any() >> below(32); break;
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
	static const char *const values[] = { "nan", "-1", "1e308", "", "x",
		"1e300", "1e-300", "0" };

	switch (below(4)) {
	case 0: m->policy = policies[below(9)]; break;
	case 1: m->key = NULL; break;
	case 2: m->value = values[below(8)]; break;
	default:
		m->key = keys[below(5)];
		m->value = values[below(8)];
		break;
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
	const unsigned how = below(16);
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
	if (how == 12 || how == 13)
		empty(&m);
	if (how == 14)
		m.sc = &w->huge;
	if (how == 15) {
		/* more than a shard may have, or than is read of one */
		m.policy = "delay=2\n";
		m.policies = 1 + below(400);
	}
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

#endif
