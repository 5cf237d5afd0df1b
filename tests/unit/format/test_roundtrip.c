/* A stream is read back as written; damage of every kind is detected. */
#include "base/err.h"
#include "base/io.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"

#include "../tap.h"

enum { N = 300 };

static struct schema schema = SCHEMA_INIT;

static void
make_schema(void)
{
	struct schema_tensor t;

	memset(&t, 0, sizeof(t));
	schema.group_size = 64;
	t.name = (char *)"a.weight";
	t.ndim = 2;
	t.dim[0] = 10;
	t.dim[1] = 20;
	(void)schema_add(&schema, &t, NULL);
	t.name = (char *)"empty";
	t.dim[0] = 0;
	(void)schema_add(&schema, &t, NULL);
	t.name = (char *)"b.bias";
	t.ndim = 1;
	t.dim[0] = 100;
	(void)schema_add(&schema, &t, NULL);
	(void)schema_finish(&schema, NULL);
}

static float
value(size_t i, int shard)
{
	return (float)i * 0.5f - (float)shard;
}

/* Write two shards; the second leaves out group 1. */
static int
write_all(struct writer *w, struct err *e)
{
	struct schema_span span;
	struct shard s;
	float x[64];
	uint32_t g;
	size_t i, at;
	int k, r = 0;

	shard_init(&s);
	(void)shard_set_device(&s, "edge1", e);
	for (k = 0; k < 2 && r == 0; k++) {
		s.step = 7 + (uint64_t)k;
		r = writer_shard(w, &s, &schema, e);
		for (g = 0, at = 0; g < schema.ngroups && r == 0; g++) {
			schema_span(&schema, g, &span);
			for (i = 0; i < span.n; i++)
				x[i] = value(at + i, k);
			at += span.n;
			if (k == 0 || g != 1)
				r = writer_values(w, g, x, span.n, e);
		}
		if (r == 0)
			r = writer_note(w, FRAME_POLI, "interval=4\n", 11, e);
		if (r == 0)
			r = writer_send(w, NULL, e);
	}
	shard_release(&s);
	return r < 0 ? r : writer_finish(w, e);
}

/* Read all; return 0 if every value is as written, else the error. */
static int
read_all(const unsigned char *p, size_t n, struct err *e)
{
	struct values v = VALUES_INIT;
	struct reader *r = NULL;
	struct io *io;
	size_t i, at, bad = 0;
	int k, shard = 0;

	if ((k = io_open_mem(&io, p, n, e)) < 0 ||
	    (k = reader_open(&r, io, NULL, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		if ((k = values_begin(&v, r, e)) < 0)
			break;
		at = 0;
		while ((k = values_next(&v, e)) > 0) {
			for (i = 0; i < v.n; i++)
				if (v.x[i] != (v.sent ?
				    value(at + i, shard) : 0.0f))
					bad++;
			at += v.n;
		}
		if (k < 0)
			break;
		bad += at != N;
		shard++;
	}
	if (k == 0 && (bad != 0 || shard != 2))
		k = -99;
	values_release(&v);
	reader_free(r);
	return k;
}

/* The largest number of tensors, with names of 90 bytes: the table takes several
 * frames. */
static void
test_large(void)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct schema sc = SCHEMA_INIT;
	struct schema_tensor t;
	struct reader *r = NULL;
	struct writer *w = NULL;
	struct err e = ERR_INIT;
	struct shard s;
	struct io *io;
	const unsigned char *p;
	char name[91];
	size_t i, n;
	int k = 0;

	memset(&t, 0, sizeof(t));
	memset(name, 'x', 90);
	t.name = name;
	t.ndim = 2;
	t.dim[0] = t.dim[1] = 0;
	for (i = 0; i < SCHEMA_MAX_TENSORS && k == 0; i++) {
		(void)snprintf(name + 82, 9, "%08zu", i);
		k = schema_add(&sc, &t, &e);
	}
	(void)snprintf(name + 82, 9, "%08zu", i);
	ok(k == 0 && schema_add(&sc, &t, NULL) == -ERR_DATA &&
	    sc.n == SCHEMA_MAX_TENSORS, "one more than 2^20 tensors");
	shard_init(&s);
	if (k == 0 && (k = schema_finish(&sc, &e)) == 0 &&
	    (k = io_create_mem(&io, &e)) == 0 &&
	    (k = writer_open(&w, io, &o, &e)) == 0 &&
	    (k = writer_shard(w, &s, &sc, &e)) == 0 &&
	    (k = writer_send(w, NULL, &e)) == 0)
		k = writer_finish(w, &e);
	ok(k == 0, "2^20 tensors with names of 90 bytes %s", ERR_MSG(&e));
	p = io_mem(io, &n);
	if ((k = io_open_mem(&io, p, n, &e)) == 0 &&
	    (k = reader_open(&r, io, NULL, &e)) == 0)
		while ((k = reader_next(r, &e)) > 0 && k != READER_SHARD)
			continue;
	ok(k == READER_SHARD && reader_schema(r)->n == SCHEMA_MAX_TENSORS &&
	    memcmp(reader_schema(r)->id, sc.id, 16) == 0 &&
	    reader_frame(r)->type == FRAME_SHRD, "and back %s", ERR_MSG(&e));
	reader_free(r);
	writer_free(w);
	schema_release(&sc);
}

/* Wrong calls. */
static void
misuse(void)
{
	static float x[64];
	const struct writer_opts o = { "test", NULL, 0 };
	struct err e = ERR_INIT;
	struct writer *w = NULL;
	struct shard s;
	struct io *io;

	shard_init(&s);
	(void)io_create_mem(&io, &e);
	ok(writer_open(&w, io, &o, &e) == 0 && writer_shard(w, &s, &schema,
	    &e) == 0 && writer_values(w, 2, x, 64, &e) == 0 &&
	    writer_record(w, 1, 0, 0, (unsigned char *)x, 256, x, 64, &e) ==
	    -ERR_USAGE, "groups rise: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(writer_record(w, 3, 0, 0, (unsigned char *)x, (size_t)1 << 31, x, 64,
	    &e) == -ERR_DATA && strncmp(ERR_MSG(&e), "limit", 5) == 0,
	    "and are not larger than a frame: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(writer_note(w, FRAME_POLI, x, (size_t)1 << 33, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "limit", 5) == 0, "nor is a note: %s",
	    ERR_MSG(&e));
	writer_free(w);
	shard_release(&s);
}

int
main(void)
{
	struct writer_opts o = { "test", "test 1", 0 };
	struct err e = ERR_INIT;
	struct writer *w;
	struct io *io;
	unsigned char *p;
	size_t n, i, wrong = 0;
	int k;

	make_schema();
	ok(schema.ngroups == 6 && schema.total == N, "6 groups, 300 elements");
	(void)io_create_mem(&io, &e);
	ok(writer_open(&w, io, &o, &e) == 0, "writer opens: %s", ERR_MSG(&e));
	ok(write_all(w, &e) == 0, "two shards written: %s", ERR_MSG(&e));
	p = malloc(1 << 16);
	memcpy(p, io_mem(io, &n), 0);
	memcpy(p, io_mem(io, &n), n);
	ok(n % 8 == 0, "%zu bytes, a multiple of 8", n);
	k = read_all(p, n, &e);
	ok(k == 0, "read back: %d %s", k, ERR_MSG(&e));
	for (i = 0; i < n; i++) {
		err_clear(&e);
		if (read_all(p, i, &e) != -ERR_DATA ||
		    strncmp(ERR_MSG(&e), "truncated", 9) != 0)
			wrong++;
	}
	ok(wrong == 0, "every truncation is noticed (%zu not)", wrong);
	for (wrong = 0, i = 0; i < 8 * n; i++) {
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		if (read_all(p, n, NULL) != -ERR_DATA)
			wrong++;
		p[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	ok(wrong == 0, "every flipped bit is noticed (%zu not)", wrong);
	memcpy(p + n, p, n);
	err_clear(&e);
	k = read_all(p, 2 * n, &e);
	ok(k == -99, "two streams, one after the other, are a file: %s", ERR_MSG(&e));
	writer_free(w);
	misuse();
	schema_release(&schema);
	free(p);
	test_large();
	return done_testing();
}
