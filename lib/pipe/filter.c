#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/temp.h"
#include "base/version.h"
#include "pipe/filter.h"

/* Return 1 if word is the option -c or --name in any form; set *two to 1 if its argument
 * is the next word. */
static int
filter_is(const char *word, char c, const char *name, int *two)
{
	const size_t n = strlen(name);
	/* -q and -v, which take no value, may precede it in the same word */
	const size_t at = 1 + strspn(word[0] == '-' ? word + 1 : "", "qv");
	const int one = word[0] == '-' && word[at] == c;

	*two = (one && word[at + 1] == '\0') || (strncmp(word, "--", 2) == 0 &&
	    strcmp(word + 2, name) == 0);
	return *two || one || (strncmp(word, "--", 2) == 0 &&
	    strncmp(word + 2, name, n) == 0 && word[n + 2] == '=');
}

/* Write the tool, its version and the options of a command line; bytes that are not plain text
 * become '?'. The output and the number of threads are omitted, because the result does not
 * depend on them; callers leave out the operands. */
void
filter_line(const char *tool, int argc, char *const *argv, char out[FILTER_LINE])
{
	size_t n, i;
	int k, two;

	(void)snprintf(out, FILTER_LINE, "%s %s", tool, ACE_VERSION);
	for (k = 1; k < argc; k++) {
		if (filter_is(argv[k], 'o', "output", &two) ||
		    filter_is(argv[k], 'T', "threads", &two)) {
			k += two;
			continue;
		}
		n = strlen(out);
		if (n + 2 < FILTER_LINE)
			(void)snprintf(out + n, FILTER_LINE - n, " %s", argv[k]);
	}
	for (i = 0; out[i] != '\0'; i++)
		if ((unsigned char)out[i] < 0x20 || (unsigned char)out[i] >= 0x7f)
			out[i] = '?';
}

static int
filter_device(void *shard, const struct opt *row, const char *name, struct err *e)
{
	return shard_set_device(shard, name, e);
}

static int
filter_run(void *shard, const struct opt *row, const char *name, struct err *e)
{
	return shard_set_run(shard, name, e);
}

const struct opt filter_opts_of[] = {
	{ 'd', "device", "NAME", "the device that made the values", OPT_CALL(filter_device) },
	{ 'r', "run", "NAME", "the training run", OPT_CALL(filter_run) },
	OPT_END
};

const struct opt filter_opts_max[] = {
	{ 0, "max-elements", "N", "refuse models with more values",
	    OPT_U64(struct filter, in.max_elements, 1, SCHEMA_MAX_TOTAL),
	    .def = "68719476736" },
	OPT_END
};

const struct opt filter_opts_in[] = {
	OPT_ROWS(filter_opts_max),
	{ 0, "schema", "FILE",
	    "take the tensor table from FILE, for streams that lack one",
	    OPT_CALL(filter_schema), .right = OPT_READ },
	OPT_END
};

const struct opt filter_opts_file[] = {
	{ 'o', "output", "FILE", "write FILE, whole or not at all",
	    OPT_PATH(struct filter, output, OPT_WRITE) },
	OPT_END
};

static const char *const filter_omits[] = { "provenance", "schema", NULL };

/* Handle --omit: leave out the parts of a stream that a comma-separated list names. */
static int
filter_omit(void *arg, const struct opt *row, const char *list, struct err *e)
{
	struct filter *f = arg;
	char word[NUM_ITEM];
	int i, r;

	while ((r = num_item(&list, word, "--omit", e)) > 0 &&
	    (r = num_choice(&i, word, filter_omits, "--omit", e)) == 0)
		*(i == 0 ? &f->no_provenance : &f->omit_schema) = 1;
	return r;
}

const struct opt filter_opts_out[] = {
	OPT_ROWS(filter_opts_file),
	{ 0, "omit", "LIST", "leave out provenance, schema or both",
	    OPT_CALL(filter_omit), .words = filter_omits, .several = 1 },
	OPT_END
};

static const char *const filter_syncs[] = { "none", "rename", "full", NULL };
const struct opt filter_opts_sync[] = {
	{ 0, "sync", "WHEN", NULL,
	    OPT_WORD(struct filter, sync, filter_syncs), .def = "full" },
	OPT_END
};

const struct opt filter_opts_threads[] = {
	{ 'T', "threads", "N", "threads to use; 0 is one per processor, at "
	    "most 4", OPT_U64(struct filter, threads, 0, POOL_MOST), .def = "0" },
	OPT_END
};

void
filter_init(struct filter *f, const struct cli *c, char **argv)
{
	memset(f, 0, sizeof(*f));
	f->cli = c;
	f->tool = c->prog;
	f->open = io_open;
	f->schema = (struct schema)SCHEMA_INIT;
	f->argv = argv;
	(void)opt_defaults(filter_opts_sync, f, NULL);
	(void)opt_defaults(filter_opts_threads, f, NULL);
}

void
filter_release(struct filter *f)
{
	schema_release(&f->schema);
}

int
filter_schema(void *arg, const struct opt *row, const char *path, struct err *e)
{
	struct filter *f = arg;
	struct reader *r = NULL;
	struct io *io;
	int k;

	if ((k = f->open(&io, path, e)) < 0 ||
	    (k = reader_open(&r, io, &f->in, e)) < 0)
		return k;
	k = reader_blame(r, reader_to_shard(r, e), e);
	if (reader_schema(r) == NULL && (k >= 0 || e->kind == ERR_MISMATCH)) {
		err_clear(e);
		k = err_set(e, ERR_DATA, "mismatch: --schema '%s' has no schema: give a "
		    "stream that has one", path);
	}
	if (k >= 0)
		k = schema_copy(&f->schema, reader_schema(r), e);
	reader_free(r);
	if (k >= 0)
		f->in.schema = &f->schema;
	return k < 0 ? k : 0;
}

int
filter_piped(const struct filter *f)
{
	return f->output == NULL && !f->mute ? STDOUT_FILENO : -1;
}

int
filter_in(struct filter *f, struct reader **r, const char *path, struct err *e)
{
	struct io *io;
	int k = f->open(&io, path, e);

	*r = NULL;
	if (k < 0)
		return k;
	io_watch(io, filter_piped(f));
	return reader_open(r, io, &f->in, e);
}

int
filter_out(const struct filter *f, struct writer **w, struct err *e)
{
	char line[FILTER_LINE];
	struct writer_opts o = { f->tool, line, f->omit_schema, 0 };
	struct io *io;
	int k = io_create(&io, f->output, 0, e);

	filter_line(f->tool, f->words != 0 ? f->words : f->cli->first, f->argv, line);
	*w = NULL;
	if (f->no_provenance)
		o.line = NULL;
	return k < 0 ? k : writer_open(w, io, &o, e);
}

int
filter_both(struct filter *f, struct reader **r, struct writer **w,
    const char *path, struct err *e)
{
	int k = filter_in(f, r, path, e);

	*w = NULL;
	if (k == 0)
		return filter_out(f, w, e);
	if (filter_piped(f) >= 0 && filter_out(f, w, NULL) == 0) {
		writer_abort(*w);
		writer_free(*w);
		*w = NULL;
	}
	return k;
}

int
filter_shard(const struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_history(w, reader_provenance(r), e);

	return k < 0 ? k : writer_shard(w, reader_shard(r), reader_schema(r), e);
}

int
filter_rest(struct reader *r, struct writer *w, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND)
			return writer_send(w, &reader_end_of_shard(r)->sums, e);
		if ((k = writer_pass(w, r, e)) < 0)
			return k;
	}
	return k;	/* < 0: the reader reports the end of a stream inside a shard */
}

int
filter_copy(struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_shard(w, reader_shard(r), reader_schema(r), e);

	return k < 0 ? k : filter_rest(r, w, e);
}

/* Copy and free r; k is the result of opening it. */
static int
filter_copy_all(struct reader *r, int k, struct writer *w, struct err *e)
{
	while (k == 0 && (k = reader_to_shard(r, e)) > 0)
		k = filter_copy(r, w, e);
	reader_free(r);
	return k;
}

int
filter_copy_file(const char *path, const struct reader_opts *o,
    struct writer *w, struct err *e)
{
	struct reader *r;
	int k = reader_file(&r, path, o, e);

	return filter_copy_all(r, k, w, e);
}

int
filter_copy_fd(int fd, const struct reader_opts *o, struct writer *w, struct err *e)
{
	struct reader *r = NULL;
	struct io *io;
	int k = io_open_whole(&io, fd, TEMP_UNNAMED, e);

	if (k == 0)
		k = reader_open(&r, io, o, e);
	return filter_copy_all(r, k, w, e);
}

int
filter_end(struct writer *w, int r, struct err *e)
{
	if (r >= 0)
		r = writer_end(w, IO_SYNC_FULL, e);
	if (r < 0 && w != NULL)
		filter_abort(w, e);
	return r;
}

void
filter_abort(struct writer *w, struct err *e)
{
	writer_abort(w);
	if (w != NULL && e != NULL && e->upstream && io_is_pipe(writer_io(w)))
		e->quiet = 1;
}
