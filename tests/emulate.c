/*
 * emulate: compute the time to a target loss with real training and a simulated network, for
 * examples/deco.sh.
 *
 *   emulate fixed SHARE DELAY RATE SEED    train with a fixed plan; print
 * 	share delay rate seed steps bits contraction fixed (the steps to the
 * 	target, or 0; bits and contraction are means per message, bits scaled to SIZE)
 *   emulate ahead SHARE DELAY RATE SEED    the same, but each device applies its
 * 	own update immediately and the average corrects it later; with share 1
 * 	this is DGA (Zhu et al., NeurIPS 2021)
 *   emulate time LINK                      read the lines that these print; print each
 * 	with the seconds that its steps take over LINK
 *   emulate deco|deco-ahead LINK SEED DELAY RATE...    train with the plans that
 * 	ace-policy makes for what the network does; rates are given by delay and
 * 	interpolated; print seconds steps changes delay share.  deco-ahead: as ahead
 *   emulate pace LINK COMPUTE BITS DELAY STEPS    print the seconds per step when
 * 	each device computes for COMPUTE seconds and then sends BITS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "sync/replan.h"

#include "emu_problem.h"
#include "emu_link.h"

#define TARGET 1.1		/* loss, smoothed */
/* The cost of one step of delay when each device applies its own update
 * immediately: the value from the sweep of examples/deco.sh for dense gradients. */
#define AHEAD_KD 0.07
#define SMOOTH 0.8		/* weight of the previous smoothed loss, every EVERY steps */
enum { EVERY = 5 };

struct device {
	float grad[VALUES], acc[VALUES];	/* acc: gradient plus residual */
	double keep;		/* share of the values to code next; 0: not known yet */
	double bits, energy, lost;	/* bits of the last message; |acc|^2, |coding error|^2 */
};

struct run {
	struct problem p;
	struct device d[DEVICES];
	float w[VALUES], *queue[STEPS];	/* w: the common model; queue: averages by step */
	int ahead;			/* 1: devices apply their own updates immediately */
	float own[DEVICES][VALUES];	/* each device's model, if ahead */
	float *kept[STEPS];		/* the devices' messages times the rate, until applied */
	uint64_t seed;
	size_t step, applied;
	double smooth, before, at;	/* smoothed loss, the one before; steps to TARGET or 0 */
	double bits, alpha;		/* the devices' means, summed over the steps */
};

static void
die(const char *why)
{
	(void)fprintf(stderr, "emulate: %s\n", why);
	exit(2);
}

static double
number(const char *s, double lo, double hi)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end != '\0' || !(v >= lo && v <= hi))
		die("a number that is none");
	return v;
}

/* ---- one step ---- */

/* Code acc with about this share of the dense bits; dec is the decoded message. */
static void
code(struct run *r, struct device *d, size_t k, double share, float *dec)
{
	struct codec_ctx ctx = { k, r->step, 0, HIDDEN, 0 };
	struct codec_plan pl = { CODEC_TOPK, 0, 0 };
	struct err e = ERR_INIT;
	struct buf b = BUF_INIT;
	uint8_t param;

	if (share >= 1) {
		memcpy(dec, d->acc, VALUES * sizeof(*dec));
		d->bits = 32.0 * (double)VALUES;
		return;
	}
	if (!(d->keep > 0))
		d->keep = share * 32 / 26;
	pl.arg = (float)fmin(1, fmax(d->keep, 1.0 / (double)VALUES));
	if (codec_encode(&pl, &ctx, d->acc, VALUES, &b, &param, &e) < 0 ||
	    codec_decode(CODEC_TOPK, param, &ctx, b.p, b.n, dec, VALUES,
	    &e) < 0)
		die(ERR_MSG(&e));
	d->bits = 8.0 * (double)b.n;
	/* adjust `keep', so that the size of the next message is nearer to the share */
	d->keep *= fmin(2, fmax(0.5, share * 32 * (double)VALUES / d->bits));
	buf_release(&b);
}

/* Compute device k's gradient, code it with the residual, and add its share of the mean.  dec
 * becomes the decoded message; the new residual stays in acc. */
static void
speak(struct run *r, size_t k, double share, float *dec, float *mean)
{
	struct device *d = &r->d[k];
	double v;
	size_t i;

	(void)gradient(&r->p, r->ahead ? r->own[k] : r->w, r->seed, k, r->step,
	    d->grad);
	for (i = 0; i < VALUES; i++)
		d->acc[i] += d->grad[i];
	code(r, d, k, share, dec);
	d->energy = d->lost = 0;
	for (i = 0; i < VALUES; i++) {
		v = (double)d->acc[i];
		d->energy += v * v;
		d->acc[i] -= dec[i];
		v = (double)d->acc[i];
		d->lost += v * v;
		mean[i] += dec[i] / (float)DEVICES;
	}
	r->bits += d->bits / (double)DEVICES;
	r->alpha += (d->energy > 0 ? 1 - d->lost / d->energy : 1) / (double)DEVICES;
}

/* Measure the loss every EVERY steps. If the smoothed loss is below TARGET, set r->at to the
 * step at which it fell below, interpolated between two measurements; if it diverges, set
 * r->step to STEPS. */
static void
judge(struct run *r, const float *w)
{
	double now;

	if (r->step % EVERY != 0 || r->at > 0)
		return;
	r->before = r->smooth;
	now = evaluate(&r->p, w);
	r->smooth = r->step == EVERY ? now :
	    SMOOTH * r->before + (1 - SMOOTH) * now;
	if (!(r->smooth < 1e6))
		r->step = STEPS;	/* the run has diverged */
	else if (r->smooth < TARGET)
		r->at = (double)r->step - (double)EVERY * (TARGET - r->smooth) /
		    (r->before - r->smooth);
}

/* Apply the averages of all steps but the last `delay', each once and in order. */
static void
apply(struct run *r, size_t delay, double rate)
{
	size_t i, k;

	for (; r->applied + delay < r->step; r->applied++) {
		for (i = 0; i < VALUES; i++)
			r->w[i] -= (float)rate * r->queue[r->applied][i];
		for (k = 0; r->ahead && k < DEVICES; k++)
			for (i = 0; i < VALUES; i++)
				r->own[k][i] += r->kept[r->applied]
				    [k * VALUES + i] - (float)rate *
				    r->queue[r->applied][i];
		free(r->kept[r->applied]);
		r->kept[r->applied] = NULL;
	}
}

static void
step(struct run *r, double share, size_t delay, double rate)
{
	float *mean = calloc(VALUES, sizeof(*mean));
	float *sent = calloc(DEVICES * VALUES, sizeof(*sent));
	size_t i, k;

	if (mean == NULL || sent == NULL)
		die("out of memory");
	for (k = 0; k < DEVICES; k++)
		speak(r, k, share, sent + k * VALUES, mean);
	for (i = 0; i < DEVICES * VALUES; i++) {
		sent[i] *= (float)rate;
		r->own[i / VALUES][i % VALUES] -= sent[i];
	}
	r->kept[r->step] = sent;
	r->queue[r->step++] = mean;
	apply(r, delay, rate);
	judge(r, r->w);
}

static int
going(const struct run *r)
{
	return r->at == 0 && r->step < STEPS;
}

static struct run *
start(uint64_t seed, int ahead)
{
	struct run *r = calloc(1, sizeof(*r));
	size_t k;

	if (r == NULL)
		die("out of memory");
	r->seed = seed;
	r->ahead = ahead;
	problem_make(&r->p, 1);
	memcpy(r->w, r->p.start, sizeof(r->w));
	for (k = 0; k < DEVICES; k++)
		memcpy(r->own[k], r->p.start, sizeof(r->w));
	return r;
}

static void
end(struct run *r)
{
	size_t i;

	for (i = 0; i < STEPS; i++) {
		free(r->queue[i]);
		free(r->kept[i]);
	}
	free(r);
}

static void
report(const struct run *r, double share, size_t delay, double rate,
    const char *what)
{
	double n = (double)r->step;

	(void)printf("%g\t%zu\t%g\t%llu\t%.2f\t%.1f\t%.4g\t%s\n", share, delay,
	    rate, (unsigned long long)r->seed, r->at,
	    r->bits / n / (32.0 * (double)VALUES) * SIZE, r->alpha / n, what);
}

/* ---- commands ---- */

static void
fixed(char **v, int ahead)
{
	double share = number(v[0], 1e-6, 1), rate = number(v[2], 0, 100);
	size_t delay = (size_t)number(v[1], 0, 1000);
	struct run *r = start((uint64_t)number(v[3], 0, 1e9), ahead);

	while (going(r))
		step(r, share, delay, rate);
	report(r, share, delay, rate, ahead ? "ahead" : "fixed");
	end(r);
}

/* Return the seconds of this many steps, the last one in part; bits: per device and step. */
static double
seconds(const struct link *line, size_t delay, double steps, double bits)
{
	static struct link l;
	double each[DEVICES], before = 0, now = 0;
	size_t k;

	l = *line;
	for (k = 0; k < DEVICES; k++)
		each[k] = bits;
	while ((double)l.step < steps && l.step < STEPS) {
		before = now;
		link_step(&l, l.step > delay ? l.step - delay : 0, each);
		now = fmax(l.done, l.step > delay ?
		    l.back[l.step - 1 - delay] : 0);
	}
	return now - (now - before) * ((double)l.step - steps);
}

static void
times(char **v)
{
	static struct link l;
	char line[512];
	double share, rate, seed, steps, bits;
	unsigned long delay;

	if (link_parse(&l, v[0]) < 0)
		die("LINK: Mbit/s ms [seconds ...]");
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lf %lu %lf %lf %lf %lf", &share, &delay,
		    &rate, &seed, &steps, &bits) != 6)
			die("a line that is none of fixed");
		if (steps > 0)
			(void)printf("%s\t%.4f\n", line, seconds(&l, delay,
			    steps, bits));
		else
			(void)printf("%s\t0\n", line);
	}
}

/* Make what ace-meter and ace-compress might have measured in the previous step. */
static struct replan_sample
measured(const struct run *r, const struct link *l)
{
	struct replan_sample s = { 0, 0, COMPUTE, 0, 0, 0 };
	double end, noise;
	uint32_t u[4];
	size_t i = link_phase(l, l->done, &end), k;

	rng_block(r->seed, r->step, 99, 0, u);
	noise = exp2(0.2 * ((double)rng_unit(u[0]) - 0.5));
	s.bandwidth = l->phase[i].rate * noise;
	s.latency = l->phase[i].latency * (1 + (double)rng_unit(u[1]) / 4);
	for (k = 0; k < DEVICES; k++) {
		s.alpha += (1 - r->d[k].lost / r->d[k].energy) / (double)DEVICES;
		s.share += r->d[k].bits / (32.0 * (double)VALUES) / (double)DEVICES;
	}
	if (r->step == 0)
		s.alpha = s.share = -1;
	return s;
}

static double
rate_of(size_t delay, char **v, size_t n)
{
	size_t i;

	for (i = 2; i + 1 < n && (double)delay > atof(v[i]); i += 2)
		;
	if (i + 1 >= n || (double)delay <= atof(v[0]))
		return atof(v[i + 1 >= n ? n - 1 : 1]);
	return atof(v[i - 1]) + (atof(v[i + 1]) - atof(v[i - 1])) *
	    ((double)delay - atof(v[i - 2])) / (atof(v[i]) - atof(v[i - 2]));
}

static void
deco(char **v, size_t n, int ahead)
{
	static struct link l;
	struct replan t = REPLAN_INIT;
	struct err e = ERR_INIT;
	double bits[DEVICES], now = 0, before = 0;
	size_t delay = 0, k, had, changes = 0;
	struct run *r;

	if (link_parse(&l, v[0]) < 0 || n < 4 || n % 2 != 0)
		die("deco LINK SEED DELAY RATE...");
	r = start((uint64_t)number(v[1], 0, 1e9), ahead);
	while (going(r)) {
		struct replan_sample s = measured(r, &l);
		struct deco d = DECO_INIT;
		int c;

		d.size = SIZE;
		d.min = 1e-4;
		d.kd = ahead ? AHEAD_KD : d.kd;
		replan_see(&t, &s);
		if ((c = replan_plan(&t, &d, &e)) < 0)
			die(ERR_MSG(&e));
		changes += (size_t)c;
		before = now;
		had = r->applied;
		delay = (size_t)t.tau;
		step(r, t.delta, delay, rate_of(delay, v + 2, n - 2));
		for (k = 0; k < DEVICES; k++)
			bits[k] = r->d[k].bits / (32.0 * (double)VALUES) * SIZE;
		link_step(&l, had, bits);
		now = fmax(l.done, r->applied > 0 ? l.back[r->applied - 1] : 0);
	}
	(void)printf("%.4f\t%.2f\t%zu\t%zu\t%.5g\n", r->at > 0 ?
	    now - (now - before) * ((double)r->step - r->at) : 0, r->at,
	    changes, delay, t.delta);
	end(r);
}

static void
pace(char **v)
{
	static struct link l;
	double compute = number(v[1], 0, 1e6), bits = number(v[2], 0, 1e15);
	size_t delay = (size_t)number(v[3], 0, 1000);
	double steps = number(v[4], 1, STEPS);

	if (link_parse(&l, v[0]) < 0)
		die("LINK: Mbit/s ms [seconds ...]");
	l.compute = compute;
	(void)printf("%.4f\n", seconds(&l, delay, steps, bits) / steps);
}

int
main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "fixed") == 0)
		fixed(argv + 2, 0);
	else if (argc == 6 && strcmp(argv[1], "ahead") == 0)
		fixed(argv + 2, 1);
	else if (argc == 3 && strcmp(argv[1], "time") == 0)
		times(argv + 2);
	else if (argc >= 6 && strcmp(argv[1], "deco") == 0)
		deco(argv + 2, (size_t)argc - 2, 0);
	else if (argc >= 6 && strcmp(argv[1], "deco-ahead") == 0)
		deco(argv + 2, (size_t)argc - 2, 1);
	else if (argc == 7 && strcmp(argv[1], "pace") == 0)
		pace(argv + 2);
	else
		die("fixed, ahead, time, deco, deco-ahead or pace");
	return 0;
}
