/*
 * Simulate a network.  Each device has an uplink of a given rate, in which its messages
 * queue.  The average returns one latency after the last message was sent; the
 * return path has no rate limit.  Rate and latency may change: "200 10 30 5 300 30" is
 * 200 Mbit/s and 10 ms for 30 s, then 5 Mbit/s and 300 ms for 30 s, repeated from the
 * beginning.  If the last duration is missing, the last phase does not end.
 *
 *   start_0 = 0      done_t = start_t + compute
 *   sent_t,k = max(done_t, sent_t-1,k) + bits_t,k / rate
 *   back_t = max_k sent_t,k + latency
 *   start_t+1 = max(done_t, back of the newest average that is applied)
 */
#ifndef EMU_LINK_H
#define EMU_LINK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu_problem.h"

enum { PHASES = 64, STEPS = 6000 };
#define COMPUTE 0.1		/* seconds per step */
#define SIZE (32.0 * 252384)	/* bits of the example's transformer */

struct link {
	size_t n;
	struct {
		double rate, latency, until;	/* bit/s, seconds; until: the phase's end */
	} phase[PHASES];
	double period;		/* seconds until the link repeats; 0: it does not repeat */
	double compute;		/* seconds of computing per step */
	double sent[DEVICES], done;	/* the times above, of the last step */
	double back[STEPS];
	size_t step;		/* number of steps so far */
};

static int
link_parse(struct link *l, const char *s)
{
	double v[3 * PHASES], t = 0;
	size_t n = 0, i;
	char *end;

	for (; n < 3 * PHASES; n++, s = end) {
		v[n] = strtod(s, &end);
		if (end == s)
			break;
		if (!(v[n] >= 0) || (n % 3 != 1 && v[n] == 0))
			return -1;
	}
	if (n < 2 || n % 3 == 1)
		return -1;
	l->n = (n + 1) / 3;
	for (i = 0; i < l->n; i++) {
		l->phase[i].rate = v[3 * i] * 1e6;
		l->phase[i].latency = v[3 * i + 1] * 1e-3;
		t += 3 * i + 2 < n ? v[3 * i + 2] : 0;
		l->phase[i].until = t;
	}
	l->period = n % 3 == 0 ? t : 0;
	l->compute = COMPUTE;
	return 0;
}

/* Return the index of the phase at time t; set *end to the time at which the phase ends. */
static size_t
link_phase(const struct link *l, double t, double *end)
{
	double base = l->period > 0 ? floor(t / l->period) * l->period : 0;
	size_t i;

	for (i = 0; i + 1 < l->n && t - base >= l->phase[i].until; i++)
		;
	*end = i + 1 < l->n || l->period > 0 ?
	    base + l->phase[i].until : INFINITY;
	return i;
}

/* Return when bits whose sending begins at t have been sent. */
static double
link_sends(const struct link *l, double t, double bits)
{
	double end, rate;

	for (;;) {
		rate = l->phase[link_phase(l, t, &end)].rate;
		if (t + bits / rate <= end)
			return t + bits / rate;
		bits -= (end - t) * rate;
		t = end + 1e-9;
	}
}

/* Simulate a step whose message has bits[k] from device k. applied: how many
 * averages the model includes when the step begins. */
static void
link_step(struct link *l, size_t applied, const double *bits)
{
	double start = l->done, last = 0, end;
	size_t k;

	if (applied > 0)
		start = fmax(start, l->back[applied - 1]);
	l->done = start + l->compute;
	for (k = 0; k < DEVICES; k++) {
		l->sent[k] = link_sends(l, fmax(l->done, l->sent[k]), bits[k]);
		last = fmax(last, l->sent[k]);
	}
	l->back[l->step++] = last +
	    l->phase[link_phase(l, last, &end)].latency;
}

#endif
