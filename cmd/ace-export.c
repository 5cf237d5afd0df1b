/*
 * ace-export: one shard of a stream back to what trainers read: safetensors,
 * npz, npy or raw f32.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "files/format.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum { OPT_STEP = CLI_LONG, OPT_DEVICE, OPT_F32, OPT_DEFLATE };

static const struct cli_opt options[] = {
	{ 'f', "format", "FORMAT", "safetensors, npz, npy or raw" },
	{ OPT_STEP, "step", "N", "the shard of this step" },
	{ OPT_DEVICE, "device", "NAME", "the shard of this device" },
	{ OPT_F32, "f32", NULL, "all tensors as f32, whatever the model's" },
	{ OPT_DEFLATE, "deflate", NULL, "npz: compress the entries" },
	{ 'o', "output", "FILE", "write FILE, whole or not at all" },
	{ FILTER_FORCE, "force", NULL, "write binary to a terminal" },
	FILTER_OPTS_IN,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	int format;		/* -1: by the output's name */
	int has_step;
	uint64_t step;
	const char *device;
	struct format_sink_opts so;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'f':
		return num_choice(&o->format, val, format_names, "format", e);
	case OPT_STEP:
		o->has_step = 1;
		return num_u64(&o->step, val, 0, UINT64_MAX, "--step", e);
	case OPT_DEVICE:
		o->device = val;
		return 0;
	case OPT_F32:
		o->so.f32 = 1;
		return 0;
	case OPT_DEFLATE:
		o->so.deflate = 1;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
wanted(const struct opts *o, const struct shard *sh)
{
	return (!o->has_step || sh->step == o->step) &&
	    (o->device == NULL || strcmp(shard_device(sh), o->device) == 0);
}

struct run {
	const struct opts *o;
	struct reader *in;
	struct io *out;
	struct format_sink *sink;
	struct values v;
	char found[SHARD_NAME + 32];	/* the shard written, or "" */
};

static int
create(struct run *x, struct err *e)
{
	struct format_sink_opts so = x->o->so;
	int f = x->o->format;

	if (f < 0)
		f = format_guess(x->o->f.output);
	if (f < 0)
		f = FORMAT_SAFETENSORS;
	so.note = &reader_shard(x->in)->kv;
	return format_create(&x->sink, (enum format_id)f, x->out,
	    reader_schema(x->in), &so, e);
}

static int
export_shard(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	char name[sizeof(x->found)];
	int r;

	(void)snprintf(name, sizeof(name), "%s/%llu", shard_device(sh),
	    (unsigned long long)sh->step);
	if (x->found[0] != '\0')
		return err_set(e, ERR_USAGE, "more than one shard in '%s', "
		    "'%s' and '%s': --step and --device choose",
		    reader_name(x->in), x->found, name);
	memcpy(x->found, name, sizeof(name));
	if ((r = create(x, e)) < 0 || (r = values_begin(&x->v, x->in, e)) < 0)
		return r;
	while ((r = values_next(&x->v, e)) > 0)
		if ((r = format_write(x->sink, x->v.x, x->v.n, e)) < 0)
			break;
	if (r == 0)
		r = format_finish(x->sink, e);
	format_free(x->sink);
	x->sink = NULL;
	return r;
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .v = VALUES_INIT };
	int r;

	if ((r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = io_create(&x.out, o->f.output, o->f.force, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && wanted(o, reader_shard(x.in)) &&
		    (r = export_shard(&x, e)) < 0)
			break;
	if (r == 0 && x.found[0] == '\0')
		r = err_set(e, ERR_DATA, "mismatch: no such shard in '%s'",
		    reader_name(x.in));
	if (r == 0)
		r = io_commit(x.out, IO_SYNC_FULL, e);
out:
	values_release(&x.v);
	format_free(x.sink);
	io_free(x.out);
	reader_free(x.in);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-export",
		.usage = "[-f FORMAT] [-o FILE] [--step N] [--device NAME] "
		    "[FILE]",
		.about = "Writes one shard of a stream as a tensor file.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .format = -1 };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
