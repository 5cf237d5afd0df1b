/*
 * mkshards: deterministic shard streams for the tests, never installed.
 * The same options give the same bytes on every machine with the same log() and cos().
 *
 *   mkshards [-t NAME:N,N...]... [-n TOTAL] [-g GROUP] [-k KIND] [-c CODEC]
 *            [-d DEVICE] [-r RUN] [-s STEP] [-N SHARDS] [-w WEIGHT] [-x SEED]
 *            [-i BAD] [-l | -L CODEC,CODEC...] [-P POLICY]... [-K KEY]... [-a] [-p]
 *            [-H FIELD=NUMBER]... [-M NAME,NAME...]... [-T SECONDS,SECONDS...]
 *            [-D DTYPE] [-A] [-F DIR] >STREAM
 *
 *   -t   a tensor and its shape; without -t, three small tensors
 *   -n   one tensor "w" of TOTAL values instead (k, M, G are binary here)
 *   -k   gauss; layered: scales and zeros differ by group; columns: scales differ
 *        by column; every second block of 8 rows is doubled; zeros; ramp: i + step;
 *        fast: gaussian values repeated every 65521, for gigabytes;
 *        nan, inf: gauss with a bad value at -i (default 3)
 *   -c   a codec as for ace-compress -c, default f32; none: values are not sent
 *   -N   the number of shards, of steps STEP, STEP+1, ...
 *   -F   the shards are of one step and of different devices, DEVICE followed by a
 *        number, each in its own file: DIR/DEVICE0.aceg, ...
 *   -l   a plan after the data with these codecs, separated by commas, for the
 *        groups in turn; -L: before the data
 *   -P   a policy before the data: lines KEY=VALUE; one frame per -P
 *   -K   a key of each shard: KEY=VALUE
 *   -a   an unknown annotation in each shard, of another type per -a; -p a provenance line
 *   -A   an unknown annotation before each shard, outside it
 *   -H   a field of the head: kind, flags, samples, contributors, incarnation or base
 *        (the model version) = a number; a field of the shard's end: dropped
 *   -M   names of contributors, separated by commas, before the data; one frame per -M
 *   -T   the times that the tensors took, in one frame; +SECONDS,...: after the values
 *   -D   the number of the type of the tensors after it, as in the schema
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "codec/codec.h"
#include "format/annotation.h"
#include "format/array.h"
#include "format/frame.h"
#include "format/values.h"
#include "format/writer.h"
#include "normal.h"

enum kind { GAUSS, LAYERED, COLUMNS, ZEROS, RAMP, FAST, NOTNUM, INFINITE };
static const char *const kinds[] = {
	"gauss", "layered", "columns", "zeros", "ramp", "fast", "nan", "inf", NULL
};

enum { TABLE = 65521 };

struct opts {
	struct schema sc;
	enum kind kind;
	struct codec_plan plan;
	const char *device, *run;
	const char **policy;		/* -P */
	size_t npolicy;
	const char *member[4];		/* -M */
	size_t nmember;
	const char *key[4];		/* -K */
	size_t nkey;
	const char *fleet;		/* -F */
	const char *head[16];		/* -H */
	size_t nhead;
	uint64_t step, shards, seed, bad;
	double weight;
	const char *times;
	int note, prov, loose;
	struct codec_plan *turn;	/* -l, -L */
	size_t nturn;
	int plan_first;
	float *table;
};

static uint8_t dtype;

static void
die(const struct err *e)
{
	(void)fprintf(stderr, "mkshards: %s\n", ERR_MSG(e));
	exit(ERR_SYS);
}

static uint64_t
number(const char *s)
{
	char *end;
	uint64_t v = strtoull(s, &end, 10);

	switch (*end) {
	case 'G':
		v <<= 10;
		/* FALLTHROUGH */
	case 'M':
		v <<= 10;
		/* FALLTHROUGH */
	case 'k':
		v <<= 10;
		end++;
	}
	if (end == s || *end != '\0') {
		(void)fprintf(stderr, "mkshards: '%s' is not a number\n", s);
		exit(ERR_USAGE);
	}
	return v;
}

static float
gauss(uint64_t seed, uint64_t step, uint64_t i)
{
	return (float)normal(seed, step, (uint32_t)(i >> 32), (uint32_t)i);
}

/* Return the scale of value i of group g: 2^-7 to 4 by column, and twice that in every
 * second block of 8 rows. */
static float
column(const struct schema *sc, uint32_t g, size_t i)
{
	struct schema_span span;
	uint64_t at;

	schema_span(sc, g, &span);
	at = span.offset + i;
	return ldexpf(1, (int)(at % span.cols * 7919 % 10 +
	    at / span.cols / 8 % 2) - 7);
}

/* Make x[n], the values of group g of the shard at `step'; base: the index of x[0]. */
static void
fill(const struct opts *o, uint64_t step, uint64_t base, uint32_t g, float *x, size_t n)
{
	static const float scale[] = { 1.0f, 0.01f, 30.0f, 1e-4f };
	size_t i;

	for (i = 0; i < n; i++)
		switch (o->kind) {
		case ZEROS:
			x[i] = 0;
			break;
		case RAMP:
			x[i] = (float)(base + i) + (float)step;
			break;
		case FAST:
			x[i] = o->table[(base + i + step * 7) % TABLE];
			break;
		default:
			x[i] = gauss(o->seed, step, base + i);
			if (o->kind == COLUMNS)
				x[i] *= column(&o->sc, g, i);
			if (o->kind == LAYERED)
				x[i] *= (base + i) % 10 < 3 + g % 7 ? 0 : scale[g % 4];
		}
	if (o->kind >= NOTNUM && o->bad >= base && o->bad < base + n)
		x[o->bad - base] = o->kind == NOTNUM ? NAN : INFINITY;
}

/* Set a field of the shard's head (SHRD) from the text of -H. */
static void
head(struct shard *s, const char *what)
{
	const char *eq = strchr(what, '=');
	uint64_t v = eq != NULL ? number(eq + 1) : 0;

	if (strncmp(what, "kind=", 5) == 0)
		s->kind = (uint32_t)v;
	else if (strncmp(what, "flags=", 6) == 0)
		s->flags = (uint32_t)v;
	else if (strncmp(what, "samples=", 8) == 0)
		s->samples = v;
	else if (strncmp(what, "contributors=", 13) == 0)
		s->contributors = (uint32_t)v;
	else if (strncmp(what, "incarnation=", 12) == 0)
		s->incarnation = (uint32_t)v;
	else if (strncmp(what, "base=", 5) == 0)
		s->base_version = v;
	else if (strncmp(what, "dropped=", 8) != 0)
		exit(ERR_USAGE);
}

/* Write the plan of -l and -L. */
static int
plan(const struct opts *o, struct writer *w, struct err *e)
{
	struct buf b = BUF_INIT;
	struct codec_plan *p = alloc_get(o->sc.ngroups, sizeof(*p), e);
	uint32_t g;
	int r = p != NULL ? 0 : -ERR_SYS;

	for (g = 0; p != NULL && g < o->sc.ngroups; g++)
		p[g] = o->turn[g % o->nturn];
	if (r == 0 && (r = note_put_plan(&b, 0, p, o->sc.ngroups, NULL, e)) == 0)
		r = writer_note(w, FRAME_PLAN, b.p, b.n, e);
	buf_release(&b);
	alloc_free(p);
	return r;
}

static void
turns(struct opts *o, const char *list, struct err *e)
{
	char name[64];
	size_t n;

	for (; list[0] != '\0'; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, list);
		o->turn = realloc(o->turn, (o->nturn + 1) * sizeof(*o->turn));
		if (o->turn == NULL || codec_parse(name, &o->turn[o->nturn++], e) < 0)
			die(e);
	}
}

static int
policy(const struct opts *o, struct writer *w, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int r = 0;

	for (i = 0; i < o->npolicy && r == 0; i++) {
		b.n = 0;
		if ((r = buf_put(&b, o->policy[i], strlen(o->policy[i]),
		    e)) == 0 && (r = buf_put(&b, "\n", 1, e)) == 0)
			r = writer_note(w, FRAME_POLI, b.p, b.n, e);
	}
	buf_release(&b);
	return r;
}

/* Write the frames of -M in the order of the options. Names are sorted only within
 * a frame. */
static int
members(const struct opts *o, struct writer *w, struct err *e)
{
	struct array_names l = ARRAY_NAMES_INIT;
	struct buf b = BUF_INIT;
	const char *s;
	size_t i, n;
	int r = 0;

	for (i = 0; i < o->nmember && r == 0; i++) {
		for (s = o->member[i]; *s != '\0' && r == 0; s += n + (s[n] == ',')) {
			n = strcspn(s, ",");
			r = array_name(&l, s, n, e);
		}
		b.n = 0;
		if (r == 0 && (r = array_put_names(&l, &b, e)) == 0)
			r = writer_note(w, FRAME_MEMB, b.p, b.n, e);
		array_release(&l);
	}
	buf_release(&b);
	return r;
}

static int
times(const struct opts *o, struct writer *w, struct err *e)
{
	struct buf b = BUF_INIT;
	static double v[8192];
	const char *s = o->times;
	size_t n = 0;
	int r;

	while (*s != '\0' && n < sizeof(v) / sizeof(*v)) {
		v[n++] = strtod(s, NULL);
		s += strcspn(s, ",");
		s += *s == ',';
	}
	if ((r = array_put_times(v, n, &b, e)) == 0)
		r = writer_note(w, FRAME_TIME, b.p, b.n, e);
	buf_release(&b);
	return r;
}

static int
keys(const struct opts *o, struct shard *s, struct err *e)
{
	const char *value;
	char name[64];
	size_t i;
	int r = 0;

	for (i = 0; i < o->nkey && r == 0; i++) {
		if ((value = strchr(o->key[i], '=')) == NULL)
			exit(ERR_USAGE);
		(void)snprintf(name, sizeof(name), "%.*s",
		    (int)(value - o->key[i]), o->key[i]);
		r = text_set(&s->kv, name, value + 1, e);
	}
	return r;
}

/* Write a shard of `step' with the values of the shard at step `like'. */
static int
shard(const struct opts *o, struct writer *w, uint64_t step, uint64_t like,
    float *x, float *y, struct err *e)
{
	struct buf body = BUF_INIT;
	struct codec_ctx ctx;
	struct schema_span span;
	struct shard s;
	uint8_t param;
	uint32_t g;
	size_t k;
	int r;

	shard_init(&s);
	s.step = step;
	s.weight = o->weight;
	s.samples = 32;
	for (k = 0; k < o->nhead; k++)
		head(&s, o->head[k]);
	if ((r = shard_set_run(&s, o->run, e)) < 0 ||
	    (r = shard_set_device(&s, o->device, e)) < 0 ||
	    (r = keys(o, &s, e)) < 0 ||
	    (r = writer_shard(w, &s, &o->sc, e)) < 0)
		goto out;
	for (k = 0; k < (size_t)o->note; k++)
		if ((r = writer_note(w, FRAME_TYPE('x', 'y', 'Z', 'z' - k), "hello", 5, e)) < 0)
			goto out;
	if ((r = policy(o, w, e)) < 0 || (r = members(o, w, e)) < 0 ||
	    (o->times != NULL && *o->times != '+' && (r = times(o, w, e)) < 0) ||
	    (o->plan_first && (r = plan(o, w, e)) < 0))
		goto out;
	for (g = 0; g < o->sc.ngroups && o->plan.codec != CODEC_NONE; g++) {
		schema_span(&o->sc, g, &span);
		fill(o, like, o->sc.t[span.tensor].base + span.offset, g, x, span.n);
		if (o->plan.codec == CODEC_F32) {
			if ((r = writer_values(w, g, x, span.n, e)) < 0)
				goto out;
			continue;
		}
		values_ctx(&o->sc, &s, g, &ctx);
		body.n = 0;
		param = o->plan.param;
		if ((r = codec_encode(&o->plan, &ctx, x, span.n, &body, &param,
		    e)) < 0 || (r = codec_decode(o->plan.codec, param, &ctx,
		    body.p, body.n, y, span.n, e)) < 0 ||
		    (r = writer_record(w, g, o->plan.codec, param, body.p,
		    body.n, y, span.n, e)) < 0)
			goto out;
	}
	for (k = 0; k < o->nhead; k++)
		if (strncmp(o->head[k], "dropped=", 8) == 0)
			writer_dropped(w, number(o->head[k] + 8));
	if (o->times != NULL && *o->times == '+' && (r = times(o, w, e)) < 0)
		goto out;
	if (o->nturn == 0 || o->plan_first || (r = plan(o, w, e)) == 0)
		r = writer_send(w, NULL, e);
out:
	buf_release(&body);
	shard_release(&s);
	return r;
}

static void
tensor(struct schema *sc, const char *spec, struct err *e)
{
	struct schema_tensor t;
	const char *p = strrchr(spec, ':');
	char name[256];
	char *end;

	memset(&t, 0, sizeof(t));
	(void)snprintf(name, sizeof(name), "%.*s",
	    (int)(p != NULL ? p - spec : 255), spec);
	t.name = name;
	t.dtype = dtype;
	while (p != NULL && p[1] != '\0' && t.ndim < SCHEMA_MAX_DIM) {
		t.dim[t.ndim++] = strtoull(p + 1, &end, 10);
		p = *end == ',' ? end : NULL;
	}
	schema_guess(&t);
	if (schema_add(sc, &t, e) < 0)
		die(e);
}

static void
one(struct opts *o, int key, const char *arg, struct err *e)
{
	char spec[64];
	int i;

	switch (key) {
	case 't': tensor(&o->sc, arg, e); break;
	case 'n':
		(void)snprintf(spec, sizeof(spec), "w:%llu",
		    (unsigned long long)number(arg));
		tensor(&o->sc, spec, e);
		break;
	case 'g': o->sc.group_size = (uint32_t)number(arg); break;
	case 'k':
		for (i = 0; kinds[i] != NULL && strcmp(kinds[i], arg) != 0;)
			i++;
		o->kind = (enum kind)i;
		break;
	case 'c':
		if (strcmp(arg, "none") == 0)
			o->plan.codec = CODEC_NONE;
		else if (strcmp(arg, "f32") != 0 && codec_parse(arg, &o->plan, e) < 0)
			die(e);
		break;
	case 'd': o->device = arg; break;
	case 'r': o->run = arg; break;
	case 's': o->step = number(arg); break;
	case 'N': o->shards = number(arg); break;
	case 'w': o->weight = strtod(arg, NULL); break;
	case 'x': o->seed = number(arg); break;
	case 'i': o->bad = number(arg); break;
	case 'l':
	case 'L':
		turns(o, arg, e);
		o->plan_first = key == 'L';
		break;
	case 'P':
		o->policy = realloc(o->policy, (o->npolicy + 1) * sizeof(*o->policy));
		if (o->policy == NULL)
			exit(ERR_SYS);
		o->policy[o->npolicy++] = arg;
		break;
	case 'M':
		if (o->nmember < sizeof(o->member) / sizeof(*o->member))
			o->member[o->nmember++] = arg;
		break;
	case 'K':
		if (o->nkey < sizeof(o->key) / sizeof(*o->key))
			o->key[o->nkey++] = arg;
		break;
	case 'T': o->times = arg; break;
	case 'D': dtype = (uint8_t)number(arg); break;
	case 'H':
		if (o->nhead < sizeof(o->head) / sizeof(*o->head))
			o->head[o->nhead++] = arg;
		break;
	case 'A': o->loose = 1; break;
	case 'F': o->fleet = arg; break;
	case 'a': o->note++; break;
	case 'p': o->prov = 1; break;
	default: exit(ERR_USAGE);
	}
}

/* Write all shards into one stream. */
static void
stream(const struct opts *o, const struct writer_opts *wo, float *x, float *y,
    struct err *e)
{
	struct writer *w = NULL;
	struct io *io = NULL;
	uint64_t i;

	if (io_create(&io, NULL, 0, e) < 0 || writer_open(&w, io, wo, e) < 0)
		die(e);
	for (i = 0; i < o->shards; i++)
		if ((o->loose && (writer_begin(w, &o->sc, e) < 0 ||
		    writer_note(w, FRAME_TYPE('x', 'y', 'Z', 'z'), "loose", 5,
		    e) < 0)) || shard(o, w, o->step + i, o->step + i, x, y,
		    e) < 0)
			die(e);
	if (writer_end(w, IO_SYNC_NONE, e) < 0)
		die(e);
	writer_free(w);
}

/* Write one file per device, for -F. */
static void
fleet(struct opts *o, const struct writer_opts *wo, float *x, float *y, struct err *e)
{
	static char device[256];
	const char *base = o->device;
	char path[512];
	struct writer *w;
	struct io *io;
	uint64_t i;

	o->device = device;
	for (i = 0; i < o->shards; i++) {
		(void)snprintf(device, sizeof(device), "%.230s%llu", base,
		    (unsigned long long)i);
		(void)snprintf(path, sizeof(path), "%.250s/%.40s%llu.aceg",
		    o->fleet, base, (unsigned long long)i);
		if (io_create(&io, path, 1, e) < 0 || writer_open(&w, io, wo, e) < 0 ||
		    shard(o, w, o->step, o->step + i, x, y, e) < 0 ||
		    writer_end(w, IO_SYNC_NONE, e) < 0)
			die(e);
		writer_free(w);
	}
}

int
main(int argc, char **argv)
{
	struct opts o = { .sc = SCHEMA_INIT, .device = "edge1", .run = "test",
	    .shards = 1, .seed = 1, .bad = 3, .weight = 1 };
	struct writer_opts wo = { "mkshards", NULL, 0, 0 };
	struct err e = ERR_INIT;
	float *x, *y;
	uint64_t i;
	int k;

	/* parse this first, because tensors are cut into groups when they are added */
	for (k = 1; k + 1 < argc; k++)
		if (strcmp(argv[k], "-g") == 0)
			o.sc.group_size = (uint32_t)number(argv[k + 1]);
	while ((k = getopt(argc, argv, "t:n:g:k:c:d:r:s:N:w:x:i:l:L:P:K:M:T:D:H:F:apA")) != -1)
		one(&o, k, optarg, &e);
	if (o.sc.n == 0) {
		tensor(&o.sc, "embed:24,8", &e);
		tensor(&o.sc, "layer.weight:8,16", &e);
		tensor(&o.sc, "layer.bias:16", &e);
	}
	x = alloc_get(o.sc.group_size, sizeof(float), &e);
	y = alloc_get(o.sc.group_size, sizeof(float), &e);
	o.table = alloc_get(TABLE, sizeof(float), &e);
	if (x == NULL || y == NULL || o.table == NULL)
		die(&e);
	for (i = 0; o.kind == FAST && i < TABLE; i++)
		o.table[i] = gauss(o.seed, 0, i);
	wo.line = o.prov ? "mkshards 1" : NULL;
	if (schema_finish(&o.sc, &e) < 0)
		die(&e);
	if (o.fleet != NULL)
		fleet(&o, &wo, x, y, &e);
	else
		stream(&o, &wo, x, y, &e);
	schema_release(&o.sc);
	alloc_free(x);
	alloc_free(y);
	alloc_free(o.table);
	free(o.turn);
	free(o.policy);
	return 0;
}
