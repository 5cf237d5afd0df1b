/*
 * DynaComm's schedules on four networks (nets.h), batch 32 at 4 TFLOP/s, a
 * backward pass being twice a forward one; and how long they take to find.  The
 * paper's best savings against one transmission are 41.10 % on VGG-19 and
 * 41.92 % on ResNet-152.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "nets.h"
#include "sync/dynacomm.h"

enum { MOST = NET_MOST, BATCH = 32, LONG = 10000 };
static const double flops = 4e12;

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
saved(const struct net *x, double gbit, double dt)
{
	int64_t pt[MOST], fc[MOST], bc[MOST], t[4];
	struct dynacomm f, b;
	size_t i, k = 0;

	for (i = 0; i < x->n; i++) {
		pt[i] = (int64_t)(x->values[i] * 32 / gbit);
		fc[i] = (int64_t)(2 * x->macs[i] * BATCH / flops * 1e9);
		bc[i] = 2 * fc[i];
	}
	if (dynacomm_init(&f, pt, fc, x->n, (int64_t)(dt * 1e6), NULL) < 0 ||
	    dynacomm_init(&b, pt, bc, x->n, (int64_t)(dt * 1e6), NULL) < 0)
		exit(1);
	for (i = 0; i < 4; i++)
		t[i] = iteration(&f, &b, (int)i, &k);
	(void)printf("%-12s %7g %6g %9.1f %8.2f %8.2f %8.2f %9zu\n", x->name,
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
	static struct net net;
	size_t i, j, k;

	(void)printf("%-12s %7s %6s %9s %8s %8s %8s %9s\n", "dynacomm",
	    "Gbit/s", "dt ms", "one ms", "layers %", "ibatch %", "best %",
	    "segments");
	for (k = 0; k < NETS; k++) {
		net_get(&net, k);
		for (i = 0; i < sizeof(gbit) / sizeof(*gbit); i++)
			for (j = 0; j < sizeof(dt) / sizeof(*dt); j++)
				saved(&net, gbit[i], dt[j]);
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
