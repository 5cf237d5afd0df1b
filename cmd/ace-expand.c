/*
 * ace-expand: any shard stream becomes dense; with a state the residual of
 * error feedback is added, g~ = g + gamma * e  (ACE-Sync, equation 7).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "device/feedback.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum { OPT_GAMMA = CLI_LONG, OPT_WAIT, OPT_GAP, OPT_CACHE, OPT_SYNC };

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "add the residual kept in DIR" },
	{ OPT_GAMMA, "gamma", "G", "times the residual (default 1)" },
	{ OPT_WAIT, "wait", "TIME",
	    "wait for the step before to be committed (default 60s)" },
	{ OPT_GAP, "allow-gap", NULL, "the step before may be missing" },
	{ OPT_CACHE, "cache", "DIR",
	    "undo ef21 and cache feedback with the history kept in DIR" },
	{ OPT_SYNC, "sync", "WHEN", "full, rename or none (default full)" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const char *dir, *cache;
	double gamma, wait;
	int gap, sync;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const syncs[] = { "none", "rename", "full", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_CACHE:
		o->cache = val;
		return 0;
	case OPT_SYNC:
		return num_choice(&o->sync, val, syncs, "--sync", e);
	case OPT_GAMMA:
		return num_f64(&o->gamma, val, 0, 1, "--gamma", e);
	case OPT_WAIT:
		return num_time(&o->wait, val, "--wait", e);
	case OPT_GAP:
		o->gap = 1;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* Who reads the residual must not be ahead of who writes it. */
static int
ready(const struct opts *o, const struct residual *q, const struct shard *sh,
    int first)
{
	if (q->d.r == NULL)
		return first;
	return q->step + 1 >= sh->step || o->gap;
}

static int
wait_residual(const struct opts *o, const struct state *s, struct residual *q,
    const struct shard *sh, int first, struct err *e)
{
	double left = o->wait;
	int r, ms = 1;

	for (;;) {
		if ((r = residual_open(q, s, e)) < 0 || ready(o, q, sh, first))
			return r;
		if (left <= 0)
			break;
		residual_close(q);
		if ((r = fd_orphan(o->f.output == NULL ? STDOUT_FILENO : -1,
		    ms, e)) < 0)
			return r;
		left -= ms / 1e3;
		ms = ms < 10 ? 2 * ms : ms;
	}
	if (q->d.r == NULL)
		return err_set(e, ERR_REFUSED, "state '%s': nothing was "
		    "committed for the step before %llu in %g s", s->dir,
		    (unsigned long long)sh->step, o->wait);
	return err_set(e, ERR_REFUSED, "state '%s' is at step %llu, the shard "
	    "at %llu, after %g s", s->dir, (unsigned long long)q->step,
	    (unsigned long long)sh->step, o->wait);
}

struct run {
	const struct opts *o;
	const struct kern *kern;
	struct reader *in;
	struct writer *out;
	struct state state;
	struct residual res;
	struct feedback_cache *cache;
	struct values v;
	int first;
};

static int
pass_note(void *arg, const struct reader *r, struct err *e)
{
	struct run *x = arg;

	return filter_pass(r, x->out, x->o->dir != NULL, e);
}

static int
begin_shard(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	struct shard s;
	int r;

	shard_init(&s);
	if ((r = shard_copy(&s, sh, e)) < 0 || (x->cache != NULL &&
	    (r = feedback_cache_begin(x->cache, x->in, e)) < 0))
		goto out;
	s.flags &= ~SHARD_PREDICTED;
	if ((r = text_set(&s.kv, FEEDBACK_KEY, NULL, e)) < 0 ||
	    (r = text_set(&s.kv, FEEDBACK_KEY_BASE, NULL, e)) < 0)
		goto out;
	if (x->o->dir != NULL) {
		if ((r = wait_residual(x->o, &x->state, &x->res, sh, x->first,
		    e)) < 0 || (r = dense_check(&x->res.d, sh,
		    reader_schema(x->in), e)) < 0)
			goto out;
		s.flags |= SHARD_ERROR_FEEDBACK;
		r = text_set(&s.kv, SHARD_KEY_STAMP, x->res.d.stamp, e);
	}
	if (r == 0)
		r = filter_shard(x->in, x->out, &s, e);
	x->first = 0;
out:
	shard_release(&s);
	return r;
}

static int
expand_shard(struct run *x, struct err *e)
{
	const float *res;
	int r;

	if ((r = begin_shard(x, e)) < 0 ||
	    (r = values_begin(&x->v, x->in, e)) < 0)
		return r;
	while ((r = values_next(&x->v, e)) > 0) {
		if (x->cache != NULL && (r = feedback_cache_group(x->cache,
		    x->v.group, x->v.sent, x->v.x, x->v.n, e)) < 0)
			return r;
		if (x->o->dir != NULL) {
			if ((r = dense_group(&x->res.d, x->v.group, &res,
			    e)) < 0)
				return r;
			if (res != NULL)
				x->kern->add_scaled(x->v.x, x->v.x,
				    (float)x->o->gamma, res, x->v.n);
		}
		if ((r = writer_values(x->out, x->v.group, x->v.x, x->v.n,
		    e)) < 0)
			return r;
	}
	residual_close(&x->res);
	if (r == 0 && x->cache != NULL)
		r = feedback_cache_commit(x->cache, (enum io_sync)x->o->sync,
		    e);
	if (r == 0)
		writer_dropped(x->out,
		    reader_end_of_shard(x->in)->sums.dropped);
	return r < 0 ? r : writer_send(x->out, NULL, e);
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .state = STATE_INIT, .v = VALUES_INIT,
	    .first = 1 };
	int r;

	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	x.v.note = pass_note;
	x.v.arg = &x;
	x.v.differences = o->cache != NULL;
	if ((o->cache != NULL &&
	    (r = feedback_cache_open(&x.cache, o->cache, e)) < 0) ||
	    (o->dir != NULL && (r = state_open(&x.state, o->dir, e)) < 0) ||
	    (r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	filter_loose(x.in, x.out, 1);
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && (r = expand_shard(&x, e)) < 0)
			break;
	r = filter_end(x.out, r, e);
out:
	residual_close(&x.res);
	feedback_cache_free(x.cache);
	values_release(&x.v);
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-expand",
		.usage = "[-S DIR [--gamma G] [--wait TIME]] [--cache DIR] "
		    "[FILE]",
		.about = "Decodes a shard stream to dense; with -S adds the "
		    "residual of error feedback.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .gamma = 1, .wait = 60, .sync = IO_SYNC_FULL };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
