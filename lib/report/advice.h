/*
 * Tables of advice: numbers of layers, links or devices in, what to do with
 * them out, tab-separated.  The columns are described in ace-policy(1).
 */
#ifndef ACE_ADVICE_H
#define ACE_ADVICE_H

#include <stdint.h>
#include <stdio.h>

struct err;
struct table;

enum advice_method { ADVICE_DP, ADVICE_GREEDY, ADVICE_DP3 };

struct advice_cuts {
	double dt;		/* seconds; < 0: not said */
	double bandwidth;	/* bit/s, for a column bytes; < 0: not said */
	enum advice_method method;
};

/* advice_dynacomm(f, t, o, e): the times of each schedule and its cuts. */
int advice_dynacomm(FILE *f, const struct table *t,
    const struct advice_cuts *o, struct err *e);

enum { ADVICE_ALL = -1, ADVICE_TTA = 3 };	/* beside enum deco_phi */

struct advice_stale {
	double compute, bandwidth, latency;	/* < 0: not said */
	uint64_t values;			/* 0: not said */
	double min, kc, kd;
	int most, phi;		/* ADVICE_ALL, ADVICE_TTA or enum deco_phi */
};

/* advice_deco(f, t, o, e): for each row of t, or for o alone when t is NULL,
 * the shares and delays of each rule. */
int advice_deco(FILE *f, const struct table *t, const struct advice_stale *o,
    struct err *e);

struct advice_tiers {
	double lambda;		/* seconds; < 0: the mean round */
	uint64_t tiers;		/* 0: chosen by lambda */
	uint64_t groups;	/* 0: none, or by theta */
	double theta;		/* < 0: not said */
	int cosine;
};

/* advice_cluster(f, t, o, e): each device's tier and group. */
int advice_cluster(FILE *f, const struct table *t,
    const struct advice_tiers *o, struct err *e);

#endif
