/*
 * Random damage to a file of several streams: recovered shards equal those written, plus
 * SHARD_RECOVERED; each is recovered if the damage did not touch it or its schema.
 */
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/rng.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"
#include "report/verify.h"

#include "../tap.h"

enum { STREAMS = 2, SHARDS = 5, ALL = STREAMS * SHARDS, N = 90, MAX = 1 << 16,
    TRIALS = 4000 };

static unsigned char file[MAX], hurt[MAX + 64];
static size_t nfile;
static uint64_t want[ALL];		/* hash of identity and values */
static size_t from[ALL], to[ALL];	/* bytes of the good file */
static size_t schema_from[STREAMS], schema_to[STREAMS];

static void
make_schema(struct schema *s, int stream)
{
	struct schema_tensor t;

	memset(&t, 0, sizeof(t));
	s->group_size = 16;
	t.name = (char *)(stream != 0 ? "v" : "w");
	t.ndim = 1;
	t.dim[0] = N;
	(void)schema_add(s, &t, NULL);
	(void)schema_finish(s, NULL);
}

static int
make_shard(struct writer *w, const struct schema *sc, int stream, int shard,
    struct err *e)
{
	struct schema_span span;
	struct shard s;
	float x[16];
	uint32_t g, r[4];
	size_t i;
	int k;

	shard_init(&s);
	s.step = (uint64_t)shard;
	(void)shard_set_device(&s, stream != 0 ? "edge2" : "edge1", e);
	k = writer_shard(w, &s, sc, e);
	for (g = 0; g < sc->ngroups && k == 0; g++) {
		schema_span(sc, g, &span);
		for (i = 0; i < span.n; i++) {
			rng_block(7, (uint64_t)shard, g, (uint32_t)i, r);
			x[i] = rng_unit(r[stream]) - 0.5f;
		}
		k = writer_values(w, g, x, span.n, e);
		if (k == 0 && g == 3)	/* two DATA frames */
			k = writer_note(w, FRAME_POLI, "interval=4\n", 11, e);
	}
	shard_release(&s);
	return k < 0 ? k : writer_send(w, NULL, e);
}

static int
make_file(struct err *e)
{
	struct writer_opts o = { "test", "test 1", 0 };
	struct schema sc = SCHEMA_INIT;
	const unsigned char *p;
	struct writer *w;
	struct io *io;
	size_t n;
	int i, j, k = 0;

	for (i = 0; i < STREAMS && k == 0; i++) {
		schema_release(&sc);
		make_schema(&sc, i);
		(void)io_create_mem(&io, e);
		k = writer_open(&w, io, &o, e);
		for (j = 0; j < SHARDS && k == 0; j++)
			k = make_shard(w, &sc, i, j, e);
		if (k == 0)
			k = writer_finish(w, e);
		if (k == 0) {
			p = io_mem(io, &n);
			memcpy(file + nfile, p, n);
			nfile += n;
		}
		writer_free(w);
	}
	schema_release(&sc);
	return k;
}

/* Set *hash to a hash of the current shard's device, step and values. */
static int
shard_hash(struct reader *r, struct values *v, uint64_t *hash, struct err *e)
{
	unsigned char b[16 + 8 + 4 * N];
	const struct shard *s = reader_shard(r);
	size_t at = 24;
	int k;

	memset(b, 0, sizeof(b));
	memcpy(b, s->device, 16);
	memcpy(b + 16, &s->step, 8);
	if ((k = values_begin(v, r, e)) < 0)
		return k;
	while ((k = values_next(v, e)) > 0) {
		memcpy(b + at, v->x, 4 * v->n);
		at += 4 * v->n;
	}
	*hash = hash_64(b, sizeof(b));
	return k;
}

/* Record the hashes and positions of the shards in the good file. */
static int
survey(struct err *e)
{
	struct values v = VALUES_INIT;
	struct reader *r;
	struct io *io;
	int k, n = 0, stream = -1;

	(void)io_open_mem(&io, file, nfile, e);
	(void)reader_open(&r, io, NULL, e);
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_HEAD)
			schema_from[++stream] = (size_t)reader_offset(r) + 64 + 56;
		if (k != READER_SHARD || n == ALL)
			continue;
		from[n] = (size_t)reader_offset(r);
		if (n % SHARDS == 0)
			schema_to[stream] = from[n];	/* with provenance */
		if ((k = shard_hash(r, &v, &want[n], e)) < 0)
			break;
		to[n++] = (size_t)io_bytes(io);
	}
	values_release(&v);
	reader_free(r);
	return k < 0 ? k : n;
}

/* The bytes of the good file that one damage touched. */
struct wound {
	size_t from, to;
};

/* Make hurt: the file with bytes overwritten, removed or repeated. Return its length. */
static size_t
wound(uint32_t t, struct wound *w)
{
	uint32_t r[4], q[4];
	size_t at, len, i, n = nfile;

	rng_block(11, 0, 0, t, r);
	at = r[0] % nfile;
	len = 1 + r[1] % (r[2] % 8 == 0 ? 2000 : 60);
	if (len > nfile - at)
		len = nfile - at;
	w->from = at;
	w->to = at + len;
	memcpy(hurt, file, nfile);
	switch (r[3] % 3) {
	case 0:
		for (i = 0; i < len; i++) {
			rng_block(12, t, 0, (uint32_t)i, q);
			hurt[at + i] ^= (unsigned char)(1 + q[0] % 255);
		}
		break;
	case 1:
		memmove(hurt + at, file + at + len, nfile - at - len);
		n -= len;
		break;
	default:
		if (len > 60)
			len = 60;
		memcpy(hurt + at + len, file + at, nfile - at);
		w->to = at;
		n += len;
	}
	return n;
}

static int
untouched(size_t a, size_t b, const struct wound *w)
{
	return b <= w->from || a >= w->to;
}

/* Return whether shard i must survive; an insertion damages only the shard in which it
 * is. */
static int
expected(int i, const struct wound *w)
{
	size_t *sf = &schema_from[i / SHARDS], *st = &schema_to[i / SHARDS];

	if (w->from == w->to)
		return (w->from <= from[i] || w->from >= to[i]) &&
		    (w->from <= *sf || w->from >= *st);
	return untouched(from[i], to[i], w) && untouched(*sf, *st, w);
}

struct found {
	int n, wrong, unmarked;
	int have[ALL];
};

static int
judge(const unsigned char *p, size_t n, struct found *f, struct err *e)
{
	struct values v = VALUES_INIT;
	struct reader *r;
	struct io *io;
	uint64_t h;
	int k, i;

	memset(f, 0, sizeof(*f));
	(void)io_open_mem(&io, p, n, e);
	(void)reader_open(&r, io, NULL, e);
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		f->n++;
		f->unmarked += (reader_shard(r)->flags & SHARD_RECOVERED) == 0;
		if ((k = shard_hash(r, &v, &h, e)) < 0)
			break;
		for (i = 0; i < ALL && want[i] != h; i++)
			continue;
		if (i < ALL)
			f->have[i]++;
		else
			f->wrong++;
	}
	values_release(&v);
	reader_free(r);
	return k;
}

/* Recover hurt[n] and compare. */
static int
trial(size_t n, struct verify_saved *x, struct found *f, struct err *e)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct reader *r;
	struct writer *w;
	struct io *io, *out;
	const unsigned char *p;
	int k;

	(void)io_open_mem(&io, hurt, n, e);
	(void)reader_open(&r, io, NULL, e);
	(void)io_create_mem(&out, e);
	(void)writer_open(&w, out, &o, e);
	k = verify_recover(x, r, w, e);
	if (k == 0 && (k = writer_finish(w, e)) == 0) {
		p = io_mem(out, &n);
		k = judge(p, n, f, e);
	}
	writer_free(w);
	reader_free(r);
	return k;
}

int
main(void)
{
	unsigned long failed = 0, wrong = 0, lost = 0, twice = 0, unmarked = 0,
	    silent = 0, saved = 0;
	struct err e = ERR_INIT;
	struct verify_saved x;
	struct found f;
	struct wound w;
	uint32_t t;
	size_t n;
	int i;

	ok(make_file(&e) == 0, "two streams of five shards: %s", ERR_MSG(&e));
	ok(survey(&e) == ALL, "%zu bytes", nfile);
	memcpy(hurt, file, nfile);
	ok(trial(nfile, &x, &f, &e) == 0 && x.damages == 0 && x.saved == ALL &&
	    f.n == ALL && f.wrong == 0, "an undamaged file is recovered unchanged");
	for (t = 0; t < TRIALS; t++) {
		n = wound(t, &w);
		if (n == nfile && memcmp(hurt, file, n) == 0)
			continue;
		if (trial(n, &x, &f, &e) != 0) {
			failed++;
			continue;
		}
		silent += x.damages == 0;
		saved += x.saved;
		wrong += (unsigned)f.wrong;
		unmarked += (unsigned)f.unmarked;
		for (i = 0; i < ALL; i++) {
			twice += f.have[i] > 1;
			lost += expected(i, &w) && f.have[i] == 0;
		}
	}
	ok(failed == 0, "%d damaged files, %lu not recovered: %s", TRIALS,
	    failed, ERR_MSG(&e));
	ok(saved > 7ul * TRIALS, "%lu shards saved", saved);
	ok(wrong == 0, "%lu recovered shards were never written", wrong);
	ok(unmarked == 0, "%lu recovered shards are not marked", unmarked);
	ok(twice == 0, "%lu shards occur twice", twice);
	ok(lost == 0, "%lu undamaged shards are lost", lost);
	ok(silent == 0, "%lu damages are not reported", silent);
	return done_testing();
}
