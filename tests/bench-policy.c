/*
 * DynaComm's schedules on two networks, and how long they take to find.
 *
 * VGG-19 and ResNet-152 by their published shapes, batch 32, 224 x 224,
 * 4 TFLOP/s; a backward pass takes twice the forward one.  The paper's best
 * savings against one transmission are 41.10 and 41.92 %.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "sync/dynacomm.h"

enum { MOST = 160, BATCH = 32, LONG = 10000 };
static const double flops = 4e12;

struct net {
	size_t n;
	double bytes[MOST], ops[MOST];	/* of an image, forward */
};

/* k x k from c to d channels, on side x side outputs; bias or batch norm. */
static void
conv(struct net *x, int k, int c, int d, int side, int norm)
{
	double weights = (double)k * k * c * d;

	x->ops[x->n] = 2 * weights * side * side;
	x->bytes[x->n++] = 4 * (weights + (norm ? 2 : 1) * d);
}

static void
vgg19(struct net *x)
{
	static const int block[5][2] = { { 2, 64 }, { 2, 128 }, { 4, 256 },
	    { 4, 512 }, { 4, 512 } };
	int i, j, c = 3, side = 224;

	x->n = 0;
	for (i = 0; i < 5; i++, side /= 2)
		for (j = 0; j < block[i][0]; j++, c = block[i][1])
			conv(x, 3, c, block[i][1], side, 0);
	conv(x, 1, 7 * 7 * 512, 4096, 1, 0);
	conv(x, 1, 4096, 4096, 1, 0);
	conv(x, 1, 4096, 1000, 1, 0);
}

static void
resnet152(struct net *x)
{
	static const int blocks[4] = { 3, 8, 36, 3 };
	int i, j, c = 64, w = 64, side = 56;

	x->n = 0;
	conv(x, 7, 3, 64, 112, 1);
	for (i = 0; i < 4; i++, w *= 2, side /= 2)
		for (j = 0; j < blocks[i]; j++, c = 4 * w) {
			/* the first of a stage halves in its 3 x 3 */
			conv(x, 1, c, w, i > 0 && j == 0 ? 2 * side : side, 1);
			conv(x, 3, w, w, side, 1);
			conv(x, 1, w, 4 * w, side, 1);
			if (j == 0)
				conv(x, 1, c, 4 * w, side, 1);
		}
	conv(x, 1, 2048, 1000, 1, 0);
}

/* Both passes of one schedule, in ns; *k: transmissions. */
static int64_t
iteration(const struct dynacomm *f, const struct dynacomm *b, int schedule,
    size_t *k)
{
	size_t cuts[MOST], m = 0;
	int64_t t;

	switch (schedule) {
	case 0:
		*k = dynacomm_sequential(f, cuts);
		m = dynacomm_sequential(b, cuts);
		return dynacomm_forward(f, cuts, *k) +
		    dynacomm_backward(b, cuts, m);
	case 1:
		*k = dynacomm_layers(f, cuts);
		return dynacomm_forward(f, cuts, *k) +
		    dynacomm_backward(b, cuts, *k);
	case 2:
		*k = dynacomm_ibatch(f, cuts);
		t = dynacomm_forward(f, cuts, *k);
		m = dynacomm_ibatch_backward(b, cuts);
		return t + dynacomm_backward(b, cuts, m);
	default:
		(void)dynacomm_dp(f, cuts, k, NULL);
		t = dynacomm_forward(f, cuts, *k);
		(void)dynacomm_dp(b, cuts, &m, NULL);
		return t + dynacomm_backward(b, cuts, m);
	}
}

static void
saved(const char *name, const struct net *x, double gbit, double dt)
{
	int64_t pt[MOST], fc[MOST], bc[MOST], t[4];
	struct dynacomm f, b;
	size_t i, k = 0;

	for (i = 0; i < x->n; i++) {
		pt[i] = (int64_t)(x->bytes[i] * 8 / gbit);
		fc[i] = (int64_t)(x->ops[i] * BATCH / flops * 1e9);
		bc[i] = 2 * fc[i];
	}
	if (dynacomm_init(&f, pt, fc, x->n, (int64_t)(dt * 1e6), NULL) < 0 ||
	    dynacomm_init(&b, pt, bc, x->n, (int64_t)(dt * 1e6), NULL) < 0)
		exit(1);
	for (i = 0; i < 4; i++)
		t[i] = iteration(&f, &b, (int)i, &k);
	(void)printf("%-10s %7g %6g %9.1f %8.2f %8.2f %8.2f %9zu\n", name,
	    gbit, dt, (double)t[0] * 1e-6, 100 - 100.0 * (double)t[1] /
	    (double)t[0], 100 - 100.0 * (double)t[2] / (double)t[0],
	    100 - 100.0 * (double)t[3] / (double)t[0], k);
	dynacomm_release(&f);
	dynacomm_release(&b);
}

typedef int solver(const struct dynacomm *, size_t *, size_t *, struct err *);

/* The least of some tries, in ms, with dt in ns. */
static double
took(solver *solve, size_t n, int64_t dt)
{
	static int64_t pt[LONG], fc[LONG];
	static size_t cuts[LONG];
	double best = 1e9, at;
	struct dynacomm d;
	uint32_t r[4];
	size_t i, k;

	for (i = 0; i < n; i++) {
		rng_block(1, 0, 0, (uint32_t)i, r);
		pt[i] = 1 + r[0] % 2000000;
		fc[i] = 1 + r[1] % 2000000;
	}
	if (dynacomm_init(&d, pt, fc, n, dt, NULL) < 0)
		exit(1);
	for (i = 0; i < TRIES; i++) {
		at = now();
		if (solve(&d, cuts, &k, NULL) < 0)
			exit(1);
		at = 1e3 * (now() - at);
		best = at < best ? at : best;
	}
	dynacomm_release(&d);
	return best;
}

int
main(void)
{
	static const double gbit[] = { 1, 2, 5, 10 }, dt[] = { 0.1, 2, 10 };
	static const int64_t cost[] = { 0, 100000, 10000000 };
	static struct net vgg, res;
	size_t i, j;

	vgg19(&vgg);
	resnet152(&res);
	(void)printf("%-10s %7s %6s %9s %8s %8s %8s %9s\n", "dynacomm",
	    "Gbit/s", "dt ms", "one ms", "layers %", "ibatch %", "best %",
	    "segments");
	for (i = 0; i < sizeof(gbit) / sizeof(*gbit); i++)
		for (j = 0; j < sizeof(dt) / sizeof(*dt); j++) {
			saved("VGG-19", &vgg, gbit[i], dt[j]);
			saved("ResNet-152", &res, gbit[i], dt[j]);
		}
	(void)printf("\n%-14s %9s %9s %9s   ms to find the cuts\n", "layers",
	    "dt 0", "0.1 ms", "10 ms");
	for (i = 0; i < 5; i++) {
		(void)printf("%-6s %7zu", i < 2 ? "dp" : i < 4 ? "greedy" :
		    "dp3", i % 2 ? (size_t)LONG : (size_t)155);
		for (j = 0; j < 3; j++)
			(void)printf(" %9.3f", took(i < 2 ? dynacomm_dp :
			    i < 4 ? dynacomm_greedy : dynacomm_dp3,
			    i % 2 ? LONG : 155, cost[j]));
		(void)putchar('\n');
	}
	return 0;
}
