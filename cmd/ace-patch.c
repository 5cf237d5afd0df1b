/*
 * ace-patch: turns a model into the next one, by a patch from ace-diff.  Everything
 * is verified before the model changes, and the model changes as a whole.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/progress_bar.h"
#include "format/reader.h"
#include "format/receipt.h"
#include "model/model.h"
#include "model/receivers.h"
#include "model/series.h"
#include "model/replace.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* the program's: threads */
	enum { APPLY, STAGE, COMMIT } act;
	int way;		/* enum replace_way */
	const char *receiver;	/* name in the receipt, or NULL */
};

/* A group that is being processed.  There are as many slots as threads. */
struct slot {
	uint32_t group;
	struct series_part *part;	/* [n] records of the group in the patches */
	size_t n, cap;
	struct buf body;
	unsigned char *old, *new;
	struct err bad;		/* error of the group */
};

struct patch {
	const struct opts *o;
	struct model m;
	struct replace replace;
	struct series s;	/* the patches that were read */
	size_t which;		/* the first patch to apply */
	unsigned char *touched;	/* [files] 1: the file changes */
	/* used while the patches are applied */
	unsigned char (*before)[MODEL_HASH], (*after)[MODEL_HASH];
	struct pool *pool;
	struct slot *slot;
	unsigned slots;
	struct err bad;		/* the error of the first group that has one */
	unsigned char makes[MODEL_HASH];
	/* for the receipt: */
	int measured;		/* 1: `is' has the hash of the model on disk */
	unsigned char is[MODEL_HASH];
	uint64_t is_step;
	int changed;
};

/* ---- reading the patches ---- */

static int
scratch_file(void *replace, int *fd, uint64_t *from, struct err *e)
{
	*from = 0;
	return statedir_scratch(&((struct replace *)replace)->dir, fd, e);
}

static int
open_model(struct patch *x, struct err *e)
{
	int r = model_open(&x->m, x->replace.path, e);

	if (r < 0)
		return r;
	alloc_free(x->touched);
	x->touched = alloc_get(x->m.nfiles, 1, e);
	return x->touched != NULL ? 0 : -ERR_SYS;
}

/* Read and verify all patches.  Other processes may still change the model, so use only its
 * tensor table. */
static int
receive(struct patch *x, struct err *e)
{
	struct reader_opts o = x->o->f->in;
	struct reader *in;
	int r;

	x->s.s.file = scratch_file;
	x->s.s.arg = &x->replace;
	x->s.s.name = x->replace.home;
	if ((r = open_model(x, e)) < 0)
		return r;
	/* the stream may have no tensor table: then use the model's */
	o.schema = &x->m.schema;
	o.any_model = 1;
	if ((r = reader_file(&in, NULL, &o, e)) == 0)
		r = series_read(&x->s, in, &x->m, e);
	/* an empty stream asks for a receipt */
	if (r == 0 && x->s.n == 0 && x->o->receiver == NULL)
		r = err_set(e, ERR_DATA, "mismatch: the input has no patch: expected "
		    "the output of ace-diff");
	reader_free(in);
	if (r == -ERR_DATA)
		fd_linger(STDIN_FILENO);
	return r;
}

/* ---- the model's groups ---- */

/* Decode the group in slot i.  Record an error instead of returning it, since the patch may
 * be for another model. */
static int
decode_group(void *arg, unsigned who, size_t i, struct err *e)
{
	struct patch *x = arg;
	struct slot *s = &x->slot[i];
	struct model_span span;
	int r = 0;

	(void)who;
	model_span(&x->m, s->group, &span);
	if ((r = model_read(&x->m, &span, s->old, e)) < 0)
		return r;
	hash_128(s->old, span.bytes, x->before[s->group]);
	memcpy(x->after[s->group], x->before[s->group], MODEL_HASH);
	if (s->n == 0)
		return 0;
	r = series_group(&x->s, s->part, s->n, &span, s->old, s->new,
	    x->after[s->group], &s->body, &s->bad);
	if (r < 0)
		(void)err_after(&s->bad, r, ", tensor '%.160s'",
		    x->m.schema.t[span.tensor].name);
	return r == -ERR_SYS ? err_move(e, &s->bad) : 0;
}

static int
put_group(struct patch *x, const struct slot *s, struct err *e)
{
	const unsigned char *new;
	struct model_span span;

	if (s->bad.code != ERR_OK && x->bad.code == ERR_OK)
		x->bad = s->bad;
	/* if there is no patch, the model is read only for its hash */
	if (x->bad.code != ERR_OK || x->s.from == x->s.n)
		return 0;
	model_span(&x->m, s->group, &span);
	new = s->n > 0 ? s->new : s->old;
	return replace_group(&x->replace, &span, s->old, new, x->after[s->group], e);
}

/* Read all groups of the model, with the records of the patches from `first' on. */
static int
each_group(struct patch *x, size_t first, struct err *e)
{
	const uint32_t all = x->m.schema.ngroups;
	struct slot *s;
	struct progress_bar bar;
	uint32_t g, k;
	size_t i;
	int r = 0;

	err_clear(&x->bad);
	series_from(&x->s, first);
	progress_bar_begin(&bar, x->o->f->cli);
	for (g = 0; g < all && r == 0; g += k) {
		k = all - g < x->slots ? all - g : x->slots;
		progress_bar_show(&bar, g, all, "groups");
		for (i = 0; i < k && r == 0; i++) {
			s = &x->slot[i];
			s->group = g + (uint32_t)i;
			err_clear(&s->bad);
			r = series_take(&x->s, s->group, &s->part, &s->n, &s->cap, e);
		}
		if (r == 0)
			r = pool_run(x->pool, k, (size_t)k * MODEL_GROUP,
			    decode_group, x, e);
		for (i = 0; i < k && r == 0; i++)
			r = put_group(x, &x->slot[i], e);
	}
	progress_bar_end(&bar);
	return r;
}

static int
room(struct patch *x, struct err *e)
{
	size_t n = x->m.schema.ngroups, most = model_most(&x->m), i;
	int r;

	if (x->slot != NULL)
		return 0;
	if ((r = pool_new(&x->pool, x->o->f->threads, e)) < 0)
		return r;
	x->slots = pool_size(x->pool);
	if ((x->before = alloc_get(n, 2 * MODEL_HASH, e)) == NULL ||
	    (x->slot = alloc_get(x->slots, sizeof(*x->slot), e)) == NULL)
		return -ERR_SYS;
	x->after = x->before + n;
	for (i = 0; i < x->slots; i++) {
		if ((x->slot[i].old = alloc_raw(most, 1, e)) == NULL ||
		    (x->slot[i].new = alloc_raw(most, 1, e)) == NULL)
			return -ERR_SYS;
	}
	return 0;
}

/* ---- which model this is ---- */

enum is { BASE, LATER, TARGET };

/* Set and return the error for a patch that is for another model. */
static int
other_model(const struct patch *x, struct err *e)
{
	const struct series_patch *p = &x->s.p[x->which];
	char want[MODEL_HEX], have[MODEL_HEX], of[48] = "", step[96] = "";

	shard_hex(p->before, want);
	shard_hex(x->is, have);
	if (p->base != 0)
		(void)snprintf(of, sizeof(of), ", step %llu",
		    (unsigned long long)p->base);
	if (x->replace.marked)
		(void)snprintf(step, sizeof(step), "; the last patch applied to it "
		    "made step %llu", (unsigned long long)x->replace.mark.step);
	return err_set(e, ERR_REFUSED, "the patch to step %llu is for model %s%s, "
	    "but '%s' is model %s%s", (unsigned long long)p->step, want, of, x->m.path,
	    have, step);
}

/* Return the step of the model on disk according to the patches; 0: unknown. */
static uint64_t
step_of(const struct patch *x)
{
	const struct series_patch *p = x->s.p;
	size_t i;

	for (i = x->s.n; i-- > 0;)
		if (memcmp(x->is, p[i].after, MODEL_HASH) == 0)
			return p[i].step;
	return x->s.n > 0 && memcmp(x->is, p[0].before, MODEL_HASH) == 0 ?
	    p[0].base : 0;
}

/* Return which model x->m is: the base of the patches (BASE), their result (TARGET), or one
 * in between (LATER), which needs fewer patches.  -ERR_DATA for any other model. */
static int
judge(struct patch *x, struct err *e)
{
	const struct series_patch *p = x->s.p;
	const size_t n = x->s.n;
	uint64_t step;
	size_t i = n;
	int r;

	if ((r = model_same(&x->m, e)) < 0)
		return r;
	model_hash(&x->m, x->before, x->is);
	x->measured = 1;
	while (i > 0 && memcmp(x->is, p[i - 1].after, MODEL_HASH) != 0)
		i--;
	if ((step = step_of(x)) != 0)
		x->is_step = step;
	if (i == n)
		return TARGET;
	if (!p[x->which].whole &&
	    memcmp(p[x->which].before, x->is, MODEL_HASH) != 0) {
		if (i == 0)
			return other_model(x, e);
		x->which = i;
		return LATER;
	}
	if (x->bad.code != ERR_OK)
		return err_move(e, &x->bad);
	model_hash(&x->m, x->after, x->makes);
	if (memcmp(x->makes, p[n - 1].after, MODEL_HASH) != 0)
		return err_set(e, ERR_DATA, "corrupt: %s not make the model that %s: "
		    "copy the stream again, or make it again with ace-diff",
		    n - x->which > 1 ? "the patches do" : "the patch does",
		    n - x->which > 1 ? "the last of them names" : "it names");
	return BASE;
}

/* Return the index of the first patch to apply: the one that follows the marker's model, if
 * no file has changed since the marker was written, or a later whole model. */
static size_t
needed(struct patch *x)
{
	const struct journal_mark *mark = &x->replace.mark;
	size_t i = 0, k;

	if (x->replace.marked && mark->stamp == model_stamp(&x->m)) {
		x->is_step = mark->step;
		for (i = x->s.n; i > 0 &&
		    memcmp(mark->hash, x->s.p[i - 1].after, MODEL_HASH) != 0; i--)
			;
	}
	k = series_whole(&x->s);
	return k > i ? k : i;
}

/* Write the next model or the journal; if the model is LATER, again with fewer patches. */
static int
make_next(struct patch *x, struct err *e)
{
	const struct opts *o = x->o;
	int r;

	do {
		replace_discard(&x->replace);
		if ((r = replace_begin(&x->replace, &x->m, x->touched,
		    (enum replace_way)o->way, o->act == STAGE, e)) < 0 ||
		    (r = each_group(x, x->which, e)) < 0)
			return r;
		r = judge(x, e);
	} while (r == LATER);
	return r;
}

/* The model is already the result of the patches: record this in the marker. */
static int
already(struct patch *x)
{
	const struct series_patch *last = &x->s.p[x->s.n - 1];

	cli_say(x->o->f->cli, 1, "'%s' is already the model that the patches make",
	    x->m.path);
	replace_discard(&x->replace);
	replace_known(&x->replace, &x->m, last->after, last->step);
	return 0;
}

/* Apply all patches as one change: no model in between is ever in place. */
static int
make(struct patch *x, struct err *e)
{
	const struct series_patch *last = &x->s.p[x->s.n - 1];
	const struct opts *o = x->o;
	char hex[MODEL_HEX];
	int r, is;

	if ((r = room(x, e)) < 0 || (r = is = make_next(x, e)) < 0)
		return r;
	if (is == TARGET)
		return already(x);
	x->changed = 1;
	shard_hex(x->makes, hex);
	cli_say(o->f->cli, 1, "the next model of '%s' is %s, step %llu", x->m.path,
	    hex, (unsigned long long)last->step);
	if ((r = replace_ready(&x->replace, x->makes, last->step, e)) < 0 ||
	    o->act == STAGE)
		return r;
	x->measured = 0;	/* take the hash from the marker */
	return replace_commit(&x->replace, e);
}

static void
close_model(struct patch *x)
{
	size_t i;

	for (i = 0; x->slot != NULL && i < x->slots; i++) {
		alloc_free(x->slot[i].old);
		alloc_free(x->slot[i].new);
		alloc_free(x->slot[i].part);
		buf_release(&x->slot[i].body);
	}
	alloc_free(x->slot);
	alloc_free(x->before);
	alloc_free(x->touched);
	x->slot = NULL;
	x->before = x->after = NULL;
	x->touched = NULL;
	pool_free(x->pool);
	x->pool = NULL;
	model_close(&x->m);
}

/* Open the model again, since we now hold the lock; -ERR_REFUSED if its tensors differ. */
static int
look_again(struct patch *x, struct err *e)
{
	struct model was = x->m;
	char why[256];
	uint32_t g;
	struct model_span span;
	int r;

	x->m = (struct model)MODEL_INIT;
	if ((r = open_model(x, e)) == 0 && x->s.n > 0 &&
	    schema_diff(&was.schema, &x->m.schema, why))
		r = err_set(e, ERR_REFUSED, "'%s' changed while the patch was read: "
		    "%s", x->m.path, why);
	model_close(&was);
	for (g = 0; r == 0 && x->s.n > 0 && g < x->m.schema.ngroups; g++)
		if (x->s.has[g]) {
			model_span(&x->m, g, &span);
			x->touched[span.file] = 1;
		}
	return r;
}

/* Add to the error of a patch which model stays in place. */
static int
still(const struct patch *x, struct err *e)
{
	return x->is_step == 0 ? err_after(e, -ERR_DATA, "; '%.80s' stays as it is",
	    x->m.path) : err_after(e, -ERR_DATA, "; '%.80s' stays at step %llu",
	    x->m.path, (unsigned long long)x->is_step);
}

/* Apply or stage the patches of the input, unless their result is staged already. */
static int
from_input(struct patch *x, struct err *e)
{
	const struct series_patch *last;
	struct err own = ERR_INIT;
	int r = receive(x, e), k;

	if (r == -ERR_SYS)
		return r;
	if ((k = replace_lock(&x->replace, r < 0 ? &own : e)) < 0 || r < 0)
		return r < 0 ? r : k;
	last = x->s.n > 0 ? &x->s.p[x->s.n - 1] : NULL;
	if (last != NULL && x->replace.staged && x->o->act == STAGE &&
	    memcmp(x->replace.ready.hash, last->after, MODEL_HASH) == 0 &&
	    replace_still(&x->replace, &own) == 0)
		return 0;
	/* before the model is read: removing hard links changes the ctime of its files */
	if (last != NULL)
		replace_discard(&x->replace);
	if ((r = look_again(x, e)) < 0 || x->s.n == 0)
		return r;
	x->which = needed(x);
	if (x->which == x->s.n)
		return already(x);
	if ((r = make(x, e)) < 0)
		replace_discard(&x->replace);
	return r == -ERR_DATA && x->s.n > 1 ? still(x, e) : r;
}

static int
commit(struct patch *x, struct err *e)
{
	int r = replace_lock(&x->replace, e);

	if (r < 0)
		return r;
	if (!x->replace.staged)
		return err_set(e, ERR_REFUSED, "no staged model of '%s': call "
		    "ace-patch --stage first", x->replace.path);
	x->changed = 1;
	return replace_commit(&x->replace, e);
}

/* ---- the receipt ---- */

/* Set x->is to the hash of the model on disk, from the marker or from its bytes. */
static int
measure(struct patch *x, struct err *e)
{
	int r;

	close_model(x);
	if ((r = open_model(x, e)) < 0)
		return r;
	if (x->replace.marked && x->replace.mark.stamp == model_stamp(&x->m)) {
		memcpy(x->is, x->replace.mark.hash, MODEL_HASH);
		x->is_step = x->replace.mark.step;
		return 0;
	}
	if (!x->measured) {
		if ((r = room(x, e)) < 0)
			return r;
		if ((r = each_group(x, x->s.n, e)) < 0 ||
		    (r = model_same(&x->m, e)) < 0)
			return r;
		model_hash(&x->m, x->before, x->is);
		x->is_step = step_of(x);
	}
	/* the same model, but a file's name or mode changed */
	if (x->replace.marked && memcmp(x->replace.mark.hash, x->is, MODEL_HASH) == 0) {
		x->is_step = x->replace.mark.step;
		replace_known(&x->replace, &x->m, x->is, x->is_step);
	}
	return 0;
}

/* Write the receipt, also after a refused patch.  After a system error write none, so that
 * the sender tries again. */
static int
answer(struct patch *x, struct writer *w, int r, struct err *e)
{
	struct timespec now = { 0, 0 };
	struct err own = ERR_INIT;
	struct receipt rc;
	int k;

	if (r == -ERR_SYS || r == -ERR_USAGE || x->replace.dir.lock < 0)
		return r;
	if ((k = measure(x, &own)) < 0)
		return r < 0 ? r : err_move(e, &own);
	memset(&rc, 0, sizeof(rc));
	memcpy(rc.run, x->s.run, SHARD_ID);
	memcpy(rc.digest, x->s.digest, SHARD_DIGEST);
	rc.step = x->s.step;
	rc.verdict = r < 0 ? RECEIPT_INVALID : x->changed ? RECEIPT_ACCEPTED :
	    RECEIPT_DUPLICATE;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	rc.clock = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	rc.version = x->is_step;
	receivers_receipt(&rc, x->o->receiver, x->is);
	k = writer_receipt(w, &rc, r < 0 ? &own : e);
	return r < 0 ? r : k;
}

static void
release(struct patch *x)
{
	series_release(&x->s);
	replace_close(&x->replace);
	close_model(x);
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct patch x = { .o = o, .m = MODEL_INIT, .replace = REPLACE_INIT,
	    .s = SERIES_INIT };
	struct writer *w = NULL;
	int r = 0;

	if (n != 1)
		return err_set(e, ERR_USAGE, "expected one operand, MODEL, found %zu", n);
	if (o->act == STAGE && o->way == REPLACE_PLACE)
		return err_set(e, ERR_USAGE, "--way in-place and --stage exclude "
		    "each other: a model changed in place cannot be staged");
	if (o->receiver != NULL && (r = receivers_name(o->receiver, e)) == 0)
		r = filter_out(o->f, &w, e);
	if (r == 0 && (r = replace_open(&x.replace, path[0], o->f->cli, e)) == 0)
		r = o->act == COMMIT ? commit(&x, e) : from_input(&x, e);
	if (w != NULL)
		r = filter_end(w, answer(&x, w, r, e), e);
	writer_free(w);
	release(&x);
	return r;
}

static int
set_act(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct opts *o = arg;

	(void)val;
	if (o->act != APPLY && (int)o->act != row->value)
		return err_set(e, ERR_USAGE, "--stage and --commit exclude each "
		    "other: give one");
	o->act = row->value == STAGE ? STAGE : COMMIT;
	return 0;
}

static const struct opt options[] = {
	{ 0, "stage", NULL, "make the next model beside the present one",
	    OPT_CALL(set_act), .value = STAGE },
	{ 0, "commit", NULL, "put what was staged in the model's place",
	    OPT_CALL(set_act), .value = COMMIT },
	{ 0, "way", "WAY", NULL, OPT_WORD(struct opts, way, replace_ways) },
	{ 0, "receipt", "NAME", "answer as receiver NAME, with the model it has then",
	    OPT_TEXT(struct opts, receiver) },
	FILTER_OPT_THREADS,
	OPT_SHARED(filter_opts_max),
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-patch",
			.usage = "[--stage | --commit] [--way WAY]\n"
			    "    [--receipt NAME] MODEL <PATCH",
			.about = "Makes the next model of a model with a patch.",
			.examples = "ace-patch model.safetensors <step7.aceg\n"
			    "ace-patch --stage model <step7.aceg && "
			    "ace-patch --commit model\n",
			.opt = options,
			.replaces = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f, .way = REPLACE_ANY };

	return program_main(&p, argc, argv, &o);
}
