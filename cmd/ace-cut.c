/*
 * ace-cut: writes selected shards, or selected tensors of them, from files, folders and
 * archives, as one stream.
 */
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "codec/codec.h"
#include "format/frame.h"
#include "format/values.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "pipe/source.h"

struct opts {
	struct filter *f;	/* input and output of the program */
	struct pick pick;
	const char *tensor;	/* a shell pattern, or NULL: all */
};

struct cut {
	const struct opts *o;
	struct writer *w;
	uint64_t shards;		/* shards written */
	uint64_t tensors;		/* selected tensors of all schemas */
	float *x;			/* f32[cap]: values of a group */
	size_t cap;
};

/* Copy the groups of the chosen tensors. Their bodies are copied unchanged, and decoded
 * only for the sums at the shard's end. */
static int
cut_data(struct cut *x, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	const struct record *rec;
	struct schema_span span;
	size_t i, n, len;
	int k = 0;

	rec = reader_records(r, &n);
	for (i = 0; i < n && k == 0; i++) {
		schema_span(sc, rec[i].group, &span);
		if (!pick_tensor(x->o->tensor, sc->t[span.tensor].name))
			continue;
		if (!codec_values(rec[i].codec, rec[i].param))
			return reader_place(r, err_set(e, ERR_DATA, "mismatch: --tensor cannot "
			    "cut '%.160s' of a whole model: its type is %s, expected f32: leave "
			    "--tensor out", sc->t[span.tensor].name,
			    schema_dtype_name(sc->t[span.tensor].dtype)), e);
		if ((k = reader_fetch(r, e)) < 0 || (k = values_decode(r,
		    &rec[i], x->x, x->cap, &len, e)) < 0)
			break;
		k = writer_record(x->w, rec[i].group, rec[i].codec,
		    rec[i].param, rec[i].body, rec[i].len, x->x, len, e);
	}
	return k;
}

static int
cut_tensors(struct cut *x, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	size_t i;
	int k;

	for (i = 0; i < sc->n; i++)
		x->tensors += pick_tensor(x->o->tensor, sc->t[i].name) ? 1 : 0;
	if ((k = alloc_grow(&x->x, &x->cap, sc->group_size, sizeof(*x->x), e)) < 0 ||
	    (k = filter_shard(r, x->w, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND)
			return writer_send(x->w, NULL, e);
		if (k == READER_DATA)
			k = cut_data(x, r, e);
		else if (k == READER_NOTE && frame_safe_to_copy(reader_frame(r)->type))
			k = writer_pass(x->w, r, e);
		if (k < 0)
			break;
	}
	return k;
}

static int
cut_shard(void *arg, struct reader *r, const char *from, struct err *e)
{
	struct cut *x = arg;
	int k;

	x->shards++;
	if (x->o->tensor != NULL && shard_is_patch(reader_shard(r)))
		return reader_place(r, err_set(e, ERR_DATA, "mismatch: the shard is a "
		    "patch, which needs all of its tensors: leave --tensor out"), e);
	if (x->o->tensor == NULL)
		return (k = writer_history(x->w, reader_provenance(r), e)) < 0 ?
		    k : filter_copy(r, x->w, e);
	(void)reader_skip_bodies(r, 1);
	k = cut_tensors(x, r, e);
	(void)reader_skip_bodies(r, 0);
	return k;
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct cut x = { .o = o };
	size_t i = 0;
	int r = filter_out(o->f, &x.w, e);

	if (r == 0)
		do
			r = pick_each(&o->pick, o->f, n != 0 ? path[i] : NULL,
			    cut_shard, &x, e);
		while (++i < n && r == 0);
	if (r == 0 && x.shards == 0)
		r = pick_none(&o->pick, NULL, e);
	if (r == 0 && o->tensor != NULL && x.tensors == 0)
		r = pick_none(&o->pick, o->tensor, e);
	if (x.w != NULL)
		r = filter_end(x.w, r, e);
	writer_free(x.w);
	alloc_free(x.x);
	return r;
}

static const struct opt options[] = {
	OPT_PART(pick_opts, struct opts, pick),
	{ 0, "tensor", "GLOB",
	    "only tensors whose name matches; the others are not sent",
	    OPT_TEXT(struct opts, tensor) },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-cut",
			.usage = "[--step A-B] [--device GLOB] [--kind KIND] "
			    "[--tensor GLOB] [FILE...]",
			.about = "Writes the chosen shards and tensors as one stream.",
			.examples = "ace-cut --step 0-7 --device edge1 spool "
			    ">edge1.aceg\n"
			    "ace-cut --tensor embed edge1.aceg | ace-inspect\n",
			.opt = options
		},
		.open = source_io,
		.run = run
	};
	struct opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
