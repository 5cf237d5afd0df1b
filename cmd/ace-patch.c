/*
 * ace-patch: makes the next model of a model, by a patch of ace-diff.  Everything
 * is verified before the model changes, and it changes as a whole.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/pack.h"
#include "base/pool.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/delta.h"
#include "model/model.h"
#include "model/swap.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* the program's: threads */
	enum { APPLY, STAGE, COMMIT } act;
	int way;		/* enum swap_way */
	const char *delta;	/* directory for what changed, or NULL */
	int coding;		/* of it, enum delta_coding */
};

/* A group on its way; one of as many as there are threads. */
struct slot {
	uint32_t group;
	int coded, whole;	/* the patch has it; it needs no old words */
	uint8_t param;
	struct buf body;
	uint64_t sum;		/* of the bytes that it is to make */
	unsigned char *old, *new;
	struct err bad;		/* what is wrong with it */
};

struct patch {
	const struct opts *o;
	struct model m;
	struct swap swap;
	struct delta *delta;
	int fd;			/* what came, all of it */
	/* what it says */
	struct shard sh;
	struct model_note note;
	struct schema schema;
	unsigned char *touched;	/* files that change */
	/* while it is applied */
	struct reader *in;
	const struct record *rec;
	size_t nrec, at, sums;
	unsigned char (*before)[MODEL_HASH], (*after)[MODEL_HASH];
	struct pool *pool;
	struct slot *slot;
	unsigned slots;
	struct err bad;		/* of the first group that has one */
};

/* ---- what came ---- */

static int
receive(struct patch *x, struct err *e)
{
	enum { PIECE = 1 << 16 };
	unsigned char *p = alloc_raw(PIECE, 1, e);
	struct io *io = NULL;
	off_t at = 0;
	size_t n = 1;
	int r = p != NULL ? io_open(&io, NULL, e) : -ERR_SYS;

	if (r == 0)
		r = swap_scratch(&x->swap, &x->fd, e);
	for (; r == 0 && n > 0; at += (off_t)n)
		if ((r = io_read(io, p, PIECE, &n, e)) == 0)
			r = fd_write_at(x->fd, at, p, n, "the patch", e);
	io_free(io);
	alloc_free(p);
	return r;
}

static int
again(struct patch *x, struct err *e)
{
	struct reader_opts o = x->o->f->in;
	struct io *io;
	int r;

	/* the table may have been left out: it is the model's */
	o.schema = &x->m.schema;
	o.any_model = 1;
	reader_free(x->in);
	x->in = NULL;
	if ((r = io_open_at(&io, x->fd, 0, "<stdin>", e)) < 0)
		return r;
	return reader_open(&x->in, io, &o, e);
}

/* A shard that is a patch. */
static int
is_patch(struct patch *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	const char *predict = text_get(&sh->kv, SHARD_KEY_PREDICT);
	int differs = (sh->flags & SHARD_PREDICTED) != 0;

	if (sh->kind != SHARD_MODEL || differs != (predict != NULL) ||
	    (differs && strcmp(predict, SHARD_PREDICT_PATCH) != 0))
		return reader_place(x->in, err_set(e, ERR_DATA, "mismatch: this "
		    "is no patch of a model"), e);
	return shard_copy(&x->sh, sh, e);
}

static int
note_groups(struct patch *x, struct err *e)
{
	const struct record *rec;
	struct model_span span;
	size_t i, n;

	rec = reader_records(x->in, &n);
	for (i = 0; i < n; i++) {
		if (rec[i].codec != CODEC_EXACT)
			return reader_place(x->in, err_set(e, ERR_DATA,
			    "mismatch: group %lu of a patch is coded %s",
			    (unsigned long)rec[i].group,
			    codec_name(rec[i].codec)), e);
		model_span(&x->m, rec[i].group, &span);
		x->touched[span.file] = 1;
	}
	x->sums += n;
	return 0;
}

/* The tensors of the patch are the model's. */
static int
fits(struct patch *x, struct err *e)
{
	char why[256];

	if (schema_diff(&x->m.schema, reader_schema(x->in), why))
		return err_set(e, ERR_DATA, "mismatch: the patch is not of a model "
		    "like '%s': %s", x->m.path, why);
	return 0;
}

/* Reads it once, to its verified end. */
static int
look(struct patch *x, struct err *e)
{
	const struct chain_frame *f;
	int r, shards = 0, notes = 0, ev;

	if ((r = again(x, e)) < 0)
		return r;
	while (r == 0 && (ev = r = reader_next(x->in, e)) > 0) {
		r = 0;
		if (ev == READER_SHARD && shards++ > 0)
			r = err_set(e, ERR_DATA, "mismatch: more than one patch; "
			    "each needs a call of its own");
		else if (ev == READER_SHARD && (r = is_patch(x, e)) == 0)
			r = fits(x, e);
		else if (ev == READER_DATA)
			r = note_groups(x, e);
		else if (ev == READER_NOTE &&
		    (f = reader_frame(x->in))->type == FRAME_MODL) {
			notes++;
			r = model_note_decode(&x->note, f->raw, f->raw_len, e);
		}
		if (r == 0)
			continue;
		return r;
	}
	if (r == 0 && (shards == 0 || notes != 1 || x->note.n != x->sums))
		r = err_set(e, ERR_DATA, "%s", shards == 0 ?
		    "mismatch: no patch came" :
		    "corrupt: a patch without the hashes of its groups");
	return r;
}

/* ---- its groups ---- */

/* The next record of the patch; 0 behind the last. */
static int
next_record(struct patch *x, struct err *e)
{
	int r;

	while (x->at == x->nrec) {
		if ((r = reader_next(x->in, e)) < 0)
			return r;
		if (r == READER_END)
			return 0;
		x->at = x->nrec = 0;
		if (r == READER_DATA)
			x->rec = reader_records(x->in, &x->nrec);
	}
	return 1;
}

/* Group g, as the patch has it, if it has. */
static int
take(struct patch *x, struct slot *s, uint32_t g, struct err *e)
{
	const struct record *rec;
	int r = next_record(x, e);

	s->group = g;
	s->coded = 0;
	err_clear(&s->bad);
	if (r <= 0 || x->rec[x->at].group != g)
		return r < 0 ? r : 0;
	rec = &x->rec[x->at++];
	s->coded = 1;
	s->whole = (rec->param & EXACT_GIVEN) == 0;
	s->param = rec->param;
	s->sum = x->note.sum[x->sums++];
	s->body.n = 0;
	return buf_put(&s->body, rec->body, rec->len, e);
}

/* What is wrong with a group is kept for later: it may be that the patch is for
 * another model. */
static int
decode_group(void *arg, unsigned who, size_t i, struct err *e)
{
	struct patch *x = arg;
	struct slot *s = &x->slot[i];
	struct model_span span;
	int r;

	(void)who;
	model_span(&x->m, s->group, &span);
	if ((r = model_read(&x->m, &span, s->old, e)) < 0)
		return r;
	pack_hash128(s->old, span.bytes, x->before[s->group]);
	memcpy(x->after[s->group], x->before[s->group], MODEL_HASH);
	if (!s->coded)
		return 0;
	r = exact_get(s->param, span.form, s->whole ? NULL : s->old, s->body.p,
	    s->body.n, s->new, span.words, &s->bad);
	if (r == 0 && pack_hash64(s->new, span.bytes) != s->sum)
		r = err_set(&s->bad, ERR_DATA, "corrupt: checksum of a group");
	if (r == 0)
		pack_hash128(s->new, span.bytes, x->after[s->group]);
	else
		(void)err_after(&s->bad, r, ", tensor '%.160s'",
		    x->m.schema.t[span.tensor].name);
	return r == -ERR_SYS ? err_move(e, &s->bad) : 0;
}

static int
put_group(struct patch *x, const struct slot *s, struct err *e)
{
	struct model_span span;
	int r;

	if (s->bad.code != ERR_OK && x->bad.code == ERR_OK)
		x->bad = s->bad;
	if (x->bad.code != ERR_OK)
		return 0;
	model_span(&x->m, s->group, &span);
	if (x->delta != NULL && (r = delta_group(x->delta, &span, s->old,
	    s->coded ? s->new : s->old, e)) < 0)
		return r;
	return !s->coded ? 0 : swap_group(&x->swap, &span, s->old, s->new, e);
}

static int
put_groups(struct patch *x, struct err *e)
{
	const uint32_t all = x->m.schema.ngroups;
	struct bar bar;
	uint32_t g, k;
	size_t i;
	int r;

	if ((r = again(x, e)) < 0)
		return r;
	x->at = x->nrec = x->sums = 0;
	bar_begin(&bar, x->o->f->cli);
	for (g = 0; g < all && r == 0; g += k) {
		k = all - g < x->slots ? all - g : x->slots;
		bar_show(&bar, g, all, "groups");
		for (i = 0; i < k && r == 0; i++)
			r = take(x, &x->slot[i], g + (uint32_t)i, e);
		if (r == 0)
			r = pool_run(x->pool, k, (size_t)k * MODEL_GROUP,
			    decode_group, x, e);
		for (i = 0; i < k && r == 0; i++)
			r = put_group(x, &x->slot[i], e);
	}
	bar_end(&bar);
	return r;
}

static int
room(struct patch *x, struct err *e)
{
	size_t n = x->m.schema.ngroups, most = model_most(&x->m), i;
	int r;

	if ((r = pool_new(&x->pool, x->o->f->threads, e)) < 0)
		return r;
	x->slots = pool_size(x->pool);
	x->before = alloc_get(n, MODEL_HASH, e);
	x->after = x->before != NULL ? alloc_get(n, MODEL_HASH, e) : NULL;
	x->slot = x->after != NULL ? alloc_get(x->slots, sizeof(*x->slot), e) :
	    NULL;
	if (x->slot == NULL)
		return -ERR_SYS;
	for (i = 0; i < x->slots; i++) {
		x->slot[i].old = alloc_raw(most, 1, e);
		x->slot[i].new = x->slot[i].old != NULL ?
		    alloc_raw(most, 1, e) : NULL;
		if (x->slot[i].new == NULL)
			return -ERR_SYS;
	}
	return 0;
}

/* ---- is it that model ---- */

enum is { BASE, TARGET };

/* Whether the model is the one that the patch is for, or the one that it makes. */
static int
judge(struct patch *x, struct err *e)
{
	unsigned char is[MODEL_HASH], makes[MODEL_HASH];
	const unsigned char none[MODEL_HASH] = { 0 };
	char want[MODEL_HEX], have[MODEL_HEX], step[96] = "";
	int r;

	if ((r = model_same(&x->m, e)) < 0)
		return r;
	model_hash(&x->m.schema, x->before, is);
	if (memcmp(is, x->note.after, MODEL_HASH) == 0)
		return TARGET;
	if (memcmp(x->note.before, none, MODEL_HASH) != 0 &&
	    memcmp(x->note.before, is, MODEL_HASH) != 0) {
		model_hex(x->note.before, want);
		model_hex(is, have);
		if (x->swap.marked)
			(void)snprintf(step, sizeof(step), "; the last one that "
			    "was made of it is step %llu",
			    (unsigned long long)x->swap.mark.step);
		return err_set(e, ERR_REFUSED, "the patch to step %llu is for the "
		    "model %s, '%s' is %s%s", (unsigned long long)x->sh.step,
		    want, x->m.path, have, step);
	}
	if (x->bad.code != ERR_OK)
		return err_move(e, &x->bad);
	model_hash(&x->m.schema, x->after, makes);
	if (memcmp(makes, x->note.after, MODEL_HASH) != 0)
		return err_set(e, ERR_DATA, "corrupt: the patch does not make the "
		    "model that it names");
	return BASE;
}

/* The marker says so, and no file has changed since. */
static int
there_already(const struct patch *x)
{
	return x->swap.marked && memcmp(x->swap.mark.hash, x->note.after,
	    MODEL_HASH) == 0 && x->swap.mark.stamp == model_stamp(&x->m);
}

/* Whether what changed can be said in a directory of others', and begins it. */
static int
begin_delta(struct patch *x, struct err *e)
{
	const struct opts *o = x->o;
	int fd, r;

	if (o->delta == NULL)
		return 0;
	if ((x->sh.flags & SHARD_PREDICTED) == 0)
		return err_set(e, ERR_DATA, "mismatch: a patch of no old model says "
		    "not what changed; '%s' is not made", o->delta);
	if (x->sh.step <= x->sh.base_version)
		return err_set(e, ERR_DATA, "mismatch: the patch says not of which "
		    "step to which it is (ace-diff --base-version, --step)");
	if ((r = swap_scratch(&x->swap, &fd, e)) < 0)
		return r;
	return delta_create(&x->delta, &x->m, fd, o->coding, e);
}

static int
make_next(struct patch *x, struct err *e)
{
	const struct opts *o = x->o;
	int r;

	if ((r = begin_delta(x, e)) < 0 || (r = room(x, e)) < 0 ||
	    (r = swap_begin(&x->swap, &x->m, x->touched,
	    (enum swap_way)o->way, o->act == STAGE, e)) < 0 ||
	    (r = put_groups(x, e)) < 0 || (r = judge(x, e)) < 0)
		return r;
	if (r == TARGET) {
		cli_say(o->f->cli, 1, "'%s' is that model already", x->m.path);
		swap_discard(&x->swap);
		return 0;
	}
	/* before the model: whoever is killed between them writes it again */
	if (x->delta != NULL && (r = delta_place(x->delta, o->delta, x->sh.step,
	    x->sh.base_version, e)) < 0)
		return r;
	if ((r = swap_ready(&x->swap, x->note.after, x->sh.step, e)) < 0 ||
	    o->act == STAGE)
		return r;
	return swap_commit(&x->swap, e);
}

/* What was staged before is forgotten, if it is not the same. */
static int
apply(struct patch *x, struct err *e)
{
	int r;

	if (x->swap.staged && x->o->act == STAGE && memcmp(x->swap.ready.hash,
	    x->note.after, MODEL_HASH) == 0)
		return 0;
	if (x->swap.staged)
		swap_discard(&x->swap);
	if (there_already(x)) {
		cli_say(x->o->f->cli, 1, "'%s' is that model already", x->m.path);
		return 0;
	}
	if ((r = make_next(x, e)) < 0)
		swap_discard(&x->swap);
	return r;
}

static int
from_input(struct patch *x, struct err *e)
{
	int r;

	if ((r = receive(x, e)) < 0 || (r = swap_lock(&x->swap, e)) < 0 ||
	    (r = model_open(&x->m, x->swap.path, e)) < 0)
		return r;
	if ((x->touched = alloc_get(x->m.nfiles, 1, e)) == NULL)
		return -ERR_SYS;
	return (r = look(x, e)) < 0 ? r : apply(x, e);
}

static int
commit(struct patch *x, struct err *e)
{
	int r = swap_lock(&x->swap, e);

	if (r < 0)
		return r;
	if (!x->swap.staged)
		return err_set(e, ERR_REFUSED, "nothing is staged for '%s'",
		    x->swap.path);
	return swap_commit(&x->swap, e);
}

static void
release(struct patch *x)
{
	size_t i;

	for (i = 0; x->slot != NULL && i < x->slots; i++) {
		alloc_free(x->slot[i].old);
		alloc_free(x->slot[i].new);
		buf_release(&x->slot[i].body);
	}
	alloc_free(x->slot);
	alloc_free(x->before);
	alloc_free(x->after);
	alloc_free(x->touched);
	pool_free(x->pool);
	delta_free(x->delta);
	reader_free(x->in);
	model_note_release(&x->note);
	shard_release(&x->sh);
	swap_close(&x->swap);
	model_close(&x->m);
	if (x->fd >= 0)
		(void)close(x->fd);
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct patch x = { .o = o, .m = MODEL_INIT, .swap = SWAP_INIT, .fd = -1,
	    .note = MODEL_NOTE_INIT };
	int r;

	shard_init(&x.sh);
	if (n != 1)
		return err_set(e, ERR_USAGE, "one MODEL is needed");
	if (o->act == STAGE && o->way == SWAP_PLACE)
		return err_set(e, ERR_USAGE, "what is done in place cannot be "
		    "staged");
	if (o->act == COMMIT && o->delta != NULL)
		return err_set(e, ERR_USAGE, "--output is for who has the patch, "
		    "--stage or neither");
	if ((r = swap_open(&x.swap, path[0], o->f->cli, e)) == 0)
		r = o->act == COMMIT ? commit(&x, e) :
		    from_input(&x, e);
	release(&x);
	return r;
}

static int
set_act(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct opts *o = arg;

	(void)val;
	if (o->act != APPLY && (int)o->act != row->value)
		return err_set(e, ERR_USAGE, "one of --stage and --commit");
	o->act = row->value == STAGE ? STAGE : COMMIT;
	return 0;
}

static const struct opt options[] = {
	{ 0, "stage", NULL, "make the next model, and leave it beside",
	    OPT_CALL(set_act), .value = STAGE },
	{ 0, "commit", NULL, "put what was staged in the model's place",
	    OPT_CALL(set_act), .value = COMMIT },
	{ 0, "way", "WAY", NULL, OPT_WORD(struct opts, way, swap_ways) },
	{ 'o', "output", "DIR", "write there what changed, as SGLang reads it",
	    OPT_PATH(struct opts, delta, OPT_DIR) },
	{ 'f', "format", "FORMAT", NULL,
	    OPT_WORD(struct opts, coding, delta_codings) },
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
			.usage = "[--stage | --commit] [--way WAY] [-o DIR [-f CODING]] MODEL\n    <PATCH",
			.about = "Makes the next model of a model, by a patch.",
			.examples = "ace-patch model.safetensors <step7.aceg\n"
			    "ace-patch --stage model <step7.aceg && "
			    "ace-patch --commit model\n",
			.opt = options,
			.replaces = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f, .way = SWAP_ANY };

	return program_main(&p, argc, argv, &o);
}
