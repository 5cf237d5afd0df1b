/*
 * ace-import: makes shards of the files that trainers write: safetensors, npz,
 * npy or raw f32 files become a dense stream, one shard per file.
 */
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "pipe/program.h"
#include "stage/stage_import.h"

enum {
	OPT_NAME = CLI_LONG, OPT_SHAPE, OPT_ROUND, OPT_BASE, OPT_NORM, OPT_MANY
};

static const struct cli_opt options[] = {
	{ 'f', "format", "FORMAT", "safetensors, npz, npy, raw or gguf" },
	{ 'd', "device", "NAME", "the device the shards come from" },
	{ 's', "step", "N", "step of the first FILE (default 0)" },
	{ 'r', "run", "NAME", "the training run" },
	{ 'w', "weight", "W", "weight in the aggregate (default 1)" },
	{ 'n', "samples", "N", "samples behind a shard" },
	{ 'g', "group", "N", "values per group (default 65536)" },
	{ 'k', "kind", "KIND", "gradient, delta or model" },
	{ OPT_NORM, "model-norm", "X",
	    "the norm of the model, for ace-policy and ace-aggregate" },
	{ OPT_BASE, "base-version", "N", "model version of the first FILE" },
	{ OPT_NAME, "name", "NAME", "npy, raw: the tensor's name" },
	{ OPT_SHAPE, "shape", "N,N...", "raw: the tensor's shape" },
	{ OPT_MANY, "many", NULL,
	    "safetensors one after another in a FILE, a step each" },
	{ OPT_ROUND, "round", NULL, "round what f32 does not hold exactly" },
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

static int
set_shape(struct format_opts *fo, const char *arg, struct err *e)
{
	char word[24];
	size_t n;
	int r;

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

static int
set_kind(struct shard *sh, const char *arg, struct err *e)
{
	static const char *const names[] = {
		"gradient", "delta", "model", NULL
	};
	static const uint32_t kinds[] = {
		SHARD_GRADIENT, SHARD_DELTA, SHARD_MODEL
	};
	int i, r = num_choice(&i, arg, names, "--kind", e);

	if (r == 0)
		sh->kind = kinds[i];
	return r;
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct stage_import_opts *o = arg;
	double norm;
	uint64_t u;
	int r;

	switch (key) {
	case 'f':
		return num_choice(&o->format, val, format_names, "format", e);
	case 'd':
		return shard_set_device(&o->sh, val, e);
	case 's':
		return num_u64(&o->sh.step, val, 0, UINT64_MAX, "--step", e);
	case 'r':
		return shard_set_run(&o->sh, val, e);
	case 'w':
		return num_f64(&o->sh.weight, val, 1e-300, 1e300, "--weight",
		    e);
	case 'n':
		return num_u64(&o->sh.samples, val, 0, UINT64_MAX, "--samples",
		    e);
	case 'g':
		r = num_u64(&u, val, 1, SCHEMA_MAX_GROUP, "--group", e);
		o->fo.group_size = r == 0 ? (uint32_t)u : 0;
		return r;
	case 'k':
		return set_kind(&o->sh, val, e);
	case OPT_BASE:
		return num_u64(&o->sh.base_version, val, 0, UINT64_MAX,
		    "--base-version", e);
	case OPT_NORM:
		if ((r = num_f64(&norm, val, 0, 1e300, "--model-norm", e)) < 0)
			return r;
		return text_set(&o->sh.kv, SHARD_KEY_NORM, val, e);
	case OPT_NAME:
		o->fo.name = val;
		return 0;
	case OPT_SHAPE:
		return set_shape(&o->fo, val, e);
	case OPT_MANY:
		o->many = 1;
		return 0;
	case OPT_ROUND:
		o->fo.round = 1;
		return 0;
	default:
		return 0;
	}
}

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
		.set = set,
		.run = stage_import_run
	};
	struct stage_import_opts o = { .f = &p.f, .format = -1 };
	int status;

	shard_init(&o.sh);
	status = program_main(&p, argc, argv, &o);
	shard_release(&o.sh);
	return status;
}
