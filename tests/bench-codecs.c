/*
 * Measure codecs on the data sets of bench.h, and the bytes of ECQ.
 *
 * bench-codecs [SPEC...]  print for these codecs, or for those of rows[] beside published
 *                      figures of their peers: the compression ratio (f32 input to
 *                      bodies), NMSE = |x - y|^2 / |x|^2, and the speed in GB/s of f32
 *                      on one core, best of three.  Groups have 65,536 values
 * bench-codecs -l <STREAM  code the last shard with ECQ at eight rates: print by how many percent
 *                      the bytes exceed the adaptive entropy (entropy.h) of the result
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aceg.h"
#include "base/alloc.h"
#include "base/err.h"
#include "codec/codec.h"

#include "bench.h"
#include "entropy.h"

/* ---- all codecs ---- */

struct row {
	const char *spec;
	const char *peer;	/* the peer's figures: gauss, layered, speed */
};

/* Figures of the peers (ggml, GRACE, BytePS and others) in a shared benchmark on one core of
 * a cloud server: ratio@NMSE on gauss and layered, GB/s to code / to decode. */
static const struct row rows[] = {
	{ "f32", "" },
	{ "f16", "ggml f16: 2.00@4.3e-8, same, 2.9 / 3.9" },
	{ "exact", "ZipNN: 1.20, 1.24, .12-.6 / 1-2" },
	{ "q8", "ggml q8_0: 3.76@2.9e-5, 3.76@6.7e-5, 1.5 / 26" },
	{ "sign", "BytePS 1 bit: 32.0@0.363, 32.0@0.872, 4.4 / 7.2" },
	{ "topk:0.01", "BytePS: 50@0.916, 50@0.430, .55-.70 / 25" },
	{ "topk:0.01:mag", "" },
	{ "chunk:64/4096:q2", "SparseLoCo 4 bins: 102@.882, 102@.688, .43/.6; "
	    "its bits, packed: 146" },
	{ "topk:0.1", "GRACE: 5.0@0.561, 5.0@6.0e-2, .25 / 2.7" },
	{ "topk:0.001", "DGC: 700@0.988, 690@0.779, 1.2 / 8" },
	{ "qsgd:127", "GRACE QSGD 127/128: 3.88@1.3e-3, same, .14 / .61" },
	{ "qsgd:7", "GRACE QSGD 7/128: 3.88@0.44, 3.88@0.37" },
	{ "lowrank:4", "" },
};

struct result {
	double ratio, nmse, code, decode;
};

static void
measure(const struct codec_plan *p, const float *x, float *y, struct result *r)
{
	static struct buf out = BUF_INIT;
	struct codec_ctx ctx = { 1, 2, 3, 1024, 0 };
	struct err e = ERR_INIT;
	size_t i, at = 0, *len, g;
	uint8_t param = 0;
	double t, d = 0, s = 0, best = 1e9, undo = 1e9;
	int k;

	len = calloc(total / GROUP, sizeof(*len));
	if (len == NULL)
		exit(4);
	for (k = 0; k < TRIES; k++) {
		out.n = 0;
		t = now();
		for (i = 0; i < total; i += GROUP) {
			at = out.n;
			if (codec_encode(p, &ctx, x + i, GROUP, &out, &param, &e) < 0)
				die(ERR_MSG(&e));
			len[i / GROUP] = out.n - at;
		}
		t = now() - t;
		best = t < best ? t : best;
		t = now();
		for (i = at = 0, g = 0; i < total; i += GROUP, at += len[g++])
			if (codec_decode(p->codec, param, &ctx, out.p + at,
			    len[g], y + i, GROUP, &e) < 0)
				die(ERR_MSG(&e));
		t = now() - t;
		undo = t < undo ? t : undo;
	}
	for (i = 0; i < total; i++) {
		t = (double)x[i] - (double)y[i];
		d += t * t;
		s += (double)x[i] * (double)x[i];
	}
	r->ratio = 4.0 * (double)total / (double)out.n;
	r->nmse = d / s;
	r->code = 4e-9 * (double)total / best;
	r->decode = 4e-9 * (double)total / undo;
	free(len);
}

static void
line(const char *name, const char *peer, const float *gauss,
    const float *layered, float *y)
{
	struct codec_plan p;
	struct err e = ERR_INIT;
	struct result a, b;

	if (codec_parse(name, &p, &e) < 0)
		die(ERR_MSG(&e));
	measure(&p, gauss, y, &a);
	measure(&p, layered, y, &b);
	(void)printf("%-17s %7.2f %8.3g %5.2f %5.2f  %7.2f %8.3g %5.2f %5.2f"
	    "  %s\n", name, a.ratio, a.nmse, a.code, a.decode, b.ratio, b.nmse,
	    b.code, b.decode, peer);
	(void)fflush(stdout);
}

static void
codecs(int specs, char **spec)
{
	float *gauss = calloc(total, 4), *layered = calloc(total, 4);
	float *y = calloc(total, 4);
	size_t i;

	if (gauss == NULL || layered == NULL || y == NULL)
		die("out of memory");
	make(gauss, layered);
	(void)printf("%-17s %33s  %33s\n", "", "---------------- gauss",
	    "-------------- layered");
	(void)printf("%-17s %7s %8s %5s %5s  %7s %8s %5s %5s  %s\n", "codec",
	    "ratio", "NMSE", "code", "dec.", "ratio", "NMSE", "code", "dec.",
	    "peer: ratio@NMSE gauss, layered, GB/s");
	if (specs > 0)
		while (specs-- > 0)
			line(*spec++, "", gauss, layered, y);
	else
		for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			line(rows[i].spec, rows[i].peer, gauss, layered, y);
	free(gauss);
	free(layered);
	free(y);
}

/* ---- ECQ ---- */

/* The groups of a stream's last shard. */
struct data {
	struct group {
		size_t at, n;
		uint32_t cols;
		uint64_t offset;
	} *g;
	size_t groups, cap, n;
	float *x, *y;
	size_t room;
};

struct ecq {
	double bits, entropy;	/* bits per value: of the code, of the symbols' entropy */
};

static void
add(struct data *d, const float *x, size_t n, uint32_t cols, uint64_t offset)
{
	struct group g = { d->n, n, cols, offset };

	if (alloc_grow(&d->g, &d->cap, d->groups + 1, sizeof(g), NULL) < 0 ||
	    alloc_grow(&d->x, &d->room, d->n + n, sizeof(*x), NULL) < 0)
		die("out of memory");
	memcpy(d->x + d->n, x, n * sizeof(*x));
	d->g[d->groups++] = g;
	d->n += n;
}

static void
run(const struct data *d, double step, int last, struct ecq *r)
{
	static struct buf out = BUF_INIT;
	struct codec_plan p = { CODEC_ECQ, 0, (float)step };
	struct err e = ERR_INIT;
	double bytes = 0;
	uint8_t param;
	size_t i;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < d->groups; i++) {
		const struct group *g = d->g + i;
		struct codec_ctx ctx = { 1, 2, (uint32_t)i, g->cols, g->offset };

		out.n = 0;
		if (codec_encode(&p, &ctx, d->x + g->at, g->n, &out, &param, &e) < 0 ||
		    codec_decode(p.codec, param, &ctx, out.p, out.n, d->y, g->n, &e) < 0)
			die(ERR_MSG(&e));
		bytes += (double)out.n;
		if (last)
			r->entropy += entropy(d->y, g->n) / (double)d->n;
	}
	r->bits = 8 * bytes / (double)d->n;
}

/* Find, by bisection, the step that takes about `bits' per value; return its results. */
static struct ecq
meet(const struct data *d, double bits)
{
	double lo = 1e-7, hi = 1e2, step = 0;
	struct ecq r;
	int i;

	for (i = 0; i < 24; i++) {
		step = sqrt(lo * hi);
		run(d, step, 0, &r);
		if (r.bits > bits)
			lo = step;
		else
			hi = step;
	}
	run(d, step, 1, &r);
	return r;
}

static void
last_shard(struct data *d)
{
	struct ace_error e;
	struct ace_reader *r = ace_reader_new(0, &e);
	const struct ace_tensor *t;
	struct ace_shard s;
	struct ace_group g;
	size_t n;
	int got;

	if (r == NULL)
		die(e.message);
	while ((got = ace_read_shard(r, &s, &e)) > 0) {
		t = ace_tensors(r, &n);
		d->groups = d->n = 0;
		while ((got = ace_read_group(r, &g, &e)) > 0)
			add(d, g.value, g.n, t[g.tensor].ndim == 0 ? 1 :
			    (uint32_t)t[g.tensor].dim[t[g.tensor].ndim - 1],
			    g.offset);
		if (got < 0)
			break;
	}
	if (got < 0)
		die(e.message);
	ace_reader_free(r);
}

static void
lengths(void)
{
	static const double rate[] = { 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 4 };
	struct data d = { .n = 0 };
	struct ecq r;
	char what[64];
	size_t i;

	last_shard(&d);
	d.y = calloc(d.n + 1, 4);
	if (d.n == 0 || d.y == NULL)
		die("no values");
	for (i = 0; i < sizeof(rate) / sizeof(rate[0]); i++) {
		r = meet(&d, rate[i]);
		(void)snprintf(what, sizeof(what),
		    "stream, %g bit: %% over the adaptive entropy", rate[i]);
		goal(what, 100 * (r.bits / r.entropy - 1), 1, 1, "");
	}
	free(d.y);
	alloc_free(d.x);
	alloc_free(d.g);
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "-l") == 0)
		lengths();
	else
		codecs(argc - 1, argv + 1);
	return 0;
}
