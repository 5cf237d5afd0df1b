#include <string.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "pipe/filter.h"
#include "stage/stage_import.h"

/* Standard input has no file name to tell the format by: it is safetensors. */
static int
stage_import_which(const struct stage_import_opts *o, const char *path,
    struct err *e)
{
	int f = o->format >= 0 ? o->format : format_guess(path);

	if (f < 0 && strcmp(path, "-") == 0)
		f = FORMAT_SAFETENSORS;
	if (f < 0)
		return err_set(e, ERR_USAGE, "'%s': which format? its name does "
		    "not tell, -f does", path);
	return f;
}

static int
stage_import_values(struct format_source *src, struct writer *w, struct err *e)
{
	const struct schema *sc = format_schema(src);
	struct schema_span span;
	uint32_t g;
	float *x = alloc_get(sc->group_size, sizeof(*x), e);
	int r = x != NULL ? 0 : -ERR_SYS;

	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		if ((r = format_read(src, x, span.n, e)) == 0)
			r = writer_values(w, g, x, span.n, e);
	}
	alloc_free(x);
	return r < 0 ? r : format_end(src, e);
}

/* The annotations of shard i: those of the options, i steps further, and the
 * notes in the file itself. */
static int
stage_import_describe(const struct stage_import_opts *o, size_t i,
    const struct format_source *src, struct shard *sh, struct err *e)
{
	const struct text_kv *note = format_note(src);
	size_t k;
	int r = shard_copy(sh, &o->sh, e);

	sh->step += i;
	sh->base_version += o->sh.base_version != 0 ? i : 0;
	if (r == 0 && sh->step < i)
		r = err_set(e, ERR_USAGE, "--step: too large for %zu files",
		    o->npath);
	for (k = 0; k < note->n && r == 0; k++)
		r = text_set(&sh->kv, note->p[k].key, note->p[k].value, e);
	return r;
}

static int
stage_import_file(const struct stage_import_opts *o, size_t i,
    struct schema *first, struct writer *w, struct err *e)
{
	const char *path = o->path[i];
	struct format_source *src = NULL;
	struct shard sh;
	char why[256];
	int r;

	shard_init(&sh);
	if ((r = stage_import_which(o, path, e)) < 0 ||
	    (r = format_open(&src, (enum format_id)r, path, &o->fo, e)) < 0)
		goto out;
	if (i == 0 && o->npath > 1)
		r = schema_copy(first, format_schema(src), e);
	else if (i > 0 && schema_diff(first, format_schema(src), why))
		r = err_set(e, ERR_DATA, "mismatch: '%s' is not like '%s': %s",
		    path, o->path[0], why);
	if (r == 0 && (r = stage_import_describe(o, i, src, &sh, e)) == 0 &&
	    (r = writer_shard(w, &sh, format_schema(src), e)) == 0 &&
	    (r = stage_import_values(src, w, e)) == 0)
		r = writer_send(w, NULL, e);
	if (r == 0 && (format_rounded(src) != 0 || o->fo.round))
		cli_say(o->cli, 1, "'%s': %llu of %llu values rounded to f32",
		    path, (unsigned long long)format_rounded(src),
		    (unsigned long long)format_schema(src)->total);
out:
	shard_release(&sh);
	format_close(src);
	return r;
}

int
stage_import_run(const struct stage_import_opts *o, struct err *e)
{
	struct schema first = SCHEMA_INIT;
	struct writer *w = NULL;
	size_t i;
	int r = filter_out(o->f, &w, e);

	for (i = 0; i < o->npath && r == 0; i++)
		r = stage_import_file(o, i, &first, w, e);
	if (w != NULL)
		r = filter_end(w, r, e);
	writer_free(w);
	schema_release(&first);
	return r;
}
