#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/pool.h"
#include "device/contraction.h"
#include "device/shares.h"
#include "format/annotation.h"
#include "format/values.h"
#include "format/writer.h"
#include "kern/kern.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "pipe/size.h"
#include "stage/coding.h"
#include "stage/stage_compress.h"

/* Parse "ef", "cache:0.9" or "ef:0.9:raw".  The number is gamma for ef and rho for cache.
 * ":raw" sets o->raw. */
static int
stage_compress_feedback(void *arg, const struct opt *row, const char *val,
    struct err *e)
{
	struct stage_compress_opts *o = arg;
	struct feedback_opts *fb = &o->fb;
	static const char raw[] = ":raw";
	char word[48], *number;
	size_t n = strlen(val);
	double *to;
	int k, r;

	if (n >= sizeof(word))
		return err_set(e, ERR_USAGE, "--error-feedback '%s': expected at most %zu "
		    "characters: ef[:GAMMA][:raw] or cache[:RHO][:raw]", val,
		    sizeof(word) - 1);
	memcpy(word, val, n + 1);
	o->raw = n >= sizeof(raw) && strcmp(word + n + 1 - sizeof(raw), raw) == 0;
	if (o->raw)
		word[n + 1 - sizeof(raw)] = '\0';
	if ((number = strchr(word, ':')) != NULL)
		*number = '\0';
	fb->gamma = 1;		/* keep nothing of an earlier option */
	fb->decay = 0.9;
	if ((r = num_choice(&k, word, feedback_names, "--error-feedback",
	    e)) < 0)
		return r;
	fb->kind = (enum feedback_kind)k;
	if (number == NULL)
		return 0;
	to = fb->kind == FEEDBACK_EF ? &fb->gamma : &fb->decay;
	return num_f64(to, number + 1, 0, 1, "--error-feedback", e);
}

static int
stage_compress_codec(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_compress_opts *o = arg;

	o->have_codec = 1;
	return codec_parse(val, &o->codec, e);
}

const struct opt stage_compress_rows[] = {
	{ 'S', "state", "DIR", "keep the residual and the coded shard in DIR",
	    OPT_PATH(struct stage_compress_opts, dir, OPT_DIR) },
	{ 'c', "codec", "CODEC", "code all groups with CODEC, whatever the "
	    "plan says", OPT_CALL(stage_compress_codec), .word = codec_word },
	{ 0, "error-feedback", "HOW", "ef[:G] or cache[:R]; :raw",
	    OPT_CALL(stage_compress_feedback), .words = feedback_names,
	    .def = "ef", .with = "state" },
	{ 0, "window", "N", "let at most N shards be without a receipt",
	    OPT_U64(struct stage_compress_opts, fb.window, 1, 8), .with = "state" },
	{ 0, "wait", "TIME", "how long to wait for a receipt",
	    OPT_TIME(struct stage_compress_opts, fb.wait), .def = "60s",
	    .with = "state" },
	{ 0, "allow-gap", NULL, "accept a shard even if steps before it are "
	    "missing",
	    OPT_FLAG(struct stage_compress_opts, fb.gap), .with = "state" },
	OPT_END
};

struct stage_compress {
	struct stage s;
	const struct stage_compress_opts *o;
	struct writer *out;
	struct writer *to;		/* writer of this shard: `out' or one of the state */
	struct feedback *fb;		/* NULL: no error feedback */
	int resumed;
	struct stage_shard sh;		/* the current shard */
	int again;			/* 1: the state already has this shard, coded */
	struct note_wait plan;
	uint64_t budget;		/* the plan's, in bytes; 0: no limit */
	uint32_t done;			/* groups below this number have arrived or are absent */
	float *v;
	size_t cap;
	struct pool *pool;
	struct coding coding;		/* current groups */
	struct shares shares;		/* shares of the budget, if there are cuts */
	uint32_t left;			/* groups below this number were sent in segments */
	uint64_t sent, none;
	uint64_t at;			/* position of the shard in out */
};

/* Finish a group that was coded or left out: store its coding error in the residual and
 * write its code. */
static int
stage_compress_settle(void *arg, struct coding_slot *w, struct err *e)
{
	struct stage_compress *x = arg;
	struct feedback_code *c = &w->code;

	x->sent += c->sent != 0;
	x->none += c->sent == 0;
	if (x->shares.on)
		shares_coded(&x->shares, w->group, &w->plan, c->sent ?
		    c->body.n : 0, c->target.nonzero != 0 ? w->n : 0);
	if (x->fb != NULL)
		return feedback_settle(x->fb, w->group, w->acc, w->n, c, e);
	return c->sent == 0 ? 0 : writer_record_seen(x->out, w->group, c->codec,
	    c->param, c->body.p, c->body.n, &c->decoded, w->n, e);
}

/* Add the group in slot w, to be coded by plan p. */
static int
stage_compress_add(struct stage_compress *x, struct coding_slot *w,
    const struct codec_plan *p, struct err *e)
{
	w->plan = values_plan(x->sh.schema, w->group, *p);
	return coding_add(&x->coding, e);
}

/* Return the plan of group g for -c. Norms and biases get f16 instead of a sparse codec,
 * because they are small and important. */
static struct codec_plan
stage_compress_one(const struct stage_compress *x, uint32_t g)
{
	const struct schema *sc = x->sh.schema;
	struct schema_span span;
	int dense;

	schema_span(sc, g, &span);
	dense = (sc->t[span.tensor].roles & SCHEMA_ROLE_DENSE) != 0;
	if (dense && codec_sparse(&x->o->codec))
		return (struct codec_plan){ CODEC_F16, 0, 0 };
	return x->o->codec;
}

static int
stage_compress_known(const struct stage_compress *x, uint32_t g)
{
	return x->o->have_codec || (x->budget == 0 && note_wait_has(&x->plan, g));
}

/* Return the plan of group g; its codec is CODEC_NONE if there is none. */
static struct codec_plan
stage_compress_plan(struct stage_compress *x, uint32_t g)
{
	struct codec_plan p = { CODEC_NONE, 0, 0 };

	if (x->o->have_codec)
		return stage_compress_one(x, g);
	(void)note_wait_get(&x->plan, g, &p);
	return p;
}

/* Code and write the first k waiting groups, and remove them from the queue. */
static int
stage_compress_first(struct stage_compress *x, size_t k, struct err *e)
{
	struct coding_slot *w;
	struct codec_plan p;
	size_t i;
	int r;

	if (k == 0)
		return 0;
	if ((r = coding_settled(&x->coding, e)) < 0)
		return r;
	for (i = 0; i < k; i++) {
		w = coding_slot(&x->coding);
		if ((r = coding_get(&x->coding, i, w, e)) < 0)
			return r;
		p = stage_compress_plan(x, w->group);
		if ((r = stage_compress_add(x, w, &p, e)) < 0)
			return r;
	}
	/* code before coding_drop, since groups may be coded in the memory where they
	 * wait */
	r = coding_run(&x->coding, e);
	coding_drop(&x->coding, k);
	return r;
}

/* Code the waiting groups up to the first one whose plan is not known.  A group that is
 * absent from the input is coded with the next present group. */
static int
stage_compress_flush(struct stage_compress *x, struct err *e)
{
	size_t i, k = 0;

	for (i = 0; i < x->coding.n; i++) {
		if (x->coding.g[i].absent)
			continue;
		if (!stage_compress_known(x, x->coding.g[i].group))
			break;
		k = i + 1;
	}
	return stage_compress_first(x, k, e);
}

/* Code group g, or queue it if its plan is not known or other groups wait.  v NULL: the input
 * does not have the group, so code only its residual. */
static int
stage_compress_group(struct stage_compress *x, uint32_t g,
    const struct stage_seen *v, struct err *e)
{
	struct coding_slot *w = coding_slot(&x->coding);
	struct schema_span span;
	struct codec_plan p;
	int r, waits;

	schema_span(x->sh.schema, g, &span);
	w->group = g;
	w->n = span.n;
	waits = x->coding.n > 0 || !stage_compress_known(x, g);
	if (waits && (r = coding_next(&x->coding, w, e)) < 0)
		return r;
	if (x->fb != NULL) {
		r = feedback_target(x->fb, g, v != NULL ? v->x : NULL, span.n,
		    w->acc, e);
		if (r != 0)
			return r < 0 ? r : 0;
	} else if (v != NULL) {
		memcpy(w->acc, v->x, span.n * sizeof(*v->x));
	} else {
		return 0;
	}
	if (v != NULL && (x->fb == NULL || feedback_plain(x->fb))) {
		w->code.target = v->stat;
		w->seen = 1;
	}
	if (waits)
		return coding_put(&x->coding, w, v == NULL, e);
	p = stage_compress_plan(x, g);
	return stage_compress_add(x, w, &p, e);
}

/* Code or queue all groups before g as absent; then g itself, unless v is NULL. */
static int
stage_compress_upto(struct stage_compress *x, uint32_t g,
    const struct stage_seen *v, struct err *e)
{
	int r = 0;

	while (x->done < g && r == 0)
		r = stage_compress_group(x, x->done++, NULL, e);
	if (r == 0 && v != NULL)
		r = stage_compress_group(x, x->done++, v, e);
	return r;
}

/* ---- segments of a budget ---- */

enum {
	STAGE_COMPRESS_LATE = 256,	/* bytes reserved for annotations at the end */
	STAGE_COMPRESS_LEAST = 1024	/* a smaller segment is sent with the next one,
					 * since the frame itself takes about 100 bytes */
};

/* Add all waiting groups with the codes that coding_fit has chosen.  The last ones are written
 * only by coding_run. */
static int
stage_compress_fitted(struct stage_compress *x, struct err *e)
{
	struct coding *q = &x->coding;
	struct coding_slot *w;
	size_t i;
	int r;

	for (i = 0; i < q->n; i++) {
		w = coding_slot(q);
		if ((r = coding_get(q, i, w, e)) < 0 ||
		    (r = coding_code(q, i, w, e)) < 0 || (r = coding_add(q, e)) < 0)
			return r;
	}
	return 0;
}

/* Return the most bytes that the bodies of waiting groups sent without loss can take. */
static uint64_t
stage_compress_exact(const struct stage_compress *x)
{
	static const struct codec_plan exact = { CODEC_EXACT, 0, 0 };
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < x->coding.n; i++)
		if (schema_exact_group(x->sh.schema, x->coding.g[i].group))
			most += codec_bound(&exact, x->coding.g[i].n);
	return most;
}

/* Return the most bytes that groups sent without loss which have not arrived yet can take. */
static uint64_t
stage_compress_later(const struct stage_compress *x)
{
	static const struct codec_plan exact = { CODEC_EXACT, 0, 0 };
	struct schema_span span;
	uint64_t most = 0;
	uint32_t g;
	size_t i;

	for (i = 0; i < x->sh.schema->n && !schema_exact(x->sh.schema->t[i].dtype); i++)
		continue;
	if (i == x->sh.schema->n)
		return 0;

	for (g = x->done; g < x->sh.schema->ngroups; g++)
		if (schema_exact_group(x->sh.schema, g)) {
			schema_span(x->sh.schema, g, &span);
			most += size_cost(CODEC_EXACT, codec_bound(&exact, span.n), 1);
		}
	return most;
}

/* Return the bytes of the remaining budget that the waiting groups get.  Set *bytes to the
 * sum of their bytes in x->shares. */
static uint64_t
stage_compress_share(const struct stage_compress *x, uint64_t spent, double *bytes)
{
	size_t i;

	*bytes = 0;
	for (i = 0; i < x->coding.n; i++)
		*bytes += x->shares.of[x->coding.g[i].group].bytes;
	spent += STAGE_COMPRESS_LATE + stage_compress_later(x);
	return x->budget > spent ? shares_part(&x->shares, *bytes,
	    x->budget - spent) : 0;
}

/* End a segment of a shard whose budget is known but whose plan is not.  If the state has
 * the plan of the previous shard and the segment gets enough bytes, code it by that plan. */
static int
stage_compress_land(struct stage_compress *x, struct err *e)
{
	struct coding *q = &x->coding;
	struct size z = { .bytes = writer_shard_bytes(x->to) };
	const uint64_t base = z.bytes, end = size_send(&z);
	double sum;
	uint64_t share;
	size_t i;
	int r;

	if (!x->shares.on && (r = shares_begin(&x->shares, feedback_state(x->fb),
	    x->sh.shard, x->sh.schema->ngroups, e)) < 0)
		return r;
	if (!x->shares.known || (share = stage_compress_share(x, end, &sum)) <
	    STAGE_COMPRESS_LEAST + stage_compress_exact(x))
		return 0;
	if ((r = coding_settled(q, e)) < 0)
		return r;
	for (i = 0; i < q->n; i++)
		coding_plan(q, i, &x->shares.of[q->g[i].group].plan);
	if ((r = coding_fit(q, base, end + share, e)) < 0 ||
	    (r = stage_compress_fitted(x, e)) < 0 ||
	    (r = coding_run(&x->coding, e)) < 0)
		return r;
	x->shares.left -= sum;
	coding_drop(q, q->n);
	x->left = x->done;
	return 0;
}

static int
stage_compress_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	struct stage_seen v;
	size_t i;
	int r;

	if (x->again)
		return 0;
	for (i = 0; i < d->n; i++) {
		if ((r = stage_finite(d, i, x->sh.in, x->v, x->cap, &v, e)) < 0 ||
		    (r = stage_compress_upto(x, d->rec[i].group, &v, e)) < 0)
			return r;
	}
	if ((r = stage_compress_flush(x, e)) < 0)
		return r;
	if (!d->cut)
		return 0;
	if (x->budget != 0 && x->fb != NULL && (r = stage_compress_land(x, e)) < 0)
		return r;
	if ((r = coding_run(&x->coding, e)) < 0 || (x->fb != NULL && x->sent == 0))
		return r;
	return x->fb == NULL ? writer_flush(x->out, e) :
	    residual_early(feedback_next(x->fb), x->out, e);
}

static int
stage_compress_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	int r;

	x->sh = *sh;
	x->again = 0;
	x->budget = 0;
	x->done = x->left = 0;
	x->shares.on = 0;
	x->sent = x->none = 0;
	note_wait_clear(&x->plan);
	if ((r = values_whole(sh->shard, e)) < 0 ||
	    (r = alloc_grow(&x->v, &x->cap, sh->schema->group_size,
	    sizeof(*x->v), e)) < 0 ||
	    (r = coding_begin(&x->coding, sh->schema, sh->shard, e)) < 0 ||
	    (r = writer_history(x->out, sh->provenance, e)) < 0)
		return r;
	x->to = x->out;
	x->at = io_bytes(writer_io(x->out));
	if (x->fb == NULL)
		return writer_shard(x->out, sh->shard, sh->schema, e);
	if (!x->resumed && (r = feedback_resume(x->fb, sh->shard->step,
	    x->out, e)) < 0)
		return r;
	if (!x->resumed)	/* the event counts the bytes of this shard */
		x->at = io_bytes(writer_io(x->out));
	x->resumed = 1;
	if ((r = feedback_begin(x->fb, sh->shard, sh->schema, e)) < 0)
		return r;
	x->again = r;
	if (!x->again)
		x->to = residual_writer(feedback_next(x->fb));
	return 0;
}

static int
stage_compress_obey(struct stage_compress *x, const struct stage_note *n,
    struct err *e)
{
	const uint32_t all = x->sh.schema->ngroups;
	struct note note;
	int r;

	if ((r = note_get(&note, n->p, n->n, NOTE_PLAN, all, e)) < 0)
		return r;
	if (x->plan.any && note.terms.budget != x->budget)
		return reader_place(x->sh.in, err_set(e, ERR_DATA,
		    "mismatch: the plan names two budgets, %llu and %llu bytes, expected one",
		    (unsigned long long)x->budget, (unsigned long long)note.terms.budget), e);
	x->budget = note.terms.budget;
	if ((r = note_wait_add(&x->plan, n->p, n->n, all, e)) < 0)
		return r;
	return stage_compress_flush(x, e);
}

/* Use plans, unless -c is given, and do not pass them on.  Pass on other annotations if they stay
 * valid for the coded shard. */
static int
stage_compress_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	int r;

	if (x->again)
		return 0;
	if (n->type == FRAME_PLAN)
		return x->o->have_codec ? 0 : stage_compress_obey(x, n, e);
	if (!frame_safe_to_copy(n->type))
		return 0;
	if ((r = coding_run(&x->coding, e)) < 0)
		return r;
	return n->whole != NULL ? writer_pass(x->to, n->whole, e) :
	    writer_note(x->to, n->type, n->p, n->n, e);
}

/* ---- the end of a shard ---- */

static int
stage_compress_lacks(struct stage_compress *x, const char *what, uint32_t g, struct err *e)
{
	if (!x->plan.any)
		return err_set(e, ERR_USAGE, "%s has no plan: put ace-select directly "
		    "before this program, or give -c CODEC", STAGE_NAME(&x->sh));
	return err_set(e, ERR_DATA, "mismatch: %s has no %s for group %lu, in tensor '%.160s'",
	    STAGE_NAME(&x->sh), what, (unsigned long)g, schema_name(x->sh.schema, g));
}

/* At the end of the shard, set the plan of each waiting group. */
static int
stage_compress_plans(struct stage_compress *x, struct err *e)
{
	struct rate_control_group *w;
	struct codec_plan p;
	uint32_t g;
	size_t i = 0;

	for (g = 0; g < x->sh.schema->ngroups; g++) {
		if (g < x->left && !note_wait_has(&x->plan, g))
			return stage_compress_lacks(x, "plan", g, e);
		w = i < x->coding.n && x->coding.g[i].group == g ?
		    &x->coding.g[i++] : NULL;
		if (w != NULL && !w->absent && !note_wait_has(&x->plan, g))
			return stage_compress_lacks(x, "plan", g, e);
		p = stage_compress_plan(x, g);
		if (x->shares.on)
			x->shares.of[g].plan = p;
		if (w != NULL)
			coding_plan(&x->coding, i - 1, &p);
		else if (g >= x->left && p.codec != CODEC_NONE)
			return stage_compress_lacks(x, "values despite a plan", g, e);
	}
	return 0;
}

/* Warn if groups of the plan were left out to fit the budget. */
static void
stage_compress_short(const struct stage_compress *x)
{
	if (x->coding.dropped > 0)
		cli_say(x->o->f->cli, 0, "%s: a budget of %llu bytes is too small: "
		    "groups of the plan that are not sent: %zu%s", STAGE_NAME(&x->sh),
		    (unsigned long long)x->budget, x->coding.dropped,
		    x->fb != NULL ? "" : ", and without -S they are lost");
}

/* Code the groups that wait at the end of the shard.  With a budget these are all groups
 * that no segment has sent, since coding_fit divides the bytes among them. */
static int
stage_compress_rest(struct stage_compress *x, struct err *e)
{
	struct coding *q = &x->coding;
	size_t i;
	int r;

	if (x->budget == 0) {
		for (i = 0; i < q->n; i++)
			if (!q->g[i].absent)
				return stage_compress_lacks(x, "plan", q->g[i].group, e);
		return stage_compress_first(x, q->n, e);
	}
	if ((r = coding_settled(q, e)) < 0 || (r = stage_compress_plans(x, e)) < 0 ||
	    (r = coding_fit(q, writer_shard_bytes(x->to), x->budget, e)) < 0)
		return r;
	stage_compress_short(x);
	return stage_compress_fitted(x, e);
}

/* After all groups are coded, commit the state, if any, and write the end of the shard. */
static int
stage_compress_commit(struct stage_compress *x, const struct shard_sums *sums,
    struct err *e)
{
	unsigned growing = 0;
	int r;

	cli_say(x->o->f->cli, 1, "%s: groups sent: %llu, not sent: %llu", STAGE_NAME(&x->sh),
	    (unsigned long long)x->sent, (unsigned long long)x->none);
	writer_dropped(x->to, sums->dropped);
	if (x->shares.on && (r = shares_save(&x->shares, feedback_state(x->fb),
	    x->sh.shard, x->sh.schema, e)) < 0)
		return r;
	if (x->fb == NULL)
		return writer_send(x->out, NULL, e);
	r = feedback_commit(x->fb, x->sh.shard, x->out, &growing, e);
	if (r == 0)
		writer_keeps(x->out);
	if (r == 0 && growing >= CONTRACTION_PATIENCE)
		cli_say(x->o->f->cli, 0, "%s: the errors of %u shards in a row "
		    "were as large as their values, so the residual grows: use a finer code%s",
		    STAGE_NAME(&x->sh),
		    growing, x->o->raw ? ", or --error-feedback without ':raw'" : "");
	return r;
}

static int
stage_compress_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	int r;

	if (x->again)
		r = feedback_send(x->fb, x->sh.shard->step, x->out, e);
	else if ((r = stage_compress_upto(x, x->sh.schema->ngroups, NULL,
	    e)) >= 0 && (r = stage_compress_rest(x, e)) >= 0 &&
	    (r = coding_run(&x->coding, e)) >= 0)
		r = stage_compress_commit(x, sums, e);
	if (r == 0)
		event_say(x->o->f, EVENT_SENT, x->sh.shard->step,
		    x->sh.schema->total, io_bytes(writer_io(x->out)) - x->at);
	return r;
}

static int
stage_compress_finish(struct stage *s, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	int r = 0;

	/* no shard has come: send the state's pending shards now */
	if (x->fb != NULL && !x->resumed)
		r = feedback_resume(x->fb, UINT64_MAX, x->out, e);
	return filter_end(x->out, r, e);
}

static void
stage_compress_abort(struct stage *s, struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;

	/* wait for the coding threads, which use the shard */
	(void)pool_end(x->pool, NULL);
	filter_abort(x->out, e);
}

static void
stage_compress_free(struct stage *s)
{
	struct stage_compress *x = (struct stage_compress *)s;

	coding_close(&x->coding);
	shares_release(&x->shares);
	feedback_free(x->fb);
	note_wait_release(&x->plan);
	pool_free(x->pool);
	alloc_free(x->v);
	writer_free(x->out);
}

static int
stage_compress_make(struct stage *s, void *opts, const struct filter *f,
    struct err *e)
{
	struct stage_compress *x = (struct stage_compress *)s;
	struct stage_compress_opts *o = opts;
	int r;

	x->plan = (struct note_wait)NOTE_WAIT_INIT;
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	o->f = f;
	o->fb.sync = f->sync;
	o->fb.piped = filter_piped(f) >= 0;
	x->o = o;
	r = pool_new(&x->pool, f->threads, e);
	if (r == 0 && o->dir != NULL)
		r = feedback_open(&x->fb, o->dir, &o->fb, e);
	if (r == 0)
		r = coding_open(&x->coding, x->fb, x->pool, e);
	x->coding.contracting = x->fb != NULL && !o->raw;
	x->coding.settle = stage_compress_settle;
	x->coding.arg = x;
	return r;
}

void
stage_compress_to(struct stage *s, struct writer *w)
{
	((struct stage_compress *)s)->out = w;
}

const struct stage_kind stage_compress = {
	.size = sizeof(struct stage_compress),
	.values = STAGE_CHANGES,
	.make = stage_compress_make,
	.begin = stage_compress_begin,
	.data = stage_compress_data,
	.note = stage_compress_note,
	.end = stage_compress_end,
	.finish = stage_compress_finish,
	.abort = stage_compress_abort,
	.free = stage_compress_free,
	.to = stage_compress_to
};
