/*
 * ace-diff: writes a patch that turns one model into another, exactly: a shard of kind model
 * with the groups that change, coded given the old values; or a shard with a whole model.
 */
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/progress_bar.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "model/model.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* the program's output and threads */
	struct shard sh;
};

/* A group that is being coded.  There are as many slots as threads. */
struct slot {
	uint32_t group;
	unsigned char *old, *new;
	struct buf body;
	uint8_t param;
	int changed;		/* number of values to send; 0: leave out the group */
	uint64_t sum;		/* checksum of the new bytes */
};

struct diff {
	const struct opts *o;
	struct model old, new;
	int whole;		/* 1: there is no old model */
	unsigned char (*before)[MODEL_HASH], (*after)[MODEL_HASH];	/* hash per group */
	struct model_note note;
	struct pool *pool;
	struct slot *slot;
	unsigned slots;
	struct writer *w;
	struct shard sh;
	uint64_t changed;	/* number of changed values so far */
};

/* Code one group.  Both models have the same tensor table and so the same groups. */
static int
code_group(void *arg, unsigned who, size_t i, struct err *e)
{
	struct diff *d = arg;
	struct slot *s = &d->slot[i];
	struct model_span a, b;
	int r;

	(void)who;
	s->body.n = 0;
	model_span(&d->new, s->group, &b);
	if ((r = model_read(&d->new, &b, s->new, e)) < 0)
		return r;
	s->sum = hash_both(s->new, b.bytes, d->after[s->group]);
	if (!d->whole) {
		model_span(&d->old, s->group, &a);
		if ((r = model_read(&d->old, &a, s->old, e)) < 0)
			return r;
		s->changed = memcmp(s->old, s->new, b.bytes) != 0;
		if (!s->changed) {
			memcpy(d->before[s->group], d->after[s->group], MODEL_HASH);
			return 0;
		}
		hash_128(s->old, a.bytes, d->before[s->group]);
	}
	s->changed = exact_put(b.form, d->whole ? NULL : s->old, s->new, b.words,
	    &s->body, &s->param, e);
	return s->changed < 0 ? s->changed : 0;
}

static int
put_group(struct diff *d, const struct slot *s, struct err *e)
{
	struct schema_span span;
	float *x = NULL;
	int r;

	if (!s->changed)
		return 0;
	schema_span(&d->new.schema, s->group, &span);
	if ((r = model_note_add(&d->note, s->sum, e)) < 0 ||
	    (!d->whole && (r = model_note_changed(&d->note,
	    (uint64_t)s->changed, e)) < 0))
		return r;
	d->changed += (uint64_t)s->changed;
	/* the shard's sums include only values that a reader without the old model has */
	if (codec_values(CODEC_EXACT, s->param)) {
		if ((x = alloc_raw(span.n, sizeof(*x), e)) == NULL)
			return -ERR_SYS;
		bytes_get_f32(x, s->new, span.n);
	}
	r = writer_record(d->w, s->group, CODEC_EXACT, s->param, s->body.p,
	    s->body.n, x, span.n, e);
	alloc_free(x);
	return r;
}

static int
put_groups(struct diff *d, struct err *e)
{
	const uint32_t all = d->new.schema.ngroups;
	struct progress_bar bar;
	uint32_t g, k;
	size_t i;
	int r = 0;

	progress_bar_begin(&bar, d->o->f->cli);
	for (g = 0; g < all && r == 0; g += k) {
		k = all - g < d->slots ? all - g : d->slots;
		for (i = 0; i < k; i++)
			d->slot[i].group = g + (uint32_t)i;
		progress_bar_show(&bar, g, all, "groups");
		r = pool_run(d->pool, k, (size_t)k * MODEL_GROUP, code_group, d, e);
		for (i = 0; i < k && r == 0; i++)
			r = put_group(d, &d->slot[i], e);
	}
	progress_bar_end(&bar);
	return r;
}

/* Write the hashes of both models.  They are known only after all groups. */
static int
put_note(struct diff *d, struct err *e)
{
	struct buf b = BUF_INIT;
	int r;

	if (!d->whole)
		model_hash(&d->old, d->before, d->note.before);
	model_hash(&d->new, d->after, d->note.after);
	if ((r = model_note_encode(&d->note, &b, e)) == 0)
		r = writer_note(d->w, FRAME_MODL, b.p, b.n, e);
	buf_release(&b);
	return r;
}

static int
room(struct diff *d, struct err *e)
{
	size_t n = d->new.schema.ngroups, most = model_most(&d->new), i;

	d->slots = pool_size(d->pool);
	if ((d->before = alloc_get(n, 2 * MODEL_HASH, e)) == NULL ||
	    (d->slot = alloc_get(d->slots, sizeof(*d->slot), e)) == NULL)
		return -ERR_SYS;
	d->after = d->before + n;
	for (i = 0; i < d->slots; i++)
		if ((d->slot[i].new = alloc_raw(most, 1, e)) == NULL || (!d->whole &&
		    (d->slot[i].old = alloc_raw(most, 1, e)) == NULL))
			return -ERR_SYS;
	return 0;
}

static void
release(struct diff *d)
{
	size_t i;

	for (i = 0; d->slot != NULL && i < d->slots; i++) {
		alloc_free(d->slot[i].old);
		alloc_free(d->slot[i].new);
		buf_release(&d->slot[i].body);
	}
	alloc_free(d->slot);
	alloc_free(d->before);
	pool_free(d->pool);
	model_note_release(&d->note);
	model_close(&d->old);
	model_close(&d->new);
	shard_release(&d->sh);
}

/* Return 0 if both models have the same tensors; warn if their metadata differ. */
static int
alike(const struct diff *d, char **path, struct err *e)
{
	char why[256];

	if (schema_diff(&d->old.schema, &d->new.schema, why))
		return err_set(e, ERR_DATA, "mismatch: '%s' and '%s' have different "
		    "tensors: %s", path[0], path[1], why);
	if (d->old.said != d->new.said)
		cli_say(d->o->f->cli, 0, "'%s' and '%s' differ in metadata, which a "
		    "patch does not carry: the patched model keeps the old metadata",
		    path[0], path[1]);
	return 0;
}

static int
open_models(struct diff *d, char **path, size_t n, struct err *e)
{
	int r;

	d->whole = n == 1;
	if (n < 1 || n > 2)
		return err_set(e, ERR_USAGE, "expected OLD and NEW, or one model, found %zu "
		    "operands", n);
	if ((r = model_open(&d->new, path[n - 1], e)) < 0 ||
	    (!d->whole && (r = model_open(&d->old, path[0], e)) < 0))
		return r;
	if (!d->whole)
		return alike(d, path, e);
	if (d->new.said != 0)
		cli_say(d->o->f->cli, 0, "'%s' has metadata, which a whole model's "
		    "shard does not carry: the receiver keeps its own, if any", path[0]);
	return 0;
}

/* Begin the shard.  With an old model set SHARD_PREDICTED, so that readers that do not know
 * patches refuse the shard. */
static int
begin(struct diff *d, struct err *e)
{
	int r;

	if ((r = shard_copy(&d->sh, &d->o->sh, e)) < 0)
		return r;
	d->sh.kind = SHARD_MODEL;
	if (!d->whole) {
		d->sh.flags |= SHARD_PREDICTED;
		if ((r = text_set(&d->sh.kv, SHARD_KEY_PREDICT,
		    SHARD_PREDICT_PATCH, e)) < 0 ||
		    (r = text_set(&d->sh.kv, SHARD_KEY_HISTORY, "none", e)) < 0)
			return r;
	}
	return writer_shard(d->w, &d->sh, &d->new.schema, e);
}

static int
write_patch(struct diff *d, struct err *e)
{
	int r;

	if ((r = begin(d, e)) < 0 || (r = put_groups(d, e)) < 0 ||
	    (r = model_same(&d->new, e)) < 0 || (r = model_same(&d->old, e)) < 0 ||
	    (r = put_note(d, e)) < 0)
		return r;
	return writer_send(d->w, NULL, e);
}

static void
tell(const struct diff *d)
{
	char before[MODEL_HEX] = "nothing", after[MODEL_HEX];

	if (!d->whole)
		shard_hex(d->note.before, before);
	shard_hex(d->note.after, after);
	cli_say(d->o->f->cli, 1, "from %s to %s: changed: %zu of %lu groups, %llu of "
	    "%llu values, %llu bytes instead of %llu (no headers)", before, after, d->note.n,
	    (unsigned long)d->new.schema.ngroups, (unsigned long long)d->changed,
	    (unsigned long long)d->new.schema.total,
	    (unsigned long long)writer_sent(d->w)->wire,
	    (unsigned long long)model_bytes(&d->new));
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct diff d = { .o = o, .old = MODEL_INIT, .new = MODEL_INIT,
	    .note = MODEL_NOTE_INIT };
	int r;

	shard_init(&d.sh);
	if ((r = filter_out(o->f, &d.w, e)) == 0 &&
	    (r = open_models(&d, path, n, e)) == 0 &&
	    (r = pool_new(&d.pool, o->f->threads, e)) == 0 &&
	    (r = room(&d, e)) == 0 && (r = write_patch(&d, e)) == 0)
		tell(&d);
	if (d.w != NULL)
		r = filter_end(d.w, r, e);
	writer_free(d.w);
	release(&d);
	return r;
}

static const struct opt options[] = {
	OPT_PART(filter_opts_of, struct opts, sh),
	{ 's', "step", "N", "step of the new model",
	    OPT_U64(struct opts, sh.step, 0, UINT64_MAX), .def = "0" },
	{ 0, "base-version", "N", "step of the old model",
	    OPT_U64(struct opts, sh.base_version, 0, UINT64_MAX) },
	FILTER_OPT_THREADS,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-diff",
			.usage = "[-d DEVICE] [-s STEP] [-o FILE] [OLD] NEW",
			.about = "Writes the patch that makes one model of another.",
			.examples = "ace-diff old.safetensors new.safetensors "
			    ">step7.aceg\n"
			    "ace-diff old new | ace-patch model\n",
			.opt = options,
			.models = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f };
	int status;

	shard_init(&o.sh);
	status = program_main(&p, argc, argv, &o);
	shard_release(&o.sh);
	return status;
}
