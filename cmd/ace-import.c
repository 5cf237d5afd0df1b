/*
 * ace-import: makes shards of the files that trainers write: safetensors, npz,
 * npy or raw f32 files become a dense stream, one shard per file.
 */
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "pipe/program.h"
#include "stage/stage_import.h"

static int
set_shape(void *o, const struct opt *row, const char *arg, struct err *e)
{
	struct format_opts *fo = &((struct stage_import_opts *)o)->fo;
	char word[24];
	size_t n;
	int r;

	(void)row;
	fo->ndim = 0;
	for (;;) {
		n = strcspn(arg, ",");
		if (fo->ndim == SCHEMA_MAX_DIM || n >= sizeof(word))
			return err_set(e, ERR_USAGE, "--shape: at most %d "
			    "numbers below 2^40", SCHEMA_MAX_DIM);
		memcpy(word, arg, n);
		word[n] = '\0';
		if ((r = num_u64(&fo->dim[fo->ndim++], word, 0,
		    SCHEMA_MAX_TOTAL, "--shape", e)) < 0)
			return r;
		if (arg[n] == '\0')
			return 0;
		arg += n + 1;
	}
}

static const char *const kinds[] = { "gradient", "delta", "model", NULL };

static int
set_kind(void *arg, const struct opt *row, const char *val, struct err *e)
{
	static const uint32_t kind[] = {
		SHARD_GRADIENT, SHARD_DELTA, SHARD_MODEL
	};
	struct stage_import_opts *o = arg;
	int i, r = num_choice(&i, val, kinds, "--kind", e);

	(void)row;
	if (r == 0)
		o->sh.kind = kind[i];
	return r;
}

static int
set_device(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_import_opts *o = arg;

	(void)row;
	return shard_set_device(&o->sh, val, e);
}

static int
set_run(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_import_opts *o = arg;

	(void)row;
	return shard_set_run(&o->sh, val, e);
}

/* In the stream it stands as it was said. */
static int
set_norm(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_import_opts *o = arg;
	double norm;
	int r = num_f64(&norm, val, 0, 1e300, "--model-norm", e);

	(void)row;
	return r < 0 ? r : text_set(&o->sh.kv, SHARD_KEY_NORM, val, e);
}

static const struct opt options[] = {
	{ 'f', "format", "FORMAT", NULL,
	    OPT_WORD(struct stage_import_opts, format, format_names) },
	{ 'd', "device", "NAME", "the device the shards come from",
	    OPT_CALL(set_device) },
	{ 's', "step", "N", "step of the first FILE",
	    OPT_U64(struct stage_import_opts, sh.step, 0, UINT64_MAX),
	    .def = "0" },
	{ 'r', "run", "NAME", "the training run", OPT_CALL(set_run) },
	{ 'w', "weight", "W", "weight in the aggregate",
	    OPT_F64(struct stage_import_opts, sh.weight, 1e-300, 1e300),
	    .def = "1" },
	{ 'n', "samples", "N", "samples behind a shard",
	    OPT_U64(struct stage_import_opts, sh.samples, 0, UINT64_MAX) },
	{ 'g', "group", "N", "values per group",
	    OPT_U64(struct stage_import_opts, fo.group_size, 1,
	    SCHEMA_MAX_GROUP), .def = "65536" },
	{ 'k', "kind", "KIND", NULL, OPT_CALL(set_kind), .words = kinds },
	{ 0, "model-norm", "X",
	    "the norm of the model, for ace-policy and ace-aggregate",
	    OPT_CALL(set_norm) },
	{ 0, "base-version", "N", "model version of the first FILE",
	    OPT_U64(struct stage_import_opts, sh.base_version, 0,
	    UINT64_MAX) },
	{ 0, "name", "NAME", "npy, raw: the tensor's name",
	    OPT_TEXT(struct stage_import_opts, fo.name) },
	{ 0, "shape", "N,N...", "raw: the tensor's shape",
	    OPT_CALL(set_shape) },
	{ 0, "many", NULL,
	    "safetensors one after another in a FILE, a step each",
	    OPT_FLAG(struct stage_import_opts, many) },
	{ 0, "round", NULL, "round what f32 does not hold exactly",
	    OPT_FLAG(struct stage_import_opts, fo.round) },
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-import",
			.usage = "[-f FORMAT] [-d DEVICE] [-s STEP] [FILE...]",
			.about = "Makes a shard stream of tensor files, one step each.",
			.examples = "ace-import -d edge1 -s 42 grad.safetensors "
			    ">edge1.aceg\n"
			    "cat grad.safetensors | ace-import -d edge1 | "
			    "ace-score >scored.aceg\n",
			.opt = options
		},
		.run = stage_import_run
	};
	struct stage_import_opts o = { .f = &p.f, .format = -1 };
	int status;

	shard_init(&o.sh);
	status = program_main(&p, argc, argv, &o);
	shard_release(&o.sh);
	return status;
}
