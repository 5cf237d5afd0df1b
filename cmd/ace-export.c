/*
 * ace-export: converts one shard of a stream to a file that trainers read:
 * safetensors, npz, npy or raw f32; or each shard, one file after another.
 */
#include "pipe/program.h"
#include "pipe/source.h"
#include "stage/stage_export.h"

static int
set_step(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_export_opts *o = arg;

	(void)row, (void)val, (void)e;
	o->has_step = 1;
	return 0;
}

static const struct opt options[] = {
	{ 'f', "format", "FORMAT", NULL,
	    OPT_WORD(struct stage_export_opts, format, format_written) },
	{ 0, "step", "N", "the shard of this step",
	    OPT_U64(struct stage_export_opts, step, 0, UINT64_MAX),
	    .set = set_step },
	{ 0, "device", "NAME", "the shard of this device",
	    OPT_TEXT(struct stage_export_opts, device) },
	{ 0, "tensor", "GLOB", "only tensors whose name matches",
	    OPT_TEXT(struct stage_export_opts, tensor) },
	{ 0, "many", NULL, "all shards, safetensors one after another",
	    OPT_FLAG(struct stage_export_opts, many) },
	{ 0, "f32", NULL, "all tensors as f32, whatever the model's",
	    OPT_FLAG(struct stage_export_opts, so.f32) },
	{ 0, "deflate", NULL, "npz: compress the entries",
	    OPT_FLAG(struct stage_export_opts, so.deflate) },
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
		.run = stage_export_run
	};
	struct stage_export_opts o = { .f = &p.f, .format = -1 };

	return program_main(&p, argc, argv, &o);
}
