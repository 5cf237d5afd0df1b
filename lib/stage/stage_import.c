#include <string.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/magic.h"
#include "pipe/filter.h"
#include "stage/stage_import.h"

struct stage_import {
	const struct stage_import_opts *o;
	struct writer *w;
	const char *first_path;	/* of the first file, */
	struct schema first;	/* and what is in it */
	uint64_t done;		/* shards */
};

/* The name says nothing of the format; what the file is may say more. */
static int
stage_import_unnamed(const char *path, struct err *e)
{
	unsigned char b[MAGIC_SIZE];
	const char *is = NULL;
	struct io *io;
	size_t n;
	int r = io_open(&io, path, e);

	if (r < 0)
		return r;
	if ((r = io_read(io, b, sizeof(b), &n, e)) == 0)
		is = magic_name(b, n);
	io_free(io);
	if (r < 0)
		return r;
	return err_set(e, ERR_USAGE, "'%s': which format? its name does not "
	    "tell, -f does%s%s", path, is != NULL ? "; it is " : "",
	    is != NULL ? is : "");
}

/* Standard input has no file name to tell the format by: it is safetensors. */
static int
stage_import_which(const struct stage_import_opts *o, const char *path,
    struct err *e)
{
	int f = o->format >= 0 ? o->format : format_guess(path);

	if (f < 0 && strcmp(path, "-") == 0)
		f = FORMAT_SAFETENSORS;
	return f < 0 ? stage_import_unnamed(path, e) : f;
}

static int
stage_import_values(const struct stage_import_opts *o,
    struct format_source *src, struct writer *w, struct err *e)
{
	const struct schema *sc = format_schema(src);
	const uint64_t all = sc->total * sizeof(float);
	struct schema_span span;
	struct bar bar;
	uint64_t done = 0;
	uint32_t g;
	float *x = alloc_get(sc->group_size, sizeof(*x), e);
	int r = x != NULL ? 0 : -ERR_SYS;

	bar_begin(&bar, o->f->cli);
	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		bar_show(&bar, done, all, "B");
		done += span.n * sizeof(float);
		if ((r = format_read(src, x, span.n, e)) == 0)
			r = writer_values(w, g, x, span.n, e);
	}
	bar_end(&bar);
	alloc_free(x);
	return r < 0 ? r : format_end(src, e);
}

/* The annotations of shard i: those of the options, i steps further, and the
 * notes in the file itself. */
static int
stage_import_describe(const struct stage_import_opts *o, uint64_t i,
    const struct format_source *src, struct shard *sh, struct err *e)
{
	const struct text_kv *note = format_note(src);
	size_t k;
	int r = shard_copy(sh, &o->sh, e);

	sh->step += i;
	sh->base_version += o->sh.base_version != 0 ? i : 0;
	if (r == 0 && sh->step < i)
		r = err_set(e, ERR_USAGE, "--step: too large for so many "
		    "files");
	for (k = 0; k < note->n && r == 0; k++)
		r = text_set(&sh->kv, note->p[k].key, note->p[k].value, e);
	return r;
}

/* The first file's tensors are everybody's. */
static int
stage_import_fits(struct stage_import *m, const char *path,
    const struct format_source *src, struct err *e)
{
	char why[256];

	if (m->done == 0)
		return schema_copy(&m->first, format_schema(src), e);
	if (!schema_diff(&m->first, format_schema(src), why))
		return 0;
	if (m->o->many)
		return err_set(e, ERR_DATA, "mismatch: file %llu is not like "
		    "the first: %s", (unsigned long long)m->done + 1, why);
	return err_set(e, ERR_DATA, "mismatch: '%s' is not like '%s': %s",
	    path, m->first_path, why);
}

static int
stage_import_shard(struct stage_import *m, const char *path,
    struct format_source *src, struct err *e)
{
	const struct stage_import_opts *o = m->o;
	struct shard sh;
	int r;

	shard_init(&sh);
	if ((r = stage_import_fits(m, path, src, e)) == 0 &&
	    (r = stage_import_describe(o, m->done, src, &sh, e)) == 0 &&
	    (r = writer_shard(m->w, &sh, format_schema(src), e)) == 0 &&
	    (r = stage_import_values(o, src, m->w, e)) == 0)
		r = writer_send(m->w, NULL, e);
	if (r == 0 && (format_rounded(src) != 0 || o->fo.round))
		cli_say(o->f->cli, 1, "'%s': %llu of %llu values rounded to f32",
		    path, (unsigned long long)format_rounded(src),
		    (unsigned long long)format_schema(src)->total);
	shard_release(&sh);
	m->done++;
	return r;
}

/* A file, or all that are in it. */
static int
stage_import_path(struct stage_import *m, const char *path, struct err *e)
{
	struct format_opts fo = m->o->fo;
	struct format_source *src;
	int r, f = stage_import_which(m->o, path, e);

	if (f >= 0 && m->o->many && f != FORMAT_SAFETENSORS)
		return err_set(e, ERR_USAGE, "--many is for safetensors, which "
		    "say where they end");
	if (f < 0 || (m->o->many && (r = io_open(&fo.many, path, e)) < 0))
		return f < 0 ? f : r;
	if (fo.many != NULL)
		io_watch(fo.many, filter_piped(m->o->f));
	do {
		r = format_open(&src, (enum format_id)f, path, &fo, e);
		if (r < 0 || src == NULL)
			break;
		r = stage_import_shard(m, path, src, e);
		format_close(src);
	} while (r == 0 && fo.many != NULL);
	io_free(fo.many);
	return r;
}

int
stage_import_run(void *opts, char **path, size_t n, struct err *e)
{
	static const char dash[] = "-";
	const struct stage_import_opts *o = opts;
	struct stage_import m = { .o = o, .first = SCHEMA_INIT };
	size_t i;
	int r = filter_out(o->f, &m.w, e);

	m.first_path = n != 0 ? path[0] : dash;
	if (n == 0 && r == 0)
		r = stage_import_path(&m, dash, e);
	for (i = 0; i < n && r == 0; i++)
		r = stage_import_path(&m, path[i], e);
	if (m.w != NULL)
		r = filter_end(m.w, r, e);
	writer_free(m.w);
	schema_release(&m.first);
	return r;
}
