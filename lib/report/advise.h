/*
 * Tables of advice: numbers of layers, links or devices in, what to do with
 * them out, tab-separated.  The columns are described in ace-advise(1).
 */
#ifndef ACE_ADVISE_H
#define ACE_ADVISE_H

#include <stdint.h>
#include <stdio.h>

struct err;
struct table;

enum advise_method { ADVISE_DP, ADVISE_GREEDY, ADVISE_DP3 };

struct advise_cuts {
	double dt;		/* seconds; < 0: not said */
	double bandwidth;	/* bit/s, for a column bytes; < 0: not said */
	enum advise_method method;
};

/* advise_dynacomm(f, t, o, e): the times of each schedule and its cuts. */
int advise_dynacomm(FILE *f, const struct table *t,
    const struct advise_cuts *o, struct err *e);

/* advise_interval(f, t, target, e): for each row of t, a drift, the local steps
 * to take next, from the steps that the row has or that the row before it led
 * to. */
int advise_interval(FILE *f, const struct table *t, double target,
    struct err *e);

enum { ADVISE_TTA = 3, ADVISE_ALL };	/* beside enum deco_phi */

struct advise_stale {
	double kc, kd;		/* as in struct deco */
	int phi;		/* ADVISE_ALL, ADVISE_TTA or enum deco_phi */
};

/* advise_deco(f, t, o, e): for each row of t, a link, the shares and delays of
 * each rule. */
int advise_deco(FILE *f, const struct table *t, const struct advise_stale *o,
    struct err *e);

struct advise_tiers {
	uint64_t tiers;		/* 0: each saves the mean round's waiting */
	uint64_t groups;	/* 0: none, or by theta */
	double theta;		/* < 0: not said */
};

/* advise_cluster(f, t, o, e): each device's tier and group. */
int advise_cluster(FILE *f, const struct table *t,
    const struct advise_tiers *o, struct err *e);

#endif
