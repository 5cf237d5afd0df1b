/*
 * ace-import: turns files of trainers (safetensors, npz, npy, raw f32) into a dense stream,
 * one shard per file.
 */
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/magic.h"
#include "base/num.h"
#include "base/progress_bar.h"
#include "files/format.h"
#include "format/shard.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* the program's output */
	int format;		/* -1: by the file's name or contents */
	struct format_opts fo;
	struct shard sh;	/* the shard of the first file */
	int based;		/* 1: the base version is known; it may be 0 */
	int many;		/* 1: each path has files, one after another */
};

struct import {
	const struct opts *o;
	struct writer *w;
	const char *first_path;
	struct schema first;	/* tensors of the first file */
	uint64_t done;		/* shards written */
};

/* Return the format that the file's contents show; -ERR_USAGE if they show none. */
static int
format_within(const char *path, struct err *e)
{
	unsigned char p[MAGIC_SIZE];
	char words[MAGIC_WORDS] = "";
	struct stat st;
	struct io *io;
	size_t n = 0;
	int r, f = -1;

	if (stat(path, &st) < 0)
		return err_sys(e, "'%s'", path);
	/* io_open refuses a directory; a FIFO would lose the bytes that are read here */
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		if ((r = io_open(&io, path, e)) < 0)
			return r;
		r = io_read(io, p, sizeof(p), &n, e);
		io_free(io);
		if (r < 0)
			return r;
		f = format_seen(p, n);
		if (n == 0)
			return err_set(e, ERR_DATA, "truncated: '%s' is empty", path);
	}
	(void)magic_say(p, n, "", words);
	return f >= 0 ? f : err_set(e, ERR_USAGE, "'%s' has a name without a known suffix%s%s",
	    path, words, strncmp(words, ": this is ", 10) == 0 ? "" : ": give -f FORMAT");
}

/* Return the format by the option, the suffix or the contents; safetensors for "-". */
static int
format_of(const struct opts *o, const char *path, struct err *e)
{
	const int f = o->format >= 0 ? o->format : format_guess(path);

	return f >= 0 ? f : strcmp(path, "-") == 0 ? FORMAT_SAFETENSORS :
	    format_within(path, e);
}

static int
put_values(const struct opts *o,
    struct format_source *src, struct writer *w, struct err *e)
{
	const struct schema *sc = format_schema(src);
	const uint64_t all = sc->total * sizeof(float);
	struct schema_span span;
	struct progress_bar bar;
	uint64_t done = 0;
	uint32_t g;
	float *x = alloc_get(sc->group_size, sizeof(*x), e);
	int r = x != NULL ? 0 : -ERR_SYS;

	progress_bar_begin(&bar, o->f->cli);
	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		progress_bar_show(&bar, done, all, "B");
		done += span.n * sizeof(float);
		if ((r = format_read(src, x, span.n, e)) == 0)
			r = writer_values(w, g, x, span.n, e);
	}
	progress_bar_end(&bar);
	alloc_free(x);
	return r < 0 ? r : format_end(src, e);
}

/* Copy the file's metadata: its model digest becomes the shard's, its step is left out. */
static int
notes(const struct format_source *src, struct shard *sh, struct err *e)
{
	const char *digest = text_get(format_note(src), "safetensors." SHARD_KEY_MODEL);
	int r = text_add(&sh->kv, format_note(src), e);

	if (r == 0 && digest != NULL && (r = text_set(&sh->kv, SHARD_KEY_MODEL, digest,
	    e)) == 0)
		r = text_set(&sh->kv, "safetensors." SHARD_KEY_MODEL, NULL, e);
	return r < 0 ? r : text_set(&sh->kv, "safetensors.step", NULL, e);
}

/* Set the header of shard i by the options, with the file's metadata. The step is the file's
 * own, if it has one and --many is given, else --step plus i. */
static int
describe(const struct opts *o, uint64_t i, const char *path,
    const struct format_source *src, struct shard *sh, struct err *e)
{
	const char *step = o->many ? text_get(format_note(src), "safetensors.step") : NULL;
	int r = shard_copy(sh, &o->sh, e);

	if (r == 0 && step != NULL) {
		if (num_u64(&i, step, sh->step, UINT64_MAX, "", NULL) < 0)
			return err_set(e, ERR_USAGE, "--many: '%s' has step '%.40s' in "
			    "its metadata, expected a whole number from %llu (--step) to "
			    "2^64 - 1", path, step, (unsigned long long)sh->step);
		i -= sh->step;
	}
	sh->step += i;
	sh->base_version += o->based ? i : 0;
	if (r == 0 && (sh->step < i || sh->base_version < o->sh.base_version))
		r = err_set(e, ERR_USAGE, "%s is too large: for a later file it would exceed "
		    "2^64 - 1", sh->step < i ? "--step" : "--base-version");
	return r < 0 ? r : notes(src, sh, e);
}

/* Keep the schema of the first file; the schemas of all others must match it. */
static int
fits(struct import *m, const char *path, const struct format_source *src, struct err *e)
{
	char why[256];

	if (m->done == 0)
		return schema_copy(&m->first, format_schema(src), e);
	if (!schema_diff(&m->first, format_schema(src), why))
		return 0;
	if (m->o->many && strcmp(path, m->first_path) == 0)
		return err_set(e, ERR_DATA, "mismatch: '%s' has other tensors than the first "
		    "file: %s", path, why);
	return err_set(e, ERR_DATA, "mismatch: '%s' and '%s' have different tensors: "
	    "%s", m->first_path, path, why);
}

static int
put_shard(struct import *m, const char *path, struct format_source *src, struct err *e)
{
	const struct opts *o = m->o;
	struct shard sh;
	int r;

	shard_init(&sh);
	if (o->fo.only != NULL && format_schema(src)->n == 0)
		return err_set(e, ERR_NO, "no tensor of '%s' matches '%s': 'ace-import FILE | "
		    "ace-inspect list' (ace-diff if a type is refused) shows the names "
		    "of all tensors", path, o->fo.only);
	if ((r = fits(m, path, src, e)) == 0 &&
	    (r = describe(o, m->done, path, src, &sh, e)) == 0 &&
	    (r = writer_shard(m->w, &sh, format_schema(src), e)) == 0 &&
	    (r = put_values(o, src, m->w, e)) == 0)
		r = writer_send(m->w, NULL, e);
	if (r == 0 && format_unnoted(src) != 0)
		cli_say(o->f->cli, 0, "'%s': entries of its metadata that were left out: "
		    "%llu, since a shard has at most 16, with short values and lower-case keys "
		    "(see ace-import(1))", path, (unsigned long long)format_unnoted(src));
	if (r == 0 && (format_rounded(src) != 0 || o->fo.round))
		cli_say(o->f->cli, 1, "'%s': %llu of %llu values rounded to f32",
		    path, (unsigned long long)format_rounded(src),
		    (unsigned long long)format_schema(src)->total);
	shard_release(&sh);
	m->done++;
	return r;
}

/* Import a file; with --many, all files of a stream of files. */
static int
put_path(struct import *m, const char *path, struct err *e)
{
	struct format_opts fo = m->o->fo;
	struct format_source *src;
	uint64_t k = 0;		/* number of files read from this stream of files */
	int r = 0, f = format_of(m->o, path, e);

	fo.guessed = m->o->format < 0;
	if (f >= 0 && m->o->many && f != FORMAT_SAFETENSORS)
		return err_set(e, ERR_USAGE, "--many reads only safetensors: leave "
		    "--many out, or give safetensors files, with -f safetensors");
	if (f >= 0 && ((fo.ndim != 0 && f != FORMAT_RAW) ||
	    (fo.name != NULL && f != FORMAT_RAW && f != FORMAT_NPY)))
		return err_set(e, ERR_USAGE, "leave out %s: '%s' is read as %s, which "
		    "has its own; for another format give -f FORMAT", fo.ndim != 0 &&
		    f != FORMAT_RAW ? "--shape" : "--name", path, format_names[f]);
	if (f < 0 || (m->o->many && (r = io_open(&fo.many, path, e)) < 0))
		return f < 0 ? f : r;
	if (fo.many != NULL)
		io_watch(fo.many, filter_piped(m->o->f));
	do {
		k++;
		r = format_open(&src, (enum format_id)f, path, &fo, e);
		if (r < 0 || src == NULL)
			break;
		r = put_shard(m, path, src, e);
		format_close(src);
	} while (r == 0 && fo.many != NULL);
	if (fo.many != NULL && (r == -ERR_DATA || r == -ERR_USAGE))
		r = err_after(e, r, ", in file %llu of the stream", (unsigned long long)k);
	io_free(fo.many);
	return r;
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	static const char dash[] = "-";
	const struct opts *o = opts;
	struct import m = { .o = o, .first = SCHEMA_INIT };
	size_t i;
	int r = filter_out(o->f, &m.w, e);

	m.first_path = n != 0 ? path[0] : dash;
	if (n == 0 && r == 0)
		r = put_path(&m, dash, e);
	for (i = 0; i < n && r == 0; i++)
		r = put_path(&m, path[i], e);
	if (m.w != NULL)
		r = filter_end(m.w, r, e);
	writer_free(m.w);
	schema_release(&m.first);
	return r;
}

static int
set_shape(void *o, const struct opt *row, const char *arg, struct err *e)
{
	struct format_opts *fo = &((struct opts *)o)->fo;
	char word[NUM_ITEM];
	int r;

	fo->ndim = 0;
	while ((r = num_item(&arg, word, "--shape", e)) > 0) {
		if (fo->ndim == SCHEMA_MAX_DIM)
			return err_set(e, ERR_USAGE, "--shape: expected at most %d "
			    "numbers, separated by commas", SCHEMA_MAX_DIM);
		if ((r = num_u64(&fo->dim[fo->ndim++], word, 0,
		    SCHEMA_MAX_TOTAL, "--shape", e)) < 0)
			break;
	}
	return r;
}

static const char *const kinds[] = { "gradient", "delta", "model", NULL };

static int
set_kind(void *arg, const struct opt *row, const char *val, struct err *e)
{
	static const uint32_t kind[] = {
		SHARD_GRADIENT, SHARD_DELTA, SHARD_MODEL
	};
	struct opts *o = arg;
	int i, r = num_choice(&i, val, kinds, "--kind", e);

	if (r == 0)
		o->sh.kind = kind[i];
	return r;
}

/* Keep the text as it was given: it goes into the stream. */
static int
set_norm(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct opts *o = arg;
	double norm;
	int r = num_f64(&norm, val, 0, 1e300, "--model-norm", e);

	return r < 0 ? r : text_set(&o->sh.kv, SHARD_KEY_NORM, val, e);
}

static int
set_based(void *arg, const struct opt *row, const char *val, struct err *e)
{
	((struct opts *)arg)->based = 1;
	return 0;
}

static const struct opt options[] = {
	{ 'f', "format", "FORMAT", NULL, OPT_WORD(struct opts, format, format_names) },
	OPT_PART(filter_opts_of, struct opts, sh),
	{ 's', "step", "N", "step of the first FILE",
	    OPT_U64(struct opts, sh.step, 0, UINT64_MAX), .def = "0" },
	{ 'w', "weight", "W", "weight in the average",
	    OPT_F64(struct opts, sh.weight, 1e-30, 1e30), .def = "1" },
	{ 'g', "group", "N", "values per group", OPT_U64(struct opts, fo.group_size, 1,
	    SCHEMA_MAX_GROUP), .def = "65536" },
	{ 'k', "kind", "KIND", NULL, OPT_CALL(set_kind), .words = kinds },
	{ 0, "model-norm", "X", "the norm of the model, for ace-policy",
	    OPT_CALL(set_norm) },
	{ 0, "base-version", "N", "model version of the first FILE",
	    OPT_U64(struct opts, sh.base_version, 0, UINT64_MAX), .set = set_based },
	{ 0, "name", "NAME", "npy, raw: the tensor's name",
	    OPT_TEXT(struct opts, fo.name) },
	{ 0, "shape", "N,N...", "raw: the tensor's shape", OPT_CALL(set_shape) },
	{ 0, "tensor", "GLOB", "only tensors whose name matches",
	    OPT_TEXT(struct opts, fo.only) },
	{ 0, "many", NULL,
	    "each FILE has several safetensors, one per step",
	    OPT_FLAG(struct opts, many) },
	{ 0, "f32", NULL, "round f64 values that are not exact in f32",
	    OPT_FLAG(struct opts, fo.round) },
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
		.run = run
	};
	struct opts o = { .f = &p.f, .format = -1 };
	int status;

	shard_init(&o.sh);
	status = program_main(&p, argc, argv, &o);
	shard_release(&o.sh);
	return status;
}
