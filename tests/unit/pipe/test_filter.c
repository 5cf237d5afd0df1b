/* What a filter passes on, what it drops, and how it ends. */
#include "base/err.h"
#include "base/io.h"
#include "base/version.h"
#include "pipe/filter.h"

#include "../tap.h"
#include "../model.h"

static struct err e;
static char dir[] = "/tmp/ace-filter.XXXXXX";
static char in_path[64], out_path[64], bare_path[64];

static char *args[] = { (char []){ "test" }, (char []){ "-x" },
    (char []){ "a\033b" }, (char []){ "operand" }, NULL };

/* Make one shard with an annotation that survives changes and one that does not. */
static void
make(const char *path, int omit)
{
	struct writer_opts o = { "maker", "maker 1", omit };
	struct schema sc = model_of(4, 0, 0);
	struct writer *w;
	struct shard s;
	struct io *io;
	float x[4] = { 1, 2, 3, 4 };

	shard_init(&s);
	(void)shard_set_device(&s, "edge1", &e);
	(void)io_create(&io, path, 0, &e);
	(void)writer_open(&w, io, &o, &e);
	(void)writer_shard(w, &s, &sc, &e);
	(void)writer_note(w, FRAME_TYPE('x', 'x', 'X', 'x'), "stays", 5, &e);
	(void)writer_note(w, FRAME_TYPE('x', 'x', 'X', 'X'), "goes", 4, &e);
	(void)writer_values(w, 0, x, 4, &e);
	(void)writer_send(w, NULL, &e);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	shard_release(&s);
	schema_release(&sc);
}

/* Filter in_path; fail < 0: return an error after the first frame. */
static int
filter(struct filter *f, const char *path, int fail)
{
	struct reader *r = NULL;
	struct writer *w = NULL;
	int k;

	if ((k = filter_in(f, &r, path, &e)) < 0 ||
	    (k = filter_out(f, &w, &e)) < 0)
		goto out;
	while ((k = reader_next(r, &e)) > 0) {
		if (k == READER_SHARD)
			k = filter_shard(r, w, &e);
		else if (k == READER_NOTE || k == READER_DATA)
			k = writer_pass(w, r, &e);
		else if (k == READER_SEND)
			k = writer_send(w, &reader_end_of_shard(r)->sums, &e);
		if (fail < 0)
			k = fail;
		if (k < 0)
			break;
	}
	k = filter_end(w, k, &e);
out:
	writer_free(w);
	reader_free(r);
	return k;
}

struct seen {
	int notes, shards, stays;
	char prov[256];
};

static int
look(const char *path, const struct schema *schema, struct seen *s)
{
	struct reader_opts o = { .schema = schema };
	struct reader *r;
	struct io *io;
	int k;

	memset(s, 0, sizeof(*s));
	if ((k = io_open(&io, path, &e)) < 0 ||
	    (k = reader_open(&r, io, &o, &e)) < 0)
		return k;
	while ((k = reader_next(r, &e)) > 0) {
		s->shards += k == READER_SHARD;
		s->notes += k == READER_NOTE;
		s->stays += k == READER_NOTE &&
		    memcmp(reader_frame(r)->raw, "stays", 5) == 0;
		(void)snprintf(s->prov, sizeof(s->prov), "%s",
		    reader_provenance(r));
	}
	reader_free(r);
	return k;
}

static void
begin(struct filter *f)
{
	/* as after cli_parse */
	static const struct cli c = { .prog = "test", .first = 3 };

	err_clear(&e);
	filter_init(f, &c, args);
	f->output = out_path;
}

static int
take(struct filter *f, const char *name, const char *val)
{
	struct opt_place p = { opt_named(filter_opts_in, name), f };

	if (p.row == NULL)
		p.row = opt_named(filter_opts_out, name);
	return opt_take(&p, val, &e);
}

TEST(test_carry)
{
	struct filter f;
	struct seen s;

	begin(&f);
	ok(filter(&f, in_path, 0) == 0 && look(out_path, NULL, &s) == 0 &&
	    s.shards == 1 && s.notes == 2, "all passes: %s", ERR_MSG(&e));
	ok(strcmp(s.prov, "maker 1\ntest " ACE_VERSION " -x a?b\n") == 0,
	    "provenance: ours after theirs, options, no operand, no escape");
	ok(take(&f, "omit", "provenance") == 0 &&
	    filter(&f, in_path, 0) == 0 && look(out_path, NULL, &s) == 0 &&
	    s.prov[0] == '\0', "no provenance, none passed");
	filter_release(&f);
}

TEST(test_options)
{
	struct filter f;

	begin(&f);
	ok(f.threads == 0 && f.sync == IO_SYNC_FULL, "the defaults");
	ok(take(&f, "output", "x") == 0 && strcmp(f.output, "x") == 0, "-o");
	ok(take(&f, "max-elements", "0") == -ERR_USAGE, "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(take(&f, "max-elements", "3") == 0 && f.in.max_elements == 3,
	    "--max-elements");
	f.output = out_path;
	ok(filter(&f, in_path, 0) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "limit", 5) == 0, "is obeyed: %s", ERR_MSG(&e));
	filter_release(&f);
}

TEST(test_schema)
{
	struct filter f;
	struct seen s;

	begin(&f);
	ok(filter(&f, bare_path, 0) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "mismatch", 8) == 0, "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(take(&f, "schema", bare_path) == -ERR_DATA,
	    "no schema to take: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(take(&f, "schema", in_path) == 0, "--schema");
	ok(filter(&f, bare_path, 0) == 0 && look(out_path, NULL, &s) == 0 &&
	    s.shards == 1, "read with it, written with it: %s", ERR_MSG(&e));
	ok(take(&f, "omit", "provenance,schema") == 0 &&
	    filter(&f, in_path, 0) == 0, "--omit provenance,schema");
	ok(look(out_path, NULL, &s) == -ERR_DATA, "it is not there");
	err_clear(&e);
	ok(look(out_path, &f.schema, &s) == 0, "it is not needed: %s", ERR_MSG(&e));
	filter_release(&f);
}

TEST(test_failure)
{
	struct filter f;

	begin(&f);
	(void)unlink(out_path);
	ok(filter(&f, in_path, -ERR_REFUSED) == -ERR_REFUSED &&
	    access(out_path, F_OK) != 0, "what fails leaves no file");
	filter_release(&f);
}

int
main(void)
{
	if (mkdtemp(dir) == NULL)
		return 99;
	(void)snprintf(in_path, sizeof(in_path), "%s/in", dir);
	(void)snprintf(out_path, sizeof(out_path), "%s/out", dir);
	(void)snprintf(bare_path, sizeof(bare_path), "%s/bare", dir);
	make(in_path, 0);
	make(bare_path, 1);
	run_tests();
	(void)unlink(in_path);
	(void)unlink(out_path);
	(void)unlink(bare_path);
	(void)rmdir(dir);
	return done_testing();
}
