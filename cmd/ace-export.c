/*
 * ace-export: converts one shard of a stream to a file that trainers read:
 * safetensors, npz, npy or raw f32; or each shard, one file after another.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "files/format.h"
#include "format/values.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "pipe/source.h"

struct opts {
	struct filter *f;	/* input and output */
	int format;		/* -1: by the output's name */
	struct pick pick;	/* the shard to export; with `many', the shards */
	const char *tensor;	/* shell pattern of tensors; NULL: all */
	int many;		/* 1: all shards, one file after another */
	struct format_sink_opts so;
};

struct export {
	const struct opts *o;
	struct reader *in;
	struct io *out;
	struct format_sink *sink;
	struct schema chosen;	/* the tensors to write to the file */
	struct values v;
	struct text_kv note;
	char found[SHARD_NAME + 48];	/* the shard that was written, or "" */
	float *last;		/* the group that waits for the shard's end */
	size_t nlast, room;
};

/* Make the schema of the tensors that --tensor selects. */
static int
choose(struct export *x, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	size_t i;
	int r = 0;

	schema_release(&x->chosen);
	x->chosen = (struct schema)SCHEMA_INIT;
	x->chosen.group_size = sc->group_size;
	for (i = 0; i < sc->n && r == 0; i++)
		if (pick_tensor(x->o->tensor, sc->t[i].name))
			r = schema_add(&x->chosen, &sc->t[i], e);
	if (r == 0 && x->chosen.n == 0)
		r = pick_none(&x->o->pick, x->o->tensor, e);
	return r < 0 ? r : schema_finish(&x->chosen, e);
}

/* Collect the shard's metadata and, for --many, its run, kind and step, and the digest of
 * the model, if its contributors agree on it. */
static int
describe(struct export *x, struct err *e)
{
	static const char *const keys[] = { SHARD_KEY_RUN, SHARD_KEY_MODEL };
	const struct shard *sh = reader_shard(x->in);
	char key[64];
	size_t i;
	int r;

	text_release(&x->note);
	x->note = (struct text_kv)TEXT_KV_INIT;
	if ((r = text_copy(&x->note, &sh->kv, e)) < 0 || !x->o->many)
		return r;
	for (i = 0; i < sizeof(keys) / sizeof(*keys) && r == 0; i++) {
		(void)snprintf(key, sizeof(key), "safetensors.%s", keys[i]);
		r = text_set(&x->note, key, text_get(&sh->kv, keys[i]), e);
	}
	if (r == 0)
		r = text_set(&x->note, "safetensors.kind",
		    shard_kind_name(sh->kind), e);
	return r < 0 ? r : text_setf(&x->note, "safetensors.step", e, "%llu",
	    (unsigned long long)sh->step);
}

static int
create(struct export *x, struct err *e)
{
	struct format_sink_opts so = x->o->so;
	int f = x->o->format, r;

	if (x->o->tensor != NULL && (r = choose(x, e)) < 0)
		return r;
	if (f < 0)
		f = format_guess(x->o->f->output);
	if (f < 0)
		f = FORMAT_SAFETENSORS;
	if (x->o->many && f != FORMAT_SAFETENSORS)
		return err_set(e, ERR_USAGE, "--many writes only safetensors: leave "
		    "--many out, or give -f safetensors");
	if ((r = describe(x, e)) < 0)
		return r;
	so.note = &x->note;
	return format_create(&x->sink, (enum format_id)f, x->out,
	    x->o->tensor != NULL ? &x->chosen : reader_schema(x->in), &so, e);
}

/* Write the pending group, if any, and keep the n new values (0: none) for later. */
static int
put_later(struct export *x, const float *v, size_t n, struct err *e)
{
	int r = format_write(x->sink, x->last, x->nlast, e);

	x->nlast = 0;
	if (r < 0 || n == 0)
		return r;
	if (n > x->room) {
		alloc_free(x->last);
		x->room = 0;
		if ((x->last = alloc_get(n, sizeof(*v), e)) == NULL)
			return -ERR_SYS;
		x->room = n;
	}
	memcpy(x->last, v, n * sizeof(*v));
	x->nlast = n;
	return 0;
}

/* Return 1 if the current group belongs to a selected tensor. */
static int
group_wanted(const struct export *x)
{
	return pick_tensor(x->o->tensor, schema_name(reader_schema(x->in), x->v.group));
}

/* Write the values and, once they are verified, the end of the file. */
static int
put_values(struct export *x, struct err *e)
{
	int r;

	while ((r = values_next(&x->v, e)) > 0)
		if (group_wanted(x) && (r = x->o->many ?
		    put_later(x, x->v.x, x->v.n, e) :
		    format_write(x->sink, x->v.x, x->v.n, e)) < 0)
			break;
	if (r < 0 || (r = put_later(x, NULL, 0, e)) < 0 ||
	    (r = format_finish(x->sink, e)) < 0)
		return r;
	return x->o->many ? io_flush(x->out, e) : 0;
}

static int
put_shard(struct export *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	char name[sizeof(x->found)];
	int r;

	(void)snprintf(name, sizeof(name), "'%s/%llu' (%s)", shard_device(sh),
	    (unsigned long long)sh->step, shard_kind_name(sh->kind));
	if (x->found[0] != '\0' && !x->o->many)
		return err_set(e, ERR_USAGE, "'%s' has more than one shard, %s and %s: "
		    "choose one with --step, --device or --kind, or write all as "
		    "safetensors with --many", reader_name(x->in), x->found, name);
	memcpy(x->found, name, sizeof(name));
	if ((r = create(x, e)) >= 0 && (r = values_begin(&x->v, x->in, e)) >= 0)
		r = put_values(x, e);
	if (r == -ERR_DATA && x->o->many && e->shard == 0)
		r = err_after(e, r, ", in shard %s", x->found);
	format_free(x->sink);
	x->sink = NULL;
	return r;
}

/* Export the shard that --step, --device and --kind select: exactly one, or any number with
 * --many. An output file gets its name after all values were verified. --many writes the last
 * group of a shard only after the shard's end was verified. */
static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct export x = { .o = o, .chosen = SCHEMA_INIT,
	    .v = VALUES_INIT, .note = TEXT_KV_INIT };
	int r;

	if ((r = filter_in(o->f, &x.in, *path, e)) < 0 ||
	    (r = io_create(&x.out, o->f->output, 0, e)) < 0)
		goto out;
	while ((r = reader_to_shard(x.in, e)) > 0)
		if (pick_wants(&o->pick, reader_shard(x.in)) &&
		    (r = put_shard(&x, e)) < 0)
			break;
	if (r == 0 && x.found[0] == '\0' && !o->many)
		r = pick_none(&o->pick, NULL, e);
	if (r == 0)
		r = io_commit(x.out, IO_SYNC_FULL, e);
out:
	values_release(&x.v);
	schema_release(&x.chosen);
	text_release(&x.note);
	alloc_free(x.last);
	format_free(x.sink);
	io_free(x.out);
	reader_free(x.in);
	return r;
}

static const struct opt options[] = {
	{ 'f', "format", "FORMAT", NULL, OPT_WORD(struct opts, format, format_names) },
	OPT_PART(pick_opts, struct opts, pick),
	{ 0, "tensor", "GLOB", "only tensors whose name matches",
	    OPT_TEXT(struct opts, tensor) },
	{ 0, "many", NULL, "write all shards, safetensors one after another",
	    OPT_FLAG(struct opts, many) },
	{ 0, "f32", NULL, "write all tensors as f32, whatever their type",
	    OPT_FLAG(struct opts, so.f32) },
	OPT_SHARED(filter_opts_file),
	FILTER_OPTS_IN,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-export",
			.usage = "[-f FORMAT] [-o FILE] [--step A-B] [--device GLOB] "
			    "[--kind KIND]\n    [--tensor GLOB] [FILE]",
			.about = "Writes one shard of a stream as a tensor file.",
			.examples = "ace-export -o mean.safetensors edge1.aceg\n"
			    "cat edge1.aceg edge2.aceg | ace-export --device "
			    "edge2 -o edge2.npz\n",
			.opt = options,
			.one = 1
		},
		.open = source_io,
		.run = run
	};
	struct opts o = { .f = &p.f, .format = -1, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
