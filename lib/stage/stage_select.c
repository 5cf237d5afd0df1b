#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/estimate.h"
#include "format/annotation.h"
#include "format/keys.h"
#include "format/values.h"
#include "pipe/size.h"
#include "pipe/survey.h"
#include "stage/stage_select.h"
#include "sync/allot.h"
#include "sync/ratio.h"
#include "sync/select.h"

enum {
	STAGE_SELECT_PART = 65536,	/* most groups per annotation */
	/* with at most this many groups, stage_select_list lowers the bytes one by one */
	STAGE_SELECT_FEW = 64,
	/* announce a budget only if it exceeds an empty shard by this many bytes */
	STAGE_SELECT_SPARE = 1024
};

/* Parse codecs separated by commas; "ecq" or "tcq" without a step may take any step. */
static int
stage_select_levels(void *arg, const struct opt *row, const char *list, struct err *e)
{
	struct stage_select_opts *o = arg;
	uint32_t shared;
	char word[NUM_ITEM];
	int r;

	o->level[0] = (struct codec_plan){ CODEC_NONE, 0, 0 };
	o->shared = CODEC_NONE;
	for (o->m = 1; (r = num_item(&list, word, "--levels", e)) > 0;) {
		if (o->m > STAGE_SELECT_MOST)
			return err_set(e, ERR_USAGE, "--levels: expected at most %d "
			    "codecs, separated by commas", STAGE_SELECT_MOST);
		shared = codec_shares(word);
		if (shared != CODEC_NONE && o->shared != CODEC_NONE)
			return err_set(e, ERR_USAGE, "--levels: %s and %s both "
			    "choose their own step: name one of them",
			    codec_name(o->shared), word);
		if (shared != CODEC_NONE) {
			o->shared = shared;
			continue;
		}
		if ((r = codec_parse(word, &o->level[o->m], e)) < 0)
			return r;
		o->m += o->level[o->m].codec != CODEC_NONE;
	}
	return r < 0 ? r : o->m > 1 || o->shared != CODEC_NONE ? 0 :
	    err_set(e, ERR_USAGE, "--levels: no codec to choose from: "
	    "name one or more besides 'none', such as q8");
}

/* Parse "SHARE[=CODEC][@EVERY]": the most important groups up to the share get CODEC (default
 * f16), and each is sent once in EVERY steps (default 1). */
static int
stage_select_level(struct stage_select_upto *u, char *word, struct err *e)
{
	char *codec = strchr(word, '='), *every = strchr(word, '@');
	uint64_t n = 1;
	int r;

	if (codec != NULL)
		*codec++ = '\0';
	if (every != NULL)
		*every++ = '\0';
	r = every != NULL ? num_u64(&n, every, 1, UINT32_MAX, "-p: @N", e) : 0;
	u->every = (uint32_t)n;
	if (r < 0 || (r = codec_parse(codec != NULL ? codec : "f16", &u->codec,
	    e)) < 0)
		return r;
	return num_f64(&u->share, word, 0, 1, "-p", e);
}

/* Parse "0.5=f32,0.9=qsgd:4": items of stage_select_level in order of rising shares.  With
 * a leading "count:" these are shares of the values, not of the importance. */
static int
stage_select_shares(struct stage_select_opts *o, const char *list, struct err *e)
{
	static const char count[] = "count:";
	char word[NUM_ITEM];
	int r;

	o->shares = 0;
	o->count = strncmp(list, count, strlen(count)) == 0;
	list += o->count ? strlen(count) : 0;
	for (; (r = num_item(&list, word, "-p", e)) > 0; o->shares++) {
		if (o->shares == STAGE_SELECT_MOST)
			return err_set(e, ERR_USAGE, "-p: expected at most %d "
			    "shares, each with its codec, separated by commas",
			    STAGE_SELECT_MOST);
		if ((r = stage_select_level(&o->upto[o->shares], word, e)) < 0)
			break;
		if (o->shares > 0 && !(o->upto[o->shares].share >
		    o->upto[o->shares - 1].share))
			return err_set(e, ERR_USAGE, "-p: expected rising shares: %s "
			    "is not above the share before", word);
	}
	return r;
}

/* Set o->mode to the row's mode; -ERR_USAGE if another option has set a different mode. */
static int
stage_select_mode(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_select_opts *o = arg;
	const enum stage_select_mode mode = (enum stage_select_mode)row->value;

	if (o->mode != STAGE_SELECT_UNSAID && o->mode != mode)
		return err_set(e, ERR_USAGE, "-p, -b, --bits, --policy and --plan "
		    "exclude each other: give one");
	o->mode = mode;
	return 0;
}

static int
stage_select_by_share(void *arg, const struct opt *row, const char *val,
    struct err *e)
{
	struct stage_select_opts *o = arg;
	int r = stage_select_shares(o, val, e);

	return r < 0 ? r : stage_select_mode(o, row, val, e);
}

static int
stage_select_by_plan(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_select_opts *o = arg;
	int r = plan_text_read(&o->given, val, e);

	return r < 0 ? r : stage_select_mode(o, row, val, e);
}

const struct opt stage_select_rows[] = {
	{ 'b', "budget", "SIZE", "bytes for each shard, spent for the least "
	    "error", OPT_SIZE(struct stage_select_opts, bytes),
	    .set = stage_select_mode, .value = STAGE_SELECT_BYTES },
	{ 0, "bits", "N", "the same, in bits per value",
	    OPT_F64(struct stage_select_opts, bits, 0, 1e6),
	    .set = stage_select_mode, .value = STAGE_SELECT_BITS },
	{ 0, "policy", NULL, "use the budget that ace-policy decided",
	    OPT_CALL(stage_select_mode), .value = STAGE_SELECT_POLICY },
	{ 0, "levels", "LIST", "codecs to choose from, separated by commas",
	    OPT_CALL(stage_select_levels), .word = codec_word, .several = 1 },
	{ 0, "effort", "N", "from 6 on, search for codes of fewer bytes, which "
	    "takes longer",
	    OPT_U64(struct stage_select_opts, effort, 1, CODEC_EFFORT_MOST) },
	{ 'p', "share", "[count:]SHARE[=CODEC][@N],...",
	    "code groups with CODEC (default f16) up to that share of all importance; "
	    "the others are not sent", OPT_CALL(stage_select_by_share),
	    .value = STAGE_SELECT_SHARE },
	{ 0, "plan", "FILE", "use the plan in FILE, as --format text wrote it",
	    OPT_CALL(stage_select_by_plan), .value = STAGE_SELECT_GIVEN, .right = OPT_READ },
	OPT_END
};

static int
stage_select_budget(const struct stage_select_opts *o)
{
	return o->mode >= STAGE_SELECT_BYTES;
}

int
stage_select_waits(const struct stage_select_opts *o)
{
	size_t i;

	for (i = 0; i < o->shares; i++)
		if (o->upto[i].every > 1)
			return o->mode == STAGE_SELECT_SHARE;
	return 0;
}

struct stage_select {
	struct stage s;
	const struct stage_select_opts *o;
	struct codec_plan level[STAGE_SELECT_MOST + 1];
	size_t m;
	uint32_t shared;		/* codec of the groups with a common step */
	struct stage_shard sh;		/* the current shard */
	struct survey survey;
	uint64_t announced;		/* budget in bytes, announced before the plan, or 0 */
	uint8_t *dense;			/* [groups] 1: norms or biases, preferably dense */
	struct codec_plan *plan;	/* [groups] */
	size_t dense_cap, plan_cap;
	float *values;			/* [values_cap] values of one group */
	size_t values_cap;
	struct buf note;
};

static int
stage_select_put(struct stage_select *x, const struct note_terms *terms,
    struct err *e)
{
	uint32_t g, n, all = x->sh.schema->ngroups;
	int r = 0;

	for (g = 0; g < all && r == 0; g += n) {
		n = all - g < STAGE_SELECT_PART ? all - g : STAGE_SELECT_PART;
		x->note.n = 0;
		r = note_put_plan(&x->note, g, x->plan + g, n, terms, e);
		if (r == 0)
			r = stage_make(x->s.next, FRAME_PLAN, x->note.p,
			    x->note.n, e);
	}
	return r;
}

/* Write the plan of --plan, before the values. */
static int
stage_select_given(struct stage_select *x, struct err *e)
{
	const struct plan_text *t = &x->o->given;
	uint32_t g, all = x->sh.schema->ngroups;

	if (t->n > all)
		return err_set(e, ERR_DATA, "mismatch: the plan of --plan names group %zu, but %s "
		    "has %lu group%s, numbered from 0", t->n - 1, STAGE_NAME(&x->sh),
		    (unsigned long)all, all == 1 ? "" : "s");
	for (g = 0; g < all; g++)
		x->plan[g] = g < t->n ? t->p[g] : x->level[0];
	return stage_select_put(x, NULL, e);
}

static void
stage_select_roles(struct stage_select *x)
{
	const struct schema *sc = x->sh.schema;
	size_t t;

	for (t = 0; t < sc->n; t++)
		if (sc->t[t].ngroups != 0)
			memset(x->dense + sc->t[t].group,
			    (sc->t[t].roles & SCHEMA_ROLE_DENSE) != 0,
			    sc->t[t].ngroups);
}

static int
stage_select_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct stage_select *x = (struct stage_select *)s;
	const uint32_t n = sh->schema->ngroups;
	int r;

	x->sh = *sh;
	x->announced = 0;
	if ((r = alloc_grow(&x->dense, &x->dense_cap, n, 1, e)) < 0 ||
	    (r = alloc_grow(&x->plan, &x->plan_cap, n, sizeof(*x->plan),
	    e)) < 0 || (r = survey_begin(&x->survey, sh->schema, sh->in,
	    e)) < 0 || (r = stage_begin(s->next, sh, e)) < 0)
		return r;
	stage_select_roles(x);
	return x->o->mode == STAGE_SELECT_GIVEN ? stage_select_given(x, e) : 0;
}

/* Compute the statistics of a group from its values. */
static int
stage_select_stat(struct stage_select *x, const struct stage_data *d, size_t i,
    struct err *e)
{
	struct stage_seen v;
	size_t bad;
	int r = alloc_grow(&x->values, &x->values_cap,
	    x->sh.schema->group_size, sizeof(*x->values), e);

	if (r < 0 || (r = stage_read(d, i, x->sh.in, x->values, x->values_cap,
	    &v, e)) < 0)
		return r;
	bad = survey_values(&x->survey, d->rec[i].group, v.x, v.n);
	return bad == 0 ? 0 : values_refuse(x->sh.in, d->rec[i].group, bad - 1,
	    e);
}

static int
stage_select_policy(const struct survey *s, uint64_t *bytes, struct err *e)
{
	double v;
	int k = keys_whole(&s->policy, KEYS_BUDGET, bytes, "the policy", e);

	if (k != 0)
		return k < 0 ? k : 0;
	if ((k = keys_real(&s->policy, KEYS_RATIO, &v, "the policy", e)) < 0)
		return k;
	if (k == 0)
		return reader_place(s->in, err_set(e, ERR_USAGE, "no policy sets "
		    "a budget for the shard: put ace-policy before this program"), e);
	*bytes = ratio_budget(s->schema->total, v);
	return 0;
}

/* Set *bytes to the budget of the current shard.  With --policy, use the policy's key
 * budget_bytes or, without this key, its key ratio; -ERR_USAGE if it has neither. */
static int
stage_select_bytes(const struct stage_select *x, uint64_t *bytes, struct err *e)
{
	const struct stage_select_opts *o = x->o;

	if (o->mode == STAGE_SELECT_POLICY)
		return stage_select_policy(&x->survey, bytes, e);
	*bytes = o->mode == STAGE_SELECT_BYTES ? o->bytes :
	    (uint64_t)(o->bits * (double)x->sh.schema->total / 8);
	return 0;
}

/* Announce the budget by a plan without groups, so that segments can be coded before the
 * plan exists.  Do not announce a budget that hardly exceeds an empty shard: planning may
 * drop it. */
static int
stage_select_announce(struct stage_select *x, struct err *e)
{
	struct note_terms terms = { 0, 0 };
	struct size empty;
	int r;

	if ((r = stage_select_bytes(x, &terms.budget, e)) < 0 ||
	    (r = size_shard(&empty, x->sh.shard, e)) < 0 ||
	    terms.budget < size_send(&empty) + x->survey.notes + STAGE_SELECT_SPARE)
		return r;
	x->announced = terms.budget;
	x->note.n = 0;
	r = note_put_plan(&x->note, 0, x->plan, 0, &terms, e);
	return r < 0 ? r : stage_make(x->s.next, FRAME_PLAN, x->note.p, x->note.n, e);
}

static int
stage_select_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	struct stage_select *x = (struct stage_select *)s;
	size_t i;
	int r;

	if (d->cut && stage_select_budget(x->o) && x->announced == 0 &&
	    (r = stage_select_announce(x, e)) < 0)
		return r;
	if ((r = stage_data(s->next, d, e)) < 0 || !stage_select_budget(x->o))
		return r;
	for (i = 0; i < d->n && r == 0; i++) {
		survey_sent(&x->survey, d->rec[i].group);
		if (survey_lacks(&x->survey, d->rec[i].group))
			r = stage_select_stat(x, d, i, e);
	}
	return r;
}

/* Pass on annotations except plans and signatures of earlier programs. */
static int
stage_select_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	struct stage_select *x = (struct stage_select *)s;
	struct buf b = BUF_INIT;
	size_t wire = 0;
	int r = 0;

	/* count an annotation made by a stage of ace-step at its packed size, as in a pipe */
	if (n->whole != NULL)
		wire = reader_frame(n->whole)->wire_len;
	else
		r = writer_pack(&b, n->p, n->n, &wire, e);
	buf_release(&b);
	if (r < 0 || (r = survey_note(&x->survey, n->type, n->p, n->n,
	    wire != 0 ? wire : n->n, e)) < 0)
		return r;
	return n->type == FRAME_PLAN || n->type == FRAME_SIGN ? 0 :
	    stage_note(s->next, n, e);
}

static void
stage_select_ctx(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	const struct stage_select *x = arg;

	values_ctx(x->sh.schema, x->sh.shard, g, ctx);
}

/* Report what the plan sends, and warn if the budget is too small. */
static void
stage_select_say(const struct stage_select *x, const struct allot *a,
    uint64_t budget, uint64_t exact)
{
	const char *const who = STAGE_NAME(&x->sh);

	if (a->sent == 0 && a->energy > 0) {
		cli_say(x->o->f->cli, 0, "%s: a budget of %llu byte%s is too small "
		    "for any group%s", who, (unsigned long long)budget,
		    budget == 1 ? "" : "s", exact != 0 ? " except those that are "
		    "coded without loss, whose size is only estimated" :
		    x->o->kept > 0 ? ": an empty shard is sent, and the residual keeps all" :
		    x->o->kept < 0 ? ": an empty shard is sent, and without -S nothing is kept" :
		    ": an empty shard is sent (ace-compress keeps the values only with -S)");
		return;
	}
	cli_say(x->o->f->cli, 1, "%s: %zu of %lu groups, %.0f of %llu bytes "
	    "estimated, distortion %.6g of %.6g, step %.6g, lambda %.6g%s", who,
	    a->sent, (unsigned long)a->n, a->bytes,
	    (unsigned long long)budget, a->dist, a->energy, a->step, a->price,
	    a->floor ? ", norms and biases dense" : "");
}

/* ---- a list of codecs without a free step: the knapsack ---- */

/* Set level[n][m]: for each group the bytes and weighted error if it is not sent, and with
 * each codec.  floor 1: only dense codecs, if one is usable, for norms and biases. */
static void
stage_select_choices(struct stage_select *x, int floor, struct select_level *level)
{
	const struct stat_group *s = x->survey.stat;
	struct select_level *row = level, *l;
	struct codec_ctx ctx;
	struct estimate m;
	double error, weight;
	int64_t body;
	uint32_t g;
	size_t i, can;

	for (g = 0; g < x->survey.n; g++, row += x->m) {
		weight = (double)x->survey.score[g];
		stage_select_ctx(x, g, &ctx);
		estimate_init(&m, &s[g], &ctx);
		row[0] = (struct select_level){ 0, weight * (double)s[g].sumsq };
		for (can = 0, i = 1; i < x->m; i++) {
			l = &row[i];
			estimate_coding(&m, &x->level[i], &body, &error);
			l->bytes = (int64_t)size_cost(x->level[i].codec,
			    (size_t)body, codec_param(&x->level[i]) < 0);
			if (!(error >= 0) || s[g].nonzero == 0)
				l->bytes = -1;
			l->dist = weight * error;
			can += codec_dense(&x->level[i]) && select_usable(l);
		}
		for (i = 0; i < x->m && floor && x->dense[g] && can > 0; i++)
			if (i == 0 || !codec_dense(&x->level[i]))
				row[i].bytes = -1;
	}
}

/* Estimate the bytes of the coded shard as ace-compress counts them. */
static uint64_t
stage_select_size(struct stage_select *x, const struct size *empty)
{
	struct size z = *empty;
	struct codec_ctx ctx;
	struct estimate m;
	double error;
	int64_t body;
	uint32_t g;
	int param;

	for (g = 0; g < x->sh.schema->ngroups; g++) {
		if (x->plan[g].codec == CODEC_NONE)
			continue;
		stage_select_ctx(x, g, &ctx);
		estimate_init(&m, &x->survey.stat[g], &ctx);
		estimate_coding(&m, &x->plan[g], &body, &error);
		param = codec_param(&x->plan[g]);
		size_record(&z, g, x->plan[g].codec, param < 0 ?
		    (uint8_t)~z.param : (uint8_t)param, (size_t)body);
	}
	return size_send(&z) + x->survey.notes;
}

/* Set x->plan to levels for at most a->budget bytes of records, and set the totals in a.
 * choice: scratch.  Return 1 if the smallest levels exceed that; they are then the plan. */
static int
stage_select_choose(struct stage_select *x, struct allot *a,
    const struct select_level *level, uint8_t *choice, struct err *e)
{
	const int64_t room = a->budget < 0 ? 0 : a->budget < 9e18 ?
	    (int64_t)a->budget : INT64_MAX;
	struct select_result res;
	size_t g;
	int r = select_budget(level, a->n, x->m, room, choice, &res, e);

	if (r < 0)
		return r;
	a->price = res.lambda;
	a->bytes = (double)res.bytes;
	a->dist = res.dist;
	a->sent = 0;
	for (g = 0; g < a->n; g++) {
		x->plan[g] = x->level[choice[g]];
		a->sent += choice[g] != 0;
	}
	return r;
}

/* In a shard of one frame, padding adds fewer bytes than this to the records. */
enum { STAGE_SELECT_PAD = 16 };

/* Find the plan with the least error within the budget. The shard's size includes frames,
 * padding, and longer directory entries after groups that are not sent. So reduce the bytes
 * for records until the shard fits; if it has few groups, byte by byte in the end. */
static int
stage_select_list(struct stage_select *x, struct allot *a,
    const struct size *empty, uint64_t budget, struct err *e)
{
	struct select_level *level = alloc_get(a->n, x->m * sizeof(*level), e);
	uint8_t *choice = alloc_get(a->n, 1, e);
	uint64_t size = 0;
	int r = level != NULL && choice != NULL ? 0 : -ERR_SYS;
	size_t g;

	for (g = 0; g < a->n; g++)
		a->energy += (double)a->weight[g] * (double)a->stat[g].sumsq;
	a->floor = 1;
	a->budget += (double)STAGE_SELECT_PAD;
	if (r == 0)
		stage_select_choices(x, 1, level);
	while (r == 0) {
		r = stage_select_choose(x, a, level, choice, e);
		if (r == 1 && a->floor) {
			/* the budget is too small to keep norms and biases dense */
			a->floor = 0;
			stage_select_choices(x, 0, level);
			r = 0;
			continue;
		}
		size = stage_select_size(x, empty);
		if (r != 0 || size <= budget || a->sent == 0)
			break;
		size -= budget;
		if (a->n <= STAGE_SELECT_FEW)
			size = size > STAGE_SELECT_PAD ? size - STAGE_SELECT_PAD : 1;
		a->budget = a->bytes - (double)size;
	}
	alloc_free(level);
	alloc_free(choice);
	return r < 0 ? r : 0;
}

/* ---- the plan of a budget ---- */

/* Leave groups of exact types (schema_exact) out of planning, since they are always sent
 * without loss.  Return their approximate bytes. */
static uint64_t
stage_select_exact(struct stage_select *x)
{
	struct stat_group *s = x->survey.stat;
	uint64_t bytes = 0;
	uint32_t g;

	for (g = 0; g < x->survey.n; g++) {
		if (!schema_exact_group(x->sh.schema, g))
			continue;
		if (s[g].nonzero != 0)	/* estimate: each value takes the bits of the largest */
			bytes += size_cost(CODEC_EXACT, (size_t)(s[g].n *
			    (2 + fmin(log2(1 + (double)s[g].max_abs), 30)) / 8),
			    1);
		s[g] = (struct stat_group){ .n = 0 };
		x->survey.score[g] = 0;
	}
	return bytes;
}

static int
stage_select_least(struct stage_select *x, struct err *e)
{
	struct survey *s = &x->survey;
	struct allot a = { .n = s->n, .stat = s->stat, .weight = s->score,
	    .dense = x->dense, .shared = x->shared,
	    .other = x->level + 1, .m = x->m - 1, .cost = size_cost,
	    .ctx = stage_select_ctx, .arg = x, .plan = x->plan };
	struct note_terms terms;
	struct size empty, z;
	uint64_t budget, exact;
	uint32_t g;
	int r;

	budget = x->announced;
	if ((budget == 0 && (r = stage_select_bytes(x, &budget, e)) < 0) ||
	    (r = size_shard(&empty, x->sh.shard, e)) < 0)
		return r;
	z = empty;
	size_record(&z, 0, 0, 0, 0);
	exact = stage_select_exact(x);
	a.budget = (double)budget - (double)(size_send(&z) + s->notes + exact);
	r = x->shared != CODEC_NONE ? allot_plan(&a, e) :
	    stage_select_list(x, &a, &empty, budget > exact ? budget - exact : 0,
	    e);
	if (r < 0)
		return r;
	for (g = 0; g < s->n; g++)
		if ((s->have[g] & SURVEY_SENT) != 0)
			x->plan[g] = values_plan(x->sh.schema, g, x->plan[g]);
	/* A policy does not know how many bytes an empty shard takes.  If its budget is too small
	 * for any group, send none, but do not end the run with an error.  ace-compress refuses
	 * other budgets below that size. */
	if (x->o->mode == STAGE_SELECT_POLICY || budget >= size_send(&empty) + s->notes)
		stage_select_say(x, &a, budget, exact);
	terms.budget = budget > 0 ? budget : 1;	/* 0 would mean no limit */
	if (x->o->mode == STAGE_SELECT_POLICY && a.sent == 0 && x->announced == 0) {
		terms.budget = 0;
		for (g = 0; g < s->n; g++)
			x->plan[g] = x->level[0];
	}
	terms.price = a.price;
	return stage_select_put(x, &terms, e);
}

static int
stage_select_share(struct stage_select *x, struct err *e)
{
	const struct stage_select_opts *o = x->o;
	uint32_t g, n = x->sh.schema->ngroups, *size = NULL;
	uint8_t *chosen = alloc_get(n, 1, e);
	const struct stage_select_upto *u;
	struct schema_span span;
	size_t sent = 0;
	int r = chosen != NULL ? 0 : -ERR_SYS;

	if (r == 0 && o->count && (size = alloc_get(n, sizeof(*size), e)) == NULL)
		r = -ERR_SYS;
	for (g = 0; g < n; g++)
		x->plan[g] = x->level[0];
	for (g = 0; g < n; g++) {
		schema_span(x->sh.schema, g, &span);
		if (size != NULL)
			size[g] = (uint32_t)span.n;
		/* exact types are sent whatever their importance */
		if (schema_exact(x->sh.schema->t[span.tensor].dtype)) {
			x->survey.score[g] = 0;
			if (size != NULL)
				size[g] = 0;
		}
	}
	/* begin with the largest share; the plans of smaller shares overwrite it */
	for (u = o->upto + o->shares; u-- > o->upto && r == 0; ) {
		r = select_share(x->survey.score, x->survey.stat, size, n,
		    u->share, chosen, e);
		for (g = 0; r == 0 && g < n; g++) {
			/* spread the groups over `every' steps */
			if (chosen[g])
				x->plan[g] = (x->sh.shard->step + g) % u->every
				    == 0 ? u->codec : x->level[0];
			sent += chosen[g] && u == o->upto + o->shares - 1;
		}
	}
	alloc_free(size);
	alloc_free(chosen);
	if (r < 0)
		return r;
	cli_say(o->f->cli, 1, "%s: %zu of %lu groups chosen, with at least %g of the %s",
	    STAGE_NAME(&x->sh), sent, (unsigned long)n,
	    o->upto[o->shares - 1].share, o->count ? "values" : "importance");
	return stage_select_put(x, NULL, e);
}

static int
stage_select_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	struct stage_select *x = (struct stage_select *)s;
	int r = 0;

	if (stage_select_budget(x->o))
		r = stage_select_least(x, e);
	if (r == 0 && x->o->mode == STAGE_SELECT_SHARE)
		r = stage_select_share(x, e);
	return r < 0 ? r : stage_end(s->next, sums, e);
}

static void
stage_select_free(struct stage *s)
{
	struct stage_select *x = (struct stage_select *)s;

	survey_release(&x->survey);
	alloc_free(x->dense);
	alloc_free(x->plan);
	alloc_free(x->values);
	buf_release(&x->note);
}

static int
stage_select_check(const void *opts, struct err *e)
{
	const struct stage_select_opts *o = opts;

	if (o->mode == STAGE_SELECT_UNSAID)
		return err_set(e, ERR_USAGE, "the budget is missing: give -p, -b, "
		    "--bits, --policy or --plan");
	if ((o->effort != 0) + (o->m > 0) > stage_select_budget(o))
		return err_set(e, ERR_USAGE, "--effort and --levels need -b, --bits or "
		    "--policy, and exclude each other");
	return 0;
}

static int
stage_select_make(struct stage *s, void *opts, const struct filter *f, struct err *e)
{
	struct stage_select_opts *o = opts;
	static const struct codec_plan usual[] = { { CODEC_NONE, 0, 0 },
	    { CODEC_Q8, 0, 0 }, { CODEC_F16, 0, 0 }, { CODEC_F32, 0, 0 } };
	struct stage_select *x = (struct stage_select *)s;

	x->survey = (struct survey)SURVEY_INIT;
	o->f = f;
	x->o = o;
	x->m = o->m > 0 ? o->m : sizeof(usual) / sizeof(*usual);
	x->shared = o->m > 0 ? o->shared : codec_shared(o->effort != 0 ?
	    (unsigned)o->effort : CODEC_EFFORT);
	memcpy(x->level, o->m > 0 ? o->level : usual, x->m * sizeof(*usual));
	return 0;
}

const struct stage_kind stage_select = {
	.size = sizeof(struct stage_select),
	.values = STAGE_READS,
	.check = stage_select_check,
	.make = stage_select_make,
	.begin = stage_select_begin,
	.data = stage_select_data,
	.note = stage_select_note,
	.end = stage_select_end,
	.free = stage_select_free
};
