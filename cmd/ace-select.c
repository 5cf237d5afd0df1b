/*
 * ace-select: one codec for every group, as an annotation.  Equation (2) of
 * ACE-Sync (the most important groups up to a share of all importance), or the
 * knapsack: least weighted error within a number of bytes.
 *
 * Two passes where the input can be read again: then the plan stands before
 * the data and its size was measured.  Otherwise one pass: the plan of a frame
 * follows it, at a price of a byte that is corrected as the budget is spent.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/state.h"
#include "format/plan_text.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/chooser.h"
#include "stage/flow.h"
#include "stage/twice.h"
#include "sync/fit.h"

#define LEVELS "ecq,q8,f16,f32"

enum {
	OPT_BITS = CLI_LONG, OPT_POLICY, OPT_LEVELS, OPT_MEMORY, OPT_KEEP,
	OPT_REST, OPT_REST_SHARE, OPT_PASSES, OPT_PLAN, OPT_TEXT, OPT_SECONDS,
	OPT_ROLES
};
static const struct cli_opt options[] = {
	{ 'p', "share", "FRACTION", "keep the groups with this share of all "
	    "importance" },
	{ 'b', "budget", "SIZE", "least error in so many bytes a shard" },
	{ OPT_BITS, "bits", "N", "the same, N bits a value" },
	{ OPT_SECONDS, "seconds", "TIME",
	    "the same, what the link carries in TIME" },
	{ OPT_POLICY, "policy", NULL, "the same, as ace-policy says" },
	{ OPT_LEVELS, "levels", "LIST", "codecs to choose from, by commas" },
	{ OPT_KEEP, "keep", "CODEC", "with -p: of those kept (default f16)" },
	{ OPT_REST, "rest", "CODEC", "with -p: of the others (default none)" },
	{ OPT_REST_SHARE, "rest-share", "FRACTION", "with -p: share up to "
	    "which --rest holds; beyond, none" },
	{ OPT_ROLES, "roles", "HOW",
	    "keep (default) norms and biases dense, or ignore that" },
	{ OPT_PLAN, "plan", "FILE", "the plan in FILE, as --text wrote it" },
	{ OPT_TEXT, "text", NULL, "write the plan as text, not the stream" },
	{ OPT_MEMORY, "memory", "SIZE",
	    "hold shards up to SIZE for a second pass (default 256Mi)" },
	{ OPT_PASSES, "one-pass", NULL, "never read the input twice" },
	{ 'S', "state", "DIR", "keep the price of a byte in DIR" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

enum mode { MODE_NONE, MODE_SHARE, MODE_BUDGET, MODE_PLAN };

struct opts {
	struct filter f;
	const struct cli *cli;
	const char *dir;
	enum mode mode;
	int key;			/* the option that said so */
	struct twice_share share;
	struct plan_text given;		/* --plan */
	int one_pass, text;
	struct chooser c;		/* its levels, budget and memory */
};

static int
set_mode(struct opts *o, int key, enum mode mode, struct err *e)
{
	if (o->mode != MODE_NONE && o->key != key)
		return err_set(e, ERR_USAGE,
		    "one of -p, -b, --bits, --seconds, --policy and --plan");
	o->mode = mode;
	o->key = key;
	return 0;
}

static int
set_budget(struct opts *o, int key, const char *val, struct err *e)
{
	struct budget *b = &o->c.want;
	int r;

	switch (key) {
	case 'b':
		b->by = BUDGET_BYTES;
		r = num_size(&b->bytes, val, "-b", e);
		break;
	case OPT_BITS:
		b->by = BUDGET_BITS;
		r = num_f64(&b->bits, val, 0, 64, "--bits", e);
		break;
	case OPT_SECONDS:
		b->by = BUDGET_SECONDS;
		r = num_time(&b->seconds, val, "--seconds", e);
		break;
	default:
		b->by = BUDGET_POLICY;
		r = 0;
	}
	return r < 0 ? r : set_mode(o, key, MODE_BUDGET, e);
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const roles[] = { "keep", "ignore", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case OPT_ROLES:
		return num_choice(&o->c.no_roles, val, roles, "--roles", e);
	case 'p':
		r = num_f64(&o->share.share, val, 0, 1, "-p", e);
		return r < 0 ? r : set_mode(o, key, MODE_SHARE, e);
	case 'b':
	case OPT_BITS:
	case OPT_SECONDS:
	case OPT_POLICY:
		return set_budget(o, key, val, e);
	case OPT_PLAN:
		r = plan_text_read(&o->given, val, e);
		return r < 0 ? r : set_mode(o, key, MODE_PLAN, e);
	case OPT_TEXT:
		o->text = 1;
		return 0;
	case OPT_REST_SHARE:
		return num_f64(&o->share.rest_share, val, 0, 1,
		    "--rest-share", e);
	case OPT_LEVELS:
		return fit_levels(o->c.level, &o->c.m, &o->c.ladder, val,
		    "--levels", e);
	case OPT_KEEP:
		return codec_parse(val, &o->share.keep, e);
	case OPT_REST:
		return codec_parse(val, &o->share.rest, e);
	case OPT_MEMORY:
		return num_size(&o->c.memory, val, "--memory", e);
	case OPT_PASSES:
		o->one_pass = 1;
		return 0;
	case 'S':
		o->dir = val;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* ---- what there is to say of a shard ---- */

/* "shard 'edge1/42'": for what is said at its end. */
static const char *
name(const struct chooser *c, char buf[160])
{
	const struct shard *s = reader_shard(c->to.in);

	(void)snprintf(buf, 160, "shard '%.100s/%llu'", shard_device(s),
	    (unsigned long long)s->step);
	return buf;
}

static void
say_two(const struct opts *o)
{
	const struct chooser_found *f = &o->c.found;
	char who[160];

	(void)name(&o->c, who);
	if (f->relaxed && f->sent > 0)
		cli_say(o->cli, 0, "%s: too few bytes to keep norms and "
		    "biases dense", who);
	if (f->sent == 0 && f->energy > 0) {
		cli_say(o->cli, 0, "%s: %llu bytes are too few for any "
		    "group: nothing is sent, all is kept", who,
		    (unsigned long long)f->budget);
		return;
	}
	cli_say(o->cli, 1, "%s: %zu of %lu groups, %llu of %llu bytes, "
	    "D %.6g of %.6g, bound %.6g, gap %.4g %%%s, lambda %.6g", who,
	    f->sent, (unsigned long)o->c.survey.n,
	    (unsigned long long)f->bytes, (unsigned long long)f->budget,
	    f->dist, f->energy, f->res.bound, 100 * select_gap(&f->res),
	    f->res.exact ? " (proved best)" : "", f->res.lambda);
}

static void
say_one(const struct opts *o)
{
	const struct chooser_found *f = &o->c.found;
	char who[160];

	cli_say(o->cli, 1, "%s: one pass, %llu of %llu bytes, D %.6g of "
	    "%.6g", name(&o->c, who), (unsigned long long)f->bytes,
	    (unsigned long long)f->budget, f->dist, f->energy);
}

static void
say_share(const struct opts *o)
{
	char who[160];

	cli_say(o->cli, 1, "%s: %zu of %lu groups hold %g of the importance",
	    name(&o->c, who), o->c.found.sent, (unsigned long)o->c.survey.n,
	    o->share.share);
}

/* ---- all shards ---- */

static int
select_shard(struct opts *o, struct flow *flow, struct err *e)
{
	struct chooser *c = &o->c;
	int r, held = !o->one_pass && chooser_held(c);

	if ((r = chooser_begin(c, e)) < 0)
		return r;
	if (o->mode == MODE_PLAN)
		return twice_given(c, &o->given, e);
	if (o->mode == MODE_SHARE) {
		if (!held)
			return err_set(e, ERR_REFUSED, "a share of the "
			    "importance needs the whole shard: it does not "
			    "fit --memory");
		if ((r = twice_share(c, &o->share, e)) == 0)
			say_share(o);
		return r;
	}
	if (!held) {
		if ((r = flow_shard(flow, o->f.tool, e)) == 0)
			say_one(o);
	} else if ((r = twice_budget(c, e)) == 0) {
		say_two(o);
	}
	return r;
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct chooser *c = &o->c;
	struct state state = STATE_INIT;
	struct flow *flow = NULL;
	int r;

	if (o->mode == MODE_NONE)
		return err_set(e, ERR_USAGE,
		    "how much to send: -p, -b, --bits, --seconds, --policy "
		    "or --plan");
	if (o->dir != NULL) {
		c->state = &state;
		if ((r = state_open(&state, o->dir, e)) < 0)
			goto out;
	}
	if ((r = flow_new(&flow, c, e)) < 0 ||
	    (r = filter_in(&o->f, &c->to.in, path, e)) < 0 ||
	    (r = o->text ? io_create(&c->to.text, o->f.output, 1, e) :
	    filter_out(&o->f, &c->to.out, e)) < 0)
		goto out;
	if (c->to.out != NULL)
		filter_loose(c->to.in, c->to.out, 0);
	while ((r = reader_next(c->to.in, e)) > 0)
		if (r == READER_SHARD && (r = select_shard(o, flow, e)) < 0)
			break;
	r = planned_end(&c->to, r, e);
out:
	flow_free(flow);
	reader_free(c->to.in);
	chooser_release(c);
	state_close(&state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-select",
		.usage = "-p FRACTION | -b SIZE | --bits N | --seconds TIME | "
		    "--policy | --plan FILE\n    [--levels LIST] [--text] "
		    "[FILE]",
		.about = "Chooses a codec for every group of a shard stream.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .cli = &c, .c = CHOOSER_INIT,
	    .share = { 0, 1, { CODEC_F16, 0, 0 }, { CODEC_NONE, 0, 0 } } };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	o.c.memory = (uint64_t)256 << 20;
	if ((r = set(&o, OPT_LEVELS, LEVELS, &e)) == 0)
		r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	plan_text_release(&o.given);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
