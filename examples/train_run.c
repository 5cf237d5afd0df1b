#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "train_check.h"
#include "train_dct.h"
#include "train_emit.h"
#include "train_factor.h"
#include "train_queue.h"
#include "train_run.h"

struct run {
	const struct run_options *o;
	struct data data;
	struct model *m;
	struct optim **optim;	/* [noptim]: one; if alone with --interval and without --replay,
				 * one per device */
	size_t noptim;
	struct optim *before;	/* for replay: the moments that all devices share */
	size_t taken;		/* steps in the round that was done most recently */
	float *start;		/* f32[n] the round's first weights; 0 after origin in gossip */
	float *sent;		/* f32[n] what a device sends, or an average */
	double *sum;		/* f64[n] if alone: mean of what the devices send */
	uint8_t *text;		/* [batch][T+1] */
	size_t local, delay;	/* the present interval and delay */
	size_t steps, round;	/* numbers of steps and rounds done */
	size_t applied;		/* number of averages in the model */
	struct link link;
	struct queue queue;
	struct emit emit;
	struct sense sense;
	FILE *log;
	double loss;		/* smoothed loss of the batches; 0: none yet */
	int progress;		/* descriptor of the progress file, or -1 */
};

static int __attribute__((format(printf, 3, 4)))
fail(struct ace_error *e, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(e->message, sizeof e->message, format, ap);
	va_end(ap);
	e->code = code;
	return -code;
}

/* ---- evaluation ---- */

static int
log_line(struct run *r, const char *what, double loss, double top1,
    struct ace_error *e)
{
	if (fprintf(r->log, "%s\t%zu\t%zu\t%.4f\t%.3f\t%.2f\n", what, r->round,
	    r->steps, loss, exp(loss), 100 * top1) < 0 ||
	    fflush(r->log) != 0)
		return fail(e, 4, "cannot write the log '%s': %s", r->o->log != NULL ?
		    r->o->log : "standard error", strerror(errno));
	return 0;
}

static int
evaluate(struct run *r, const char *what, struct ace_error *e)
{
	const size_t t = r->o->shape.context, all = r->o->windows;
	size_t hits = 0, i, j, b;
	double loss = 0;

	if (!r->o->eval)
		return 0;
	for (i = 0; i < all; i += b) {
		b = all - i < r->o->batch ? all - i : r->o->batch;
		for (j = 0; j < b; j++)
			data_window(&r->data, i + j, all, t,
			    r->text + j * (t + 1));
		loss += (double)b * model_loss(r->m, r->text, b, &hits);
	}
	return log_line(r, what, loss / (double)all,
	    (double)hits / (double)(all * t), e);
}

static int
log_begin(struct run *r, struct ace_error *e)
{
	double loss, top1;

	if (!r->o->eval)
		return 0;
	r->log = r->o->log == NULL ? stderr :
	    fopen(r->o->log, r->round > 0 ? "a" : "w");
	if (r->log == NULL)
		return fail(e, 4, "cannot open '%s': %s", r->o->log,
		    strerror(errno));
	if (r->round > 0)
		return 0;
	(void)fprintf(r->log, "what\tround\tstep\tloss\tperplexity\ttop1\n");
	data_unigram(&r->data, &loss, &top1);
	return log_line(r, "unigram", loss, top1, e);
}

static int
log_end(struct run *r, struct ace_error *e)
{
	FILE *f = r->log;

	r->log = NULL;
	if (f != NULL && f != stderr && fclose(f) != 0)
		return fail(e, 4, "cannot write the log '%s': %s", r->o->log,
		    strerror(errno));
	return 0;
}

/* ---- progress ---- */

static int
progress_open(struct run *r, struct ace_error *e)
{
	if (r->o->progress == NULL)
		return 0;
	r->progress = open(r->o->progress, O_WRONLY | O_CREAT | O_TRUNC |
	    O_CLOEXEC, 0666);
	return r->progress >= 0 ? 0 : fail(e, 4, "cannot open '%s': %s",
	    r->o->progress, strerror(errno));
}

/* Write one line of a fixed length over the previous one, so that readers always
 * find a complete line. */
static void
progress(const struct run *r, size_t step)
{
	char line[64];
	int n = snprintf(line, sizeof line, "%20zu %20.4f\n", step + 1,
	    r->loss);

	if (r->progress >= 0 && pwrite(r->progress, line, (size_t)n, 0) < 0)
		return;		/* ignore errors, since a lost line does no harm */
}

/* ---- one round ---- */

/* Mark the tensors that are not trained. Return 0, or -2 if no name has this prefix. */
static int
keep_still(struct model *m, const char *begin, struct ace_error *e)
{
	size_t i, n = 0;

	if (begin == NULL)
		return 0;
	for (i = 0; i < m->ntensors; i++) {
		m->tensor[i].still = strncmp(m->tensor[i].name, begin,
		    strlen(begin)) == 0;
		n += (size_t)m->tensor[i].still;
	}
	return n > 0 ? 0 : fail(e, 2, "--still: no tensor's name begins with '%s', "
	    "expected the beginning of a name such as 'wte', 'wpe', 'layer0.qkv' or "
	    "'norm'", begin);
}

/* Set the gradient of tensors that are not trained to 0, before clipping and sending. */
static void
hold_still(struct model *m)
{
	const struct tensor *t;

	for (t = m->tensor; t < m->tensor + m->ntensors; t++)
		if (t->still)
			memset(m->grad + t->at, 0, t->n * sizeof *m->grad);
}

/* Compute m->grad from device i's batch of this step. */
static void
gradient(struct run *r, size_t i, size_t step)
{
	struct data_share s = r->o->share;
	double loss;

	s.index = i;
	data_batch(&r->data, &s, r->o->batch, r->o->shape.context, r->o->seed,
	    step, r->text);
	memset(r->m->grad, 0, r->m->n * sizeof *r->m->grad);
	loss = model_loss(r->m, r->text, r->o->batch, NULL);
	r->loss = r->loss > 0 ? 0.95 * r->loss + 0.05 * loss : loss;
	model_backward(r->m, r->text, r->o->batch);
	hold_still(r->m);
	sense_see(&r->sense);
	progress(r, step);
}

/* Add the gradient of mu/2 |theta - start|^2 (Li et al. 2020, equation 2). */
static void
proximal(struct run *r)
{
	const float mu = (float)r->o->prox;
	size_t j;

	for (j = 0; mu > 0 && j < r->m->n; j++)
		r->m->grad[j] += mu * (r->m->theta[j] - r->start[j]);
}

/* In gossip, set r->start, from which differences are taken, to 0, since each device has
 * another model (D-PSGD, Lian et al. 2017, algorithm 1).  Otherwise r->start is the round's
 * first model, which all devices share. */
static void
origin(struct run *r)
{
	if (r->o->gossip)
		memset(r->start, 0, r->m->n * sizeof *r->start);
}

static int
says_gradients(const struct run_options *o)
{
	return o->local == 0 || o->replay;
}

/* Replay: compute the mean gradient of h steps, and restore the optimiser's state.  All
 * devices take the real steps with the average, so they have equal moments and need not
 * send them.  The weights are undefined afterwards. */
static void
look_ahead(struct run *r, size_t i, size_t h, float *out)
{
	const float share = 1.0f / (float)h;
	size_t j, k;

	optim_copy(r->before, r->optim[0]);
	memset(out, 0, r->m->n * sizeof *out);
	for (j = 0; j < h; j++) {
		gradient(r, i, r->steps + j);
		for (k = 0; k < r->m->n; k++)
			out[k] += share * r->m->grad[k];
		if (j + 1 < h)
			optim_step(r->optim[0], &r->o->rule, r->m);
	}
	optim_copy(r->optim[0], r->before);
}

/* DeMo: compute the cosine transform of a device's addition to its momentum: the gradient
 * (clipped) times the schedule's share of the highest rate.  The highest rate itself is left out,
 * since steps use only signs.  The momentum is the residual of ace-compress -S with
 * --error-feedback ef:DECAY, which sends the largest values and decays the rest. */
static void
say_transform(struct run *r, float *out)
{
	const struct optim_rule *q = &r->o->rule;

	optim_clip(r->m->grad, r->m->n, q->clip);
	dct_forward(r->m, (float)optim_share(q, r->optim[0]->t), r->m->grad, out);
}

/* Compute what a device sends: its gradient, or the momentum or transform of it. */
static void
say_gradient(struct run *r, float *out)
{
	const struct optim_rule *q = &r->o->rule;

	if (q->sign) {
		say_transform(r, out);
		return;
	}
	if (optim_frozen(r->optim[0], q)) {
		optim_clip(r->m->grad, r->m->n, q->clip);
		optim_momentum(r->optim[0], q, r->m->grad);
	}
	memcpy(out, r->m->grad, r->m->n * sizeof *out);
}

/* Write what device i sends this round into out. h: its local steps, if it makes any. The
 * weights are undefined afterwards. */
static void
contribution(struct run *r, size_t i, size_t h, float *out)
{
	struct optim *opt = r->optim[r->noptim > 1 ? i : 0];
	size_t n = r->m->n, j;

	if (r->o->local == 0) {
		gradient(r, i, r->steps);
		say_gradient(r, out);
		return;
	}
	if (r->o->replay) {
		look_ahead(r, i, h, out);
		return;
	}
	for (j = 0; j < h; j++) {
		gradient(r, i, r->steps + j);
		proximal(r);
		optim_step(opt, &r->o->rule, r->m);
	}
	origin(r);
	for (j = 0; j < n; j++)
		out[j] = r->start[j] - r->m->theta[j];
	if (r->o->shape.factored && factor_due(r->round + 1))
		factor_measure(r->m, r->sense.square, opt->outer, out);
	factor_apply(r->m, out, 0);
}

/* Add n words of 32 bits to the digest h, as FNV-1a (Fowler, Noll and Vo) adds bytes. */
static uint64_t
digest_add(uint64_t h, const void *x, size_t n)
{
	const unsigned char *p = x;
	uint32_t v;
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(&v, p + i * sizeof v, sizeof v);
		h = (h ^ v) * UINT64_C(0x100000001b3);
	}
	return h;
}

/* Compute the digest of what all devices share when a round begins: the weights, the
 * outer step's momentum and, when all take the same steps, the moments and the interval. In
 * gossip there is no digest, since each device has a model of its own. */
static void
digest(struct run *r)
{
	const struct optim *o = r->optim[0];
	const uint32_t h = r->local > 0 ? (uint32_t)r->local : 1;
	const size_t n = r->m->n;
	uint64_t x = UINT64_C(0xcbf29ce484222325);

	if (r->o->gossip)
		return;
	x = digest_add(x, r->m->theta, n);
	x = digest_add(x, o->outer, n);
	if (says_gradients(r->o)) {
		x = digest_add(x, o->m, n);
		x = digest_add(x, o->v, n);
		x = digest_add(x, &h, 1);
	}
	(void)snprintf(r->link.digest, sizeof r->link.digest, "%016llx",
	    (unsigned long long)x);
}

/* Run every device in turn, form the mean in double, and put it into the queue. */
static int
together_alone(struct run *r, size_t h, struct ace_error *e)
{
	const size_t n = r->m->n, k = r->o->share.of;
	size_t i, j;

	memset(r->sum, 0, n * sizeof *r->sum);
	for (i = 0; i < k; i++) {
		memcpy(r->m->theta, r->start, n * sizeof *r->start);
		contribution(r, i, h, r->sent);
		for (j = 0; j < n; j++)
			r->sum[j] += (double)r->sent[j] / (double)k;
	}
	for (j = 0; j < n; j++)
		r->sent[j] = (float)r->sum[j];
	if (r->o->moments)
		optim_average(r->optim, k, n);
	return queue_put(&r->queue, r->sent, e);
}

static double
now(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
together_streams(struct run *r, size_t h, struct ace_error *e)
{
	const struct run_options *o = r->o;
	const size_t tokens = h * o->batch * o->shape.context;
	const double from = now();
	int c = 0;

	digest(r);
	if (o->cuts != NULL)
		c = emit_begin(&r->emit, r->round, r->applied, tokens, e);
	if (c == 0)
		contribution(r, o->share.index, h, r->sent);
	r->link.compute = o->clock ? now() - from : -1;
	if (c == 0 && o->cuts != NULL)
		c = link_record(&r->link, ACE_GRADIENT, r->round, r->applied,
		    tokens, r->sent, e);
	if (c == 0)
		c = o->cuts != NULL ? emit_end(&r->emit, e) :
		    link_send(&r->link, says_gradients(o) ? ACE_GRADIENT :
		    ACE_DELTA, r->round, r->applied, tokens, r->sent, e);
	if (c < 0)
		return c;
	if (o->apply == NULL)
		return queue_put(&r->queue, r->sent, e);
	queue_sent(&r->queue);
	return 0;
}

/* Apply one average x to the model, and obey the policy's decisions that came with it.  x is
 * changed. */
static int
apply(struct run *r, float *x, const struct link_word *word, struct ace_error *e)
{
	const struct run_options *o = r->o;
	size_t n = r->m->n, i;

	if (says_gradients(o)) {
		for (i = 0; i < (o->replay ? r->taken : 1); i++) {
			if (o->rule.sign)
				dct_inverse(r->m, x, r->m->grad);
			else
				memcpy(r->m->grad, x, n * sizeof *x);
			optim_step(r->optim[0], &o->rule, r->m);
		}
	} else {
		memcpy(r->start, r->m->theta, n * sizeof *r->start);
		factor_apply(r->m, x, 1);
		origin(r);
		for (i = 0; o->realign > 0 && i < r->noptim; i++)
			optim_realign(r->optim[i], &o->rule, r->m,
			    r->steps - r->taken, r->taken, r->start, x,
			    o->realign);
		optim_outer(r->optim[0], &o->rule, r->m->theta, r->start, x);
		factor_update(r->m, r->optim[0]->outer, x, factor_due(r->applied));
	}
	r->applied++;
	if (o->obey && o->local > 0 && word->interval > 0)
		r->local = word->interval;
	if (o->obey && word->delayed)
		r->delay = word->delay;
	if (r->delay > 0 && (o->resume != NULL || o->catch_up != NULL))
		return fail(e, 5, "refused: the policy of round %zu delays averages, which "
		    "--resume and --catch-up exclude: train without --policy, or without them",
		    r->applied - 1);
	if (o->obey && o->cuts != NULL && word->cuts[0] != '\0')
		emit_obey(&r->emit, word->cuts);
	return 0;
}

/* Apply the averages that are due, in order: all up to that of `delay' rounds ago.
 * After the delay has grown, in some rounds none is due; after it has shrunk, several
 * are. The last round applies the rest. */
static int
apply_due(struct run *r, int end, struct ace_error *e)
{
	struct message *q;
	int c;

	while (r->applied + (end ? 0 : r->delay) < r->round) {
		if ((c = queue_get(&r->queue, &q, e)) < 0)
			return c;
		c = apply(r, q->x, &q->word, e);
		free(q);
		if (c < 0)
			return c;
	}
	return 0;
}

static int
one_round(struct run *r, struct ace_error *e)
{
	const struct run_options *o = r->o;
	size_t h = o->local == 0 ? 1 : r->local, n = r->m->n;
	int c;

	if (h > o->steps - r->steps)
		h = o->steps - r->steps;
	memcpy(r->start, r->m->theta, n * sizeof *r->start);
	c = o->alone ? together_alone(r, h, e) : together_streams(r, h, e);
	if (c < 0)
		return c;
	memcpy(r->m->theta, r->start, n * sizeof *r->start);
	r->steps += h;
	r->taken = h;
	r->round++;
	return apply_due(r, r->steps == o->steps, e);
}

/* ---- checkpoints ---- */

enum { KEPT = 4, MEASURED };

/* List all arrays that the next round needs, and return their number.  The last one, with
 * --moment or --factored, is the sensitivity.  Averages that are not yet applied are absent. */
static size_t
kept(const struct run *r, float *x[MEASURED])
{
	x[0] = r->m->theta;
	x[1] = r->optim[0]->m;
	x[2] = r->optim[0]->v;
	x[3] = r->optim[0]->outer;
	x[4] = r->sense.square;
	return x[4] != NULL ? MEASURED : KEPT;
}

static int
keep(const struct run *r, struct ace_error *e)
{
	struct ace_shard s = ACE_SHARD_INIT;
	float *x[MEASURED];
	size_t n = kept(r, x);

	if (r->o->resume == NULL)
		return 0;
	(void)strcpy(s.device, "train");
	s.kind = ACE_MODEL;
	s.step = r->round;
	s.samples = r->steps;
	s.base_version = r->local;
	return link_save(r->o->resume, r->m, s, (const float *const *)x,
	    r->sense.any ? n : KEPT, e);
}

/* Restore the number of the round, and other counters, from s. */
static void
kept_says(struct run *r, const struct ace_shard *s)
{
	r->round = r->applied = s->step;
	r->steps = r->optim[0]->t = s->samples;
	r->local = s->base_version;
}

static int
resume(struct run *r, struct ace_error *e)
{
	struct ace_shard s;
	float *x[MEASURED];
	size_t n = kept(r, x);
	int c;

	if (r->o->resume == NULL || access(r->o->resume, F_OK) < 0)
		return 0;
	if ((c = link_load(r->o->resume, r->m, &s, x, n, KEPT, e)) < 0)
		return c;
	r->sense.any = c == MEASURED;
	kept_says(r, &s);
	return 0;
}

/* ---- joining later ---- */

/* Apply the average of a round in which this device did not take part. */
static int
catch_up_round(struct run *r, const struct ace_shard *s,
    const struct link_word *word, struct ace_error *e)
{
	size_t h = r->o->local == 0 ? 1 : r->local;
	int c;

	if (s->step < r->round)
		return 0;		/* the model has this average */
	if (s->step > r->round)
		return fail(e, 3, "mismatch: found the average of round %llu in '%s', "
		    "expected round %zu: begin the file with the expected average, or "
		    "with a newer model, which --resume of another device wrote",
		    (unsigned long long)s->step, r->o->catch_up, r->round);
	if (h > r->o->steps - r->steps)
		h = r->o->steps - r->steps;
	r->steps += h;
	r->taken = h;
	r->round++;
	c = apply(r, r->sent, word, e);
	r->optim[0]->t = r->steps;
	return c;
}

/* Read a model in the form of --resume, if there is one, and the averages after it, and apply
 * both, without computing gradients. */
static int
catch_up(struct run *r, struct ace_error *e)
{
	struct link in = { .m = r->m, .apply = r->o->catch_up, .fd = -1 };
	struct link_word word;
	struct ace_shard s;
	float *x[MEASURED];
	int c;

	if (r->o->catch_up == NULL || r->round > 0)
		return 0;
	(void)kept(r, x);
	while ((c = link_feedback(&in, &s, x, KEPT, r->sent, &word, e)) > 0)
		if (s.kind == ACE_MODEL)
			kept_says(r, &s);
		else if (s.kind == ACE_HISTORY)
			continue;	/* skip the sensitivity to another device's text */
		else if ((c = catch_up_round(r, &s, &word, e)) < 0)
			break;
	link_release(&in);
	return c < 0 ? c : keep(r, e);
}

/* ---- all rounds ---- */

static int
rounds(struct run *r, struct ace_error *e)
{
	const struct run_options *o = r->o;
	int c = r->round > 0 ? 0 : evaluate(r, "start", e);

	while (c == 0 && r->steps < o->steps) {
		if ((c = one_round(r, e)) == 0 &&
		    (c = sense_tell(&r->sense, r->round, e)) == 0)
			c = keep(r, e);
		if (c == 0 && o->every > 0 && r->round % o->every == 0 &&
		    r->steps < o->steps)
			c = evaluate(r, "now", e);
	}
	return c < 0 ? c : evaluate(r, r->steps < o->rule.steps ? "now" :
	    "end", e);
}

/* ---- set-up ---- */

static int
prepare(struct run *r, char *const *file, size_t nfiles, struct ace_error *e)
{
	const struct run_options *o = r->o;
	const char *bad = "";
	size_t i;

	if (data_read(&r->data, file, nfiles, o->valid, &bad) < 0)
		return fail(e, 4, "cannot read '%s': %s", bad,
		    strerror(errno));
	if (!data_enough(&r->data, o->share.of, o->shape.context))
		return fail(e, 3, "truncated: %zu bytes of text for training and %zu for "
		    "validation, expected %zu and %zu: give more text, a smaller --context, fewer "
		    "devices (--of) or another --valid", r->data.train,
		    r->data.n - r->data.train, 8 * o->share.of * (o->shape.context + 1),
		    2 * (o->shape.context + 1));
	if ((r->m = model_new(&o->shape, o->batch)) == NULL)
		goto memory;
	r->noptim = o->alone && !says_gradients(o) ? o->share.of : 1;
	r->optim = calloc(o->share.of, sizeof(struct optim *));
	r->text = malloc(o->batch * (o->shape.context + 1));
	r->start = calloc(r->m->n, sizeof *r->start);
	r->sent = calloc(r->m->n, sizeof *r->sent);
	r->sum = calloc(o->alone ? r->m->n : 1, sizeof *r->sum);
	if (r->optim == NULL || r->text == NULL || r->start == NULL ||
	    r->sent == NULL || r->sum == NULL)
		goto memory;
	for (i = 0; i < r->noptim; i++)
		if ((r->optim[i] = optim_new(r->m)) == NULL)
			goto memory;
	if (o->replay && (r->before = optim_new(r->m)) == NULL)
		goto memory;
	if (sense_init(&r->sense, r->m, o->moment, o->shape.factored, e) < 0)
		return -4;
	model_init(r->m, o->seed);
	if (keep_still(r->m, o->still, e) < 0)
		return -2;
	r->m->flip = o->flip ? 0xff : 0;
	r->local = o->local;
	r->delay = o->delay;
	return 0;
memory:
	return fail(e, 4, "out of memory");
}

static int
load(struct run *r, struct ace_error *e)
{
	const struct model m = factor_without(r->m);
	struct ace_shard s;

	return r->o->load == NULL ? 0 : link_load(r->o->load, &m, &s,
	    (float *const[]){ r->m->theta }, 1, 1, e);
}

static void
release(struct run *r)
{
	size_t i;

	for (i = 0; r->optim != NULL && i < r->noptim; i++)
		optim_free(r->optim[i]);
	free(r->optim);
	optim_free(r->before);
	free(r->text);
	free(r->start);
	free(r->sent);
	free(r->sum);
	model_free(r->m);
	data_free(&r->data);
	queue_release(&r->queue);
	emit_release(&r->emit);
	sense_release(&r->sense);
	link_release(&r->link);
	if (r->log != NULL && r->log != stderr)
		(void)fclose(r->log);
	if (r->progress >= 0)
		(void)close(r->progress);
}

/* Warn if a device reads its text 1.05 times or more, since the model may memorise it. */
static void
say_passes(const struct run *r)
{
	const struct run_options *o = r->o;
	const double passes = (double)o->steps * (double)o->batch /
	    (double)data_windows(&r->data, &o->share, o->shape.context);

	if (passes >= 1.05)
		(void)fprintf(stderr, "train: %s reads its text %.1f times, so the model may "
		    "memorise it: give more text or fewer --steps\n",
		    o->alone ? "each device" : o->device, passes);
}

int
run_train(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e)
{
	struct run r = { .o = o, .link = { .fd = -1, .compute = -1 },
	    .progress = -1 };
	struct ace_shard s = ACE_SHARD_INIT;
	struct model m;
	int c;

	if ((c = prepare(&r, file, nfiles, e)) < 0 || (c = load(&r, e)) < 0 ||
	    (c = resume(&r, e)) < 0 || (c = catch_up(&r, e)) < 0 ||
	    (c = progress_open(&r, e)) < 0 || (c = log_begin(&r, e)) < 0)
		goto out;
	say_passes(&r);
	r.link.m = r.m;
	r.link.device = o->device;
	r.link.run = o->run;
	r.link.apply = o->apply;
	r.link.record = o->record;
	if (o->cuts != NULL &&
	    (c = emit_init(&r.emit, &r.link, r.m, o->cuts, e)) < 0)
		goto out;
	if (!o->alone &&
	    (c = link_open(&r.link, STDOUT_FILENO, o->group, e)) < 0)
		goto out;
	if ((c = queue_init(&r.queue, !o->alone && o->apply != NULL ?
	    &r.link : NULL, r.m->n, r.round, e)) < 0 || (c = rounds(&r, e)) < 0)
		goto out;
	queue_end(&r.queue);
	if (!o->alone && (c = link_close(&r.link, STDOUT_FILENO, e)) < 0)
		goto out;
	if (o->save != NULL) {
		(void)strcpy(s.device, "train");
		s.kind = ACE_MODEL;
		s.step = r.round;
		m = factor_without(r.m);
		if ((c = link_save(o->save, &m, s,
		    (const float *const[]){ m.theta }, 1, e)) < 0)
			goto out;
	}
	if (o->profile != NULL && o->cuts != NULL &&
	    (c = emit_profile(&r.emit, o->profile, e)) < 0)
		goto out;
	c = log_end(&r, e);
out:
	release(&r);
	return c;
}

int
run_check(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e)
{
	struct run r = { .o = o, .link = { .fd = -1 }, .progress = -1 };
	int c;

	if ((c = prepare(&r, file, nfiles, e)) < 0 || (c = load(&r, e)) < 0)
		goto out;
	if (o->load == NULL)
		model_scatter(r.m, o->seed, 0.3f);
	gradient(&r, o->share.index, 0);
	c = check_gradient(&o->shape, r.m->theta, r.m->grad, r.text, o->batch,
	    stdout);
	if (c < 0)
		c = fail(e, 4, "out of memory");
out:
	release(&r);
	return c;
}
