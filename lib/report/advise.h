/*
 * Reads a table of figures about layers, links or devices and prints a
 * tab-separated table of what to do with them.  ace-advise(1) describes the
 * columns.  All functions return 0 or -ERR_x.
 */
#ifndef ACE_ADVISE_H
#define ACE_ADVISE_H

#include <stdint.h>
#include <stdio.h>

struct err;
struct table;

enum advise_method { ADVISE_DP, ADVISE_GREEDY, ADVISE_DP3 };

struct advise_cuts {
	double dt;		/* seconds; < 0: not given */
	double bandwidth;	/* bit/s, turns bytes to times; < 0: not given */
	enum advise_method method;
};

/* advise_dynacomm(f, t, o, e): prints how long each schedule takes and where it
 * cuts the layers into transmissions. */
int advise_dynacomm(FILE *f, const struct table *t,
    const struct advise_cuts *o, struct err *e);

/* advise_interval(f, t, target, e): each row of t is a measured drift; prints
 * how many local steps to take next.  The count before is the row's own if it
 * has one, otherwise the result of the row before. */
int advise_interval(FILE *f, const struct table *t, double target,
    struct err *e);

enum { ADVISE_TTA = 3, ADVISE_ALL };	/* beside enum deco_phi */

struct advise_stale {
	double kc, kd;		/* as in struct deco */
	int phi;		/* ADVISE_ALL, ADVISE_TTA or enum deco_phi */
};

/* advise_deco(f, t, o, e): each row of t is a link; prints the share to send
 * and the delay that each rule gives. */
int advise_deco(FILE *f, const struct table *t, const struct advise_stale *o,
    struct err *e);

struct advise_tiers {
	uint64_t tiers;		/* 0: each saves the mean round's waiting */
	uint64_t groups;	/* 0: none, or by theta */
	double theta;		/* < 0: not given */
};

/* advise_cluster(f, t, o, e): prints the tier and the group of each device. */
int advise_cluster(FILE *f, const struct table *t,
    const struct advise_tiers *o, struct err *e);

#endif
