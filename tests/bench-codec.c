/*
 * What each codec makes of the data sets of bench.h, beside its peers.
 *
 * Ratio of bytes (bodies, f32 in), NMSE = |x - y|^2 / |x|^2, speed in GB/s of
 * f32 on one core, best of three.  Groups of 65,536 as in a stream.
 *
 * bench-codec [-q] [SPEC...]: those codecs only, without the peers' lines;
 * -w FILE writes `layered' as raw f32, for programs that want a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/stat.h"
#include "kern/kern.h"

#include "bench.h"

struct row {
	const char *spec;
	const char *peer;	/* gauss; layered; speed (published figures) */
};

/* Peers' figures: shared benchmark of ggml, GRACE, BytePS and others, one core
 * of a cloud server; ratio@NMSE gauss, layered, GB/s code / decode. */
static const struct row rows[] = {
	{ "f32", "" },
	{ "f16", "ggml f16: 2.00@4.3e-8, same, 2.9 / 3.9" },
	{ "bf16", "ggml bf16: 2.00@2.8e-6, same, 14 / 25" },
	{ "lossless", "ZipNN: 1.20, 1.24, .12-.6 / 1-2" },
	{ "lossless:bf16", "ZipNN bf16: 1.50 of 2" },
	{ "q8", "ggml q8_0: 3.76@2.9e-5, 3.76@6.7e-5, 1.5 / 26" },
	{ "q4", "ggml q4_0: 7.11@7.4e-3, 7.11@1.6e-2, 3.5 / 13" },
	{ "sign", "BytePS 1 bit: 32.0@0.363, 32.0@0.872, 4.4 / 7.2" },
	{ "topk:0.01", "BytePS: 50@0.916, 50@0.430, .55-.70 / 25" },
	{ "topk:0.01:rice", "" },
	{ "topk:0.01:sample", "DGC 1 %: 67@0.916, 67@0.431, .25 / 6-8" },
	{ "topk:0.01:q4", "" },
	{ "topk:0.01:mag", "" },
	{ "chunk:64/4096:q2", "SparseLoCo 4 bins: 102@.882, 102@.688, .43/.6; "
	    "its bits, packed: 146" },
	{ "topk:0.1", "GRACE: 5.0@0.561, 5.0@6.0e-2, .25 / 2.7" },
	{ "topk:0.001", "DGC: 700@0.988, 690@0.779, 1.2 / 8" },
	{ "qsgd:127", "GRACE QSGD 127/128: 3.88@1.3e-3, same, .14 / .61" },
	{ "qsgd:7", "GRACE QSGD 7/128: 3.88@0.44, 3.88@0.37" },
	{ "tern", "" },
	{ "tern:clip", "GRACE TernGrad: 4.00@1.01, 4.00@0.64, .2 / 1.3" },
	{ "tern:mse", "ggml tq1_0: 19.0@0.65, same, 2.1 / 20" },
	{ "natural", "9 bits: 3.56@.081" },
	{ "eden:1", "EDEN: 32@.571, same, .03-.04 / .04" },
	{ "eden:2", "EDEN: 16@.133, same" },
	{ "eden:4", "EDEN: 8@9.6e-3, same" },
	{ "eden:1:mse", "BytePS 1 bit: 32.0@.363, 32.0@.872, 4.4 / 7.2" },
	{ "eden:2:mse", "ggml q2_K: 12.2@8.8e-2, 12.2@.137, .10 / 6.5" },
	{ "lowrank:4", "" },
	{ "lowrank:4:q8", "" },
	{ "i64", "" },
};

struct result {
	double ratio, nmse, code, decode;
};

static void
die(const struct err *e)
{
	(void)fprintf(stderr, "bench-codec: %s\n", ERR_MSG(e));
	exit(1);
}

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
			if (codec_encode(p, &ctx, x + i, GROUP, &out, &param,
			    &e) < 0)
				die(&e);
			len[i / GROUP] = out.n - at;
		}
		t = now() - t;
		best = t < best ? t : best;
		t = now();
		for (i = at = 0, g = 0; i < total; i += GROUP, at += len[g++])
			if (codec_decode(p->codec, param, &ctx, out.p + at,
			    len[g], y + i, GROUP, &e) < 0)
				die(&e);
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
	const char *spec = strcmp(name, "bf16 in f32") == 0 ? "lossless" : name;
	struct codec_plan p;
	struct err e = ERR_INIT;
	struct result a, b;

	if (codec_parse(spec, &p, &e) < 0)
		die(&e);
	measure(&p, gauss, y, &a);
	measure(&p, layered, y, &b);
	(void)printf("%-17s %7.2f %8.3g %5.2f %5.2f  %7.2f %8.3g %5.2f %5.2f"
	    "  %s\n", name, a.ratio, a.nmse, a.code, a.decode, b.ratio, b.nmse,
	    b.code, b.decode, peer);
	(void)fflush(stdout);
}

/* The ratio of bytes, of bf16 where the codec says so. */
static double
ratio(const char *spec, const float *x, float *y)
{
	struct codec_plan p;
	struct err e = ERR_INIT;
	struct result r;

	if (codec_parse(spec, &p, &e) < 0)
		die(&e);
	measure(&p, x, y, &r);
	return strcmp(spec, "lossless:bf16") == 0 ? r.ratio / 2 : r.ratio;
}

static void
goals(const float *gauss, const float *layered, float *y)
{
	(void)putchar('\n');
	goal("64 of 4096 at 2 bit, gauss: bits", 32 / ratio("chunk:64/4096:q2",
	    gauss, y), 1, 0.15, "SparseLoCo .219");
	goal("64 of 4096 at 2 bit, layered: bits",
	    32 / ratio("chunk:64/4096:q2", layered, y), 1, 0.15,
	    "SparseLoCo .219");
	goal("1 % as f16, gauss: times smaller", ratio("topk:0.01", gauss, y),
	    0, 130, "DGC 67, SparseLoCo (2 bit) 102");
	goal("1 % as f16, layered: times smaller",
	    ratio("topk:0.01", layered, y), 0, 130,
	    "DGC 67, SparseLoCo (2 bit) 102");
	goal("lossless f32, gauss: times smaller", ratio("lossless", gauss, y),
	    0, 1.20, "pco 1.21, ZipNN 1.20");
	goal("lossless f32, layered: times smaller",
	    ratio("lossless", layered, y), 0, 1.20, "pco 1.27, ZipNN 1.24");
	goal("lossless bf16, gauss: times smaller",
	    ratio("lossless:bf16", gauss, y), 0, 1.50, "ZipNN 1.50");
}

/* What was bf16 and is held in f32: x loses its lower half. */
static void
truncate_all(float *x)
{
	uint32_t u;
	size_t i;

	for (i = 0; i < total; i++) {
		memcpy(&u, x + i, 4);
		u &= 0xffff0000;
		memcpy(x + i, &u, 4);
	}
}

/* The loops below the codecs, in cache. */
static void
loops(const float *x)
{
	const struct kern *const *l = kern_list();
	static double acc[GROUP];
	static float y[GROUP];
	struct kern_stat s;
	struct stat_group g;
	double t[4];
	int i, k;

	(void)printf("\n%-14s %9s %9s %9s %9s   GB/s of f32\n", "kernel", "stat",
	    "axpy64", "add", "group");
	for (; *l != NULL; l++) {
		(void)setenv("ACE_KERNEL", (*l)->name, 1);
		for (k = 0; k < 4; k++) {
			t[k] = now();
			for (i = 0; i < 400; i++)
				if (k == 0)
					(*l)->stat(x, GROUP, &s);
				else if (k == 1)
					(*l)->axpy64(acc, 0.5, x, GROUP);
				else if (k == 2)
					(*l)->add_scaled(y, x, 0.5f, x, GROUP);
				else
					(void)stat_group_of(x, GROUP, &g);
			t[k] = 400 * 4e-9 * GROUP / (now() - t[k]);
		}
		(void)printf("%-14s %9.1f %9.1f %9.1f %9.1f\n", (*l)->name,
		    t[0], t[1], t[2], t[3]);
	}
	unsetenv("ACE_KERNEL");
}

int
main(int argc, char **argv)
{
	float *gauss = calloc(total, 4), *layered = calloc(total, 4);
	float *y = calloc(total, 4);
	size_t i;
	FILE *f;

	if (gauss == NULL || layered == NULL || y == NULL)
		return 4;
	make(gauss, layered);
	if (argc == 3 && strcmp(argv[1], "-w") == 0) {
		f = fopen(argv[2], "wb");
		return f == NULL || fwrite(layered, 4, total, f) != total ||
		    fclose(f) != 0 ? 4 : 0;
	}
	(void)printf("%-17s %33s  %33s\n", "", "---------------- gauss",
	    "-------------- layered");
	(void)printf("%-17s %7s %8s %5s %5s  %7s %8s %5s %5s  %s\n", "codec",
	    "ratio", "NMSE", "code", "dec.", "ratio", "NMSE", "code", "dec.",
	    "peer: ratio@NMSE gauss, layered, GB/s");
	if (argc > 1) {
		for (i = 1; i < (size_t)argc; i++)
			line(argv[i], "", gauss, layered, y);
	} else {
		for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			line(rows[i].spec, rows[i].peer, gauss, layered, y);
		loops(gauss);
		goals(gauss, layered, y);
		truncate_all(gauss);
		truncate_all(layered);
		goal("bf16 in f32, gauss: times smaller",
		    ratio("lossless", gauss, y), 0, 2.9, "pco 3.05");
		goal("bf16 in f32, layered: times smaller",
		    ratio("lossless", layered, y), 0, 2.9, "pco 3.05");
	}
	free(gauss);
	free(layered);
	free(y);
	return 0;
}
