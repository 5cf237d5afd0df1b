/*
 * mkprofile NAME: print a network's layers as a table for ace-advise dynacomm. The
 * times are those of a batch of 32 at 4 TFLOP/s; a backward pass takes twice as
 * long as a forward pass. Without NAME: list the networks with their totals.
 */
#include <stdio.h>
#include <string.h>

#include "nets.h"

enum { BATCH = 32 };
static const double flops = 4e12;

static void
totals(const struct net *x)
{
	double values = 0, macs = 0;
	size_t i;

	for (i = 0; i < x->n; i++) {
		values += x->values[i];
		macs += x->macs[i];
	}
	(void)printf("%s\t%zu\t%.0f\t%.4g\n", x->name, x->n, values, macs);
}

static void
profile(const struct net *x)
{
	double fc;
	size_t i;

	(void)printf("layer\tbytes\tfc\tbc\n");
	for (i = 0; i < x->n; i++) {
		fc = 2 * x->macs[i] * (double)BATCH / flops;
		(void)printf("%zu\t%.0f\t%.6g\t%.6g\n", i + 1,
		    4 * x->values[i], fc, 2 * fc);
	}
}

int
main(int argc, char **argv)
{
	static struct net x;
	int found = argc < 2;
	size_t i;

	if (argc < 2)
		(void)printf("net\tlayers\tparameters\tmultiply-adds\n");
	for (i = 0; i < NETS; i++) {
		net_get(&x, i);
		if (argc < 2)
			totals(&x);
		else if (strcmp(argv[1], x.name) == 0) {
			profile(&x);
			found = 1;
		}
	}
	return found ? 0 : 2;
}
