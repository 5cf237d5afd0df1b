/*
 * ace-export: converts one shard of a stream to a file that trainers read:
 * safetensors, npz, npy or raw f32; or each shard, one file after another.
 */
#include "base/num.h"
#include "pipe/program.h"
#include "pipe/source.h"
#include "stage/stage_export.h"

enum { OPT_STEP = CLI_LONG, OPT_DEVICE, OPT_MANY, OPT_TENSOR, OPT_F32,
	OPT_DEFLATE };

static const struct cli_opt options[] = {
	{ 'f', "format", "FORMAT", "safetensors, npz, npy or raw" },
	{ OPT_STEP, "step", "N", "the shard of this step" },
	{ OPT_DEVICE, "device", "NAME", "the shard of this device" },
	{ OPT_TENSOR, "tensor", "GLOB", "only tensors whose name matches" },
	{ OPT_MANY, "many", NULL,
	    "all shards, safetensors one after another" },
	{ OPT_F32, "f32", NULL, "all tensors as f32, whatever the model's" },
	{ OPT_DEFLATE, "deflate", NULL, "npz: compress the entries" },
	{ 'o', "output", "FILE", "write FILE, whole or not at all" },
	{ FILTER_FORCE, "force", NULL, "write binary to a terminal" },
	FILTER_OPTS_IN,
	{ 0, NULL, NULL, NULL }
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct stage_export_opts *o = arg;

	switch (key) {
	case 'f':
		return num_choice(&o->format, val, format_written, "format", e);
	case OPT_STEP:
		o->has_step = 1;
		return num_u64(&o->step, val, 0, UINT64_MAX, "--step", e);
	case OPT_DEVICE:
		o->device = val;
		return 0;
	case OPT_TENSOR:
		o->tensor = val;
		return 0;
	case OPT_MANY:
		o->many = 1;
		return 0;
	case OPT_F32:
		o->so.f32 = 1;
		return 0;
	case OPT_DEFLATE:
		o->so.deflate = 1;
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
			.prog = "ace-export",
			.usage = "[-f FORMAT] [-o FILE] [--step N] [--device NAME] "
			    "[--tensor GLOB]\n    [FILE]",
			.about = "Writes one shard of a stream as a tensor file.",
			.examples = "ace-export -o mean.safetensors edge1.aceg\n"
			    "cat edge1.aceg edge2.aceg | ace-export --device "
			    "edge2 -o edge2.npz\n",
			.opt = options,
			.one = 1
		},
		.open = source_io,
		.set = set,
		.run = stage_export_run
	};
	struct stage_export_opts o = { .f = &p.f, .format = -1 };

	return program_main(&p, argc, argv, &o);
}
