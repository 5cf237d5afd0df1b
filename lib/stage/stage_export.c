#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "format/values.h"
#include "pipe/filter.h"
#include "stage/stage_export.h"

struct stage_export {
	const struct stage_export_opts *o;
	struct reader *in;
	struct io *out;
	struct format_sink *sink;
	struct values v;
	char found[SHARD_NAME + 32];	/* the shard written, or "" */
};

static int
stage_export_wanted(const struct stage_export_opts *o, const struct shard *sh)
{
	return (!o->has_step || sh->step == o->step) &&
	    (o->device == NULL || strcmp(shard_device(sh), o->device) == 0);
}

static int
stage_export_create(struct stage_export *x, struct err *e)
{
	struct format_sink_opts so = x->o->so;
	int f = x->o->format;

	if (f < 0)
		f = format_guess(x->o->f->output);
	if (f < 0)
		f = FORMAT_SAFETENSORS;
	so.note = &reader_shard(x->in)->kv;
	return format_create(&x->sink, (enum format_id)f, x->out,
	    reader_schema(x->in), &so, e);
}

static int
stage_export_shard(struct stage_export *x, struct err *e)
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
	if ((r = stage_export_create(x, e)) < 0 ||
	    (r = values_begin(&x->v, x->in, e)) < 0)
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

int
stage_export_run(const struct stage_export_opts *o, const char *path,
    struct err *e)
{
	struct stage_export x = { .o = o, .v = VALUES_INIT };
	int r;

	if ((r = filter_in(o->f, &x.in, path, e)) < 0 ||
	    (r = io_create(&x.out, o->f->output, o->f->force, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && stage_export_wanted(o, reader_shard(x.in)) &&
		    (r = stage_export_shard(&x, e)) < 0)
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
