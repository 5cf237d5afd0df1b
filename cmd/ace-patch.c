/*
 * ace-patch: turns a model into the next one, by a patch from ace-diff.  A patch is verified
 * before the model changes; without --in-place, the model then changes as a whole.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/progress_bar.h"
#include "format/reader.h"
#include "model/change.h"
#include "model/model.h"
#include "model/replace.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* threads, limits on the input, and cli of the program */
	int stage, commit, in_place;
};

/* A group that is being processed.  There are as many slots as threads. */
struct slot {
	uint32_t group;
	const struct change_part *part;	/* the patch's record of the group, or NULL */
	struct buf body;
	unsigned char *old, *new;
	struct err bad;		/* error of the group */
};

struct patch {
	const struct opts *o;
	struct model m;
	struct replace replace;
	struct change c;	/* the patch that was read last */
	unsigned char *touched;	/* [files] 1: the file changes */
	/* used while a patch is applied */
	unsigned char (*before)[MODEL_HASH], (*after)[MODEL_HASH];	/* hash per group */
	struct pool *pool;
	struct slot *slot;
	unsigned slots;
	struct err bad;		/* the error of the first group that has one */
	unsigned char is[MODEL_HASH];	/* hash of the model on disk */
};

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

/* ---- the model's groups ---- */

/* Decode the group in slot i.  Record an error of the patch instead of returning it: the hash
 * of all groups shows later whether the patch is damaged or for another model. */
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
	if (s->part == NULL)
		return 0;
	r = change_group(&x->c, s->part, &span, s->old, s->new,
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
	if (x->bad.code != ERR_OK)
		return 0;
	model_span(&x->m, s->group, &span);
	new = s->part != NULL ? s->new : s->old;
	return replace_group(&x->replace, &span, s->old, new, x->after[s->group], e);
}

/* Read all groups of the model, and write them as the patch makes them. */
static int
each_group(struct patch *x, struct err *e)
{
	const uint32_t all = x->m.schema.ngroups;
	struct slot *s;
	struct progress_bar bar;
	uint32_t g, k;
	size_t i, next = 0;
	int r = 0;

	err_clear(&x->bad);
	progress_bar_begin(&bar, x->o->f->cli);
	for (g = 0; g < all && r == 0; g += k) {
		k = all - g < x->slots ? all - g : x->slots;
		progress_bar_show(&bar, g, all, "groups");
		for (i = 0; i < k; i++) {
			s = &x->slot[i];
			s->group = g + (uint32_t)i;
			err_clear(&s->bad);
			s->part = next < x->c.n && x->c.part[next].group == s->group ?
			    &x->c.part[next++] : NULL;
		}
		r = pool_run(x->pool, k, (size_t)k * MODEL_GROUP, decode_group, x, e);
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

/* ---- one patch ---- */

enum { OTHER = 1, ALREADY };

/* Set and return the error for a patch that is for another model. */
static int
other_model(const struct patch *x, struct err *e)
{
	const struct change *c = &x->c;
	const uint64_t at = x->replace.mark.step;
	char want[MODEL_HEX], have[MODEL_HEX], of[48] = "";
	char step[128] = ": apply patches that begin with this model";

	shard_hex(c->note.before, want);
	shard_hex(x->is, have);
	if (c->base != 0)
		(void)snprintf(of, sizeof(of), ", step %llu", (unsigned long long)c->base);
	if (x->replace.marked && memcmp(x->replace.mark.hash, x->is, MODEL_HASH) == 0)
		(void)snprintf(step, sizeof(step), "; the last patch applied to it made step "
		    "%llu: apply %s", (unsigned long long)at, c->base > at ?
		    "the patches in between" : c->step < at ? "a patch to a later step" :
		    "patches that begin with this model");
	return err_set(e, ERR_REFUSED, "the patch to step %llu is for model %s%s, but '%s' is "
	    "model %s%s, or a whole model from 'ace-diff NEW'", (unsigned long long)c->step, want,
	    of, x->m.path, have, step);
}

/* Compare x->is with the models of the patch: return OTHER, ALREADY or 0. */
static int
fits(const struct patch *x)
{
	const struct change *c = &x->c;

	return memcmp(c->note.after, x->is, MODEL_HASH) == 0 ? ALREADY : !c->whole &&
	    memcmp(c->note.before, x->is, MODEL_HASH) != 0 ? OTHER : 0;
}

/* Report the next model, which is ready. */
static void
tell(const struct replace *s)
{
	char hex[MODEL_HEX];

	shard_hex(s->ready.hash, hex);
	cli_say(s->cli, 1, "the next model of '%s' is %s, step %llu", s->path, hex,
	    (unsigned long long)s->ready.step);
}

/* Write the next model beside the present one, or the journal that makes it in place.  Return
 * 0, an error, or the answer of fits(): then the caller discards what was written. */
static int
make_next(struct patch *x, struct err *e)
{
	unsigned char makes[MODEL_HASH];
	int r;

	if ((r = room(x, e)) < 0 || (r = replace_begin(&x->replace, &x->m, x->touched,
	    x->o->in_place, e)) < 0 ||
	    (r = each_group(x, e)) < 0 || (r = model_same(&x->m, e)) < 0)
		return r;
	model_hash(&x->m, x->before, x->is);
	if ((r = fits(x)) != 0)
		return r;
	if (x->bad.code != ERR_OK)
		return err_move(e, &x->bad);
	model_hash(&x->m, x->after, makes);
	if (memcmp(makes, x->c.note.after, MODEL_HASH) != 0)
		return err_set(e, ERR_DATA, "corrupt: the patch to step %llu does not make the "
		    "model that the patch names: copy the patch again, or repeat ace-diff",
		    (unsigned long long)x->c.step);
	if ((r = replace_ready(&x->replace, makes, x->c.step, e)) == 0)
		tell(&x->replace);
	return r;
}

/* Open the model again: it may have changed while the patch was read, and the last patch
 * changed it.  Find the files that change. */
static int
look_again(struct patch *x, struct err *e)
{
	unsigned char was[sizeof(x->m.schema.id)];
	struct model_span span;
	size_t i;
	int r;

	memcpy(was, x->m.schema.id, sizeof(was));
	model_close(&x->m);
	if ((r = open_model(x, e)) == 0 && memcmp(was, x->m.schema.id, sizeof(was)) != 0)
		r = err_set(e, ERR_REFUSED, "'%s' has other tensors than before the patch was "
		    "read: try again when no program writes the model", x->m.path);
	for (i = 0; r == 0 && i < x->c.n; i++) {
		model_span(&x->m, x->c.part[i].group, &span);
		x->touched[span.file] = 1;
	}
	return r;
}

/* Apply or stage the patch.  Return OTHER if it is for another model. */
static int
apply(struct patch *x, struct err *e)
{
	const struct journal_mark *mark = &x->replace.mark;
	struct err own = ERR_INIT;
	int r;

	if (x->replace.staged && x->o->stage && x->replace.ready.step >= x->c.step &&
	    memcmp(x->replace.ready.hash, x->c.note.after, MODEL_HASH) == 0 &&
	    replace_still(&x->replace, &own) == 0)
		return 0;
	/* do this before the model is read: its files' ctimes change when links are removed */
	replace_discard(&x->replace);
	if ((r = look_again(x, e)) < 0)
		return r;
	if (x->replace.marked && mark->stamp == model_stamp(&x->m)) {
		memcpy(x->is, mark->hash, MODEL_HASH);
		r = fits(x);
	}
	if (r == 0)
		r = make_next(x, e);
	if (r == 0 && (x->o->stage || (r = replace_commit(&x->replace, e)) == 0))
		return 0;
	replace_discard(&x->replace);
	if (r != ALREADY)
		return r;
	cli_say(x->o->f->cli, 1, "'%s' is already the model that the patch makes", x->m.path);
	replace_known(&x->replace, &x->m, x->c.note.after, x->c.step);
	return 0;
}

/* ---- the input ---- */

static int
scratch_file(void *replace, int *fd, uint64_t *from, struct err *e)
{
	*from = 0;
	return temp_open(((struct replace *)replace)->dir.dir, fd, e);
}

/* Apply the patches in order.  Apply a patch only after the header of the next one, or the end
 * of the input, was read without an error.  A patch for another model is no error if a later
 * patch fits the model and does not lead to an earlier step. */
static int
each_patch(struct patch *x, struct reader **in, struct err *e)
{
	int r = reader_to_shard(*in, e), more = r;
	uint64_t over = 0;

	if (r == 0)
		return err_set(e, ERR_DATA, "mismatch: the input has no patch: expected "
		    "the output of ace-diff");
	while (more > 0) {
		if ((r = change_read(&x->c, *in, &x->m, e)) < 0 ||
		    (r = more = reader_to_shard(*in, e)) < 0)
			return r;
		if (more > 0 && x->o->stage)
			return err_set(e, ERR_DATA, "limit: the input has more than one patch, "
			    "but --stage takes one: stage and commit them one by one");
		if (more == 0) {	/* free its tensor table, before the model needs memory */
			reader_free(*in);
			*in = NULL;
		}
		if ((r = apply(x, e)) < 0)
			return r;
		if (r == OTHER && x->c.step > over)
			over = x->c.step;
	}
	return r == OTHER ? other_model(x, e) : x->c.step >= over ? r : err_set(e, ERR_REFUSED,
	    "the patch to step %llu was not applied, but the patch to step %llu, which came "
	    "later, was: sort the patches by step", (unsigned long long)over,
	    (unsigned long long)x->c.step);
}

/* The lock is held while the patches arrive. */
static int
from_input(struct patch *x, struct err *e)
{
	struct reader_opts o = x->o->f->in;
	struct reader *in = NULL;
	int r;

	x->c.s.file = scratch_file;
	x->c.s.arg = &x->replace;
	x->c.s.name = x->replace.home;
	if ((r = replace_lock(&x->replace, e)) < 0 || (r = open_model(x, e)) < 0)
		return r;
	/* the stream may have no tensor table: then use the model's */
	o.schema = &x->m.schema;
	o.any_model = 1;
	if ((r = reader_file(&in, NULL, &o, e)) == 0)
		r = each_patch(x, &in, e);
	reader_free(in);
	if (r == -ERR_DATA)
		fd_linger(STDIN_FILENO);
	return r;
}

static int
commit(struct patch *x, struct err *e)
{
	int r = replace_lock(&x->replace, e);

	if (r < 0)
		return r;
	if (!x->replace.staged)
		return err_set(e, ERR_REFUSED, "'%s' has no staged model: call "
		    "ace-patch --stage first", x->replace.path);
	tell(&x->replace);
	return replace_commit(&x->replace, e);
}

static void
release(struct patch *x)
{
	size_t i;

	change_release(&x->c);
	replace_close(&x->replace);
	for (i = 0; x->slot != NULL && i < x->slots; i++) {
		alloc_free(x->slot[i].old);
		alloc_free(x->slot[i].new);
		buf_release(&x->slot[i].body);
	}
	alloc_free(x->slot);
	alloc_free(x->before);
	alloc_free(x->touched);
	pool_free(x->pool);
	model_close(&x->m);
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct patch x = { .o = o, .m = MODEL_INIT, .replace = REPLACE_INIT,
	    .c = CHANGE_INIT };
	int r;

	if (n != 1)
		return err_set(e, ERR_USAGE, "expected one operand, MODEL, found %zu: "
		    "a patch is read from standard input", n);
	if (o->stage + o->commit + o->in_place > 1)
		return err_set(e, ERR_USAGE, "--stage, --commit and --in-place exclude each "
		    "other: give one");
	if ((r = replace_open(&x.replace, path[0], o->f->cli, e)) == 0)
		r = o->commit ? commit(&x, e) : from_input(&x, e);
	release(&x);
	return r;
}

static const struct opt options[] = {
	{ 0, "stage", NULL, "make the next model beside the present one",
	    OPT_FLAG(struct opts, stage) },
	{ 0, "commit", NULL, "put what was staged in the model's place",
	    OPT_FLAG(struct opts, commit) },
	{ 0, "in-place", NULL, "write into the model's files, with a journal",
	    OPT_FLAG(struct opts, in_place) },
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
			.usage = "[--stage | --commit | --in-place] MODEL <PATCH",
			.about = "Makes the next model of a model with a patch.",
			.examples = "ace-patch model.safetensors <step7.aceg\n"
			    "ace-patch --stage model <step7.aceg && "
			    "ace-patch --commit model\n",
			.opt = options,
			.replaces = 1,
			.models = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f };

	return program_main(&p, argc, argv, &o);
}
