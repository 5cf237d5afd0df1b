/* The frames, provenance and sums that a writer writes, as a reader finds them. */
#include "../test.h"
#include "../../memory.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "codec/codec.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/schema.h"
#include "format/values.h"
#include "format/writer.h"

static struct err e;
static int whole;		/* complete shards of the last stream */
static const float x[4] = { 1, -2, 0, 4 };

static void
model(struct schema *sc, const char *name, uint8_t dtype)
{
	struct schema_tensor t = { .name = (char *)(uintptr_t)name, .ndim = 1,
	    .dim = { 8 }, .dtype = dtype };

	*sc = (struct schema)SCHEMA_INIT;
	sc->group_size = 4;
	if (schema_add(sc, &t, NULL) < 0 || schema_finish(sc, NULL) < 0)
		abort();
}

static struct writer *
begun(const struct writer_opts *o, struct io **io)
{
	struct writer *w;

	err_clear(&e);
	if (memory_create(io, &e) < 0 || writer_open(&w, *io, o, &e) < 0)
		abort();
	return w;
}

/* Write one shard with values of the first `groups' of its 2 groups; return 0 or an error. */
static int
put(struct writer *w, const struct schema *sc, uint64_t step, uint32_t groups)
{
	struct shard s;
	uint32_t g;
	int r;

	shard_init(&s);
	s.step = step;
	r = writer_shard(w, &s, sc, &e);
	for (g = 0; g < groups && r == 0; g++)
		r = writer_values(w, g, x, 4, &e);
	return r < 0 ? r : writer_send(w, NULL, &e);
}

/* Set types to a letter per frame, '(' for a HEAD, and prov[room] to the provenance of the last
 * stream. Return READER_END or the reader's error. */
static int
frames(struct io *io, char *types, char *prov, size_t room)
{
	const unsigned char *p;
	struct reader *r;
	struct io *in;
	size_t n, at, k = 0;
	int ev;

	p = learned_of(io, &n);
	for (at = 0; at + 64 <= n; k++) {
		types[k] = bytes_le32(p + at + 4) == FRAME_HEAD ? '(' :
		    (char)p[at + 4];
		at += 64 + bytes_le32(p + at + 16);
		at += frame_padding(at);
	}
	types[k] = '\0';
	err_clear(&e);
	if (memory_open(&in, p, n, &e) < 0 ||
	    reader_open(&r, in, NULL, &e) < 0)
		abort();
	whole = 0;
	while ((ev = reader_next(r, &e)) > 0)
		if ((whole += ev == READER_SEND, ev == READER_HEAD))
			prov[0] = '\0';
		else
			(void)strncpy(prov, reader_provenance(r), room - 1);
	reader_free(r);
	return ev;
}

TEST(test_frames)
{
	const struct writer_opts o = { .tool = "test", .line = "test 1" };
	struct writer_opts none = { .tool = "test" };
	struct schema sc, other;
	char types[64], prov[64] = "";
	const unsigned char *p;
	unsigned char seed[16];
	struct shard s;
	size_t n;
	struct writer *w;
	struct io *io;

	model(&sc, "w", SCHEMA_F32);
	model(&other, "v", SCHEMA_F32);
	w = begun(&o, &io);
	ok(put(w, &sc, 0, 2) == 0 && put(w, &sc, 1, 0) == 0 &&
	    put(w, &other, 2, 1) == 0 && writer_finish(w, &e) == 0 &&
	    frames(io, types, prov, sizeof(prov)) == READER_END &&
	    strcmp(types, "(SpSDSSST(SpSDST") == 0,
	    "another model is another stream: %s %s", types, ERR_MSG(&e));
	shard_init(&s);
	bytes_set64(seed, shard_key(&s));
	bytes_set64(seed + 8, hash_64("test", 4));
	p = learned_of(io, &n);
	ok(bytes_le64(p + 24) == hash_64(seed, 16),
	    "its id depends on the first shard and on the program");
	ok(strcmp(prov, "test 1\n") == 0, "a line of provenance");
	writer_free(w);
	none.omit_schema = 1;
	w = begun(&none, &io);
	ok(put(w, &sc, 0, 1) == 0 && writer_finish(w, &e) == 0 &&
	    frames(io, types, prov, sizeof(prov)) == -ERR_DATA &&
	    e.kind == ERR_MISMATCH && strcmp(types, "(SDST") == 0,
	    "options omit the provenance and the schema: %s", types);
	writer_free(w);
	w = begun(&none, &io);
	ok(writer_finish(w, &e) == 0 &&
	    frames(io, types, prov, sizeof(prov)) == READER_END &&
	    strcmp(types, "(T") == 0, "a stream without shards");
	writer_free(w);
	schema_release(&sc);
	schema_release(&other);
}

/* Provenance of lines of 1000 bytes: when it is too long, only as many of the oldest
 * lines are dropped as necessary. */
TEST(test_history)
{
	enum { LINE = 1000, LINES = 70, MOST = 65536 };
	const struct writer_opts o = { .tool = "test", .line = "newest" };
	char *h = calloc(1, LINE * LINES + 1), types[64], prov[MOST + 1] = "";
	struct schema sc;
	struct writer *w;
	struct io *io;
	size_t i, left;

	model(&sc, "w", SCHEMA_F32);
	for (i = 0; i < LINES; i++) {
		memset(h + LINE * i, 'a', LINE);
		h[LINE * i] = (char)('0' + i % 10);
		h[LINE * i + LINE - 1] = '\n';
	}
	w = begun(&o, &io);
	left = (MOST - strlen("newest\n")) / LINE;
	ok(writer_history(w, h, &e) == 0 && put(w, &sc, 0, 1) == 0 &&
	    writer_finish(w, &e) == 0 &&
	    frames(io, types, prov, sizeof(prov)) == READER_END &&
	    strlen(prov) == LINE * left + 7 &&
	    strcmp(prov + LINE * left, "newest\n") == 0 &&
	    strncmp(prov, h + LINE * (LINES - left), LINE * left) == 0,
	    "the newest %zu lines: %s", left, ERR_MSG(&e));
	writer_free(w);
	/* provenance that just reaches the limit stays whole */
	h[MOST - 7] = '\0';
	h[MOST - 8] = '\n';
	w = begun(&o, &io);
	ok(writer_history(w, h, &e) == 0 && put(w, &sc, 0, 1) == 0 &&
	    writer_finish(w, &e) == 0 &&
	    frames(io, types, prov, sizeof(prov)) == READER_END &&
	    strlen(prov) == MOST && strncmp(prov, h, MOST - 7) == 0,
	    "65536 bytes are not too long: %s", ERR_MSG(&e));
	writer_free(w);
	free(h);
	schema_release(&sc);
}

TEST(test_refused)
{
	const struct writer_opts o = { .tool = "test" };
	struct schema sc, exact;
	struct shard s;
	struct writer *w;
	struct io *io;

	model(&sc, "w", SCHEMA_F32);
	model(&exact, "w", SCHEMA_U8);
	shard_init(&s);
	w = begun(&o, &io);
	ok(writer_shard(w, &s, &sc, &e) == 0 &&
	    writer_values(w, 1, x, 4, &e) == 0 &&
	    writer_values(w, 1, x, 4, &e) == -ERR_USAGE,
	    "a group twice: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(writer_values(w, 0, x, 4, &e) == -ERR_USAGE,
	    "and one before it: %s", ERR_MSG(&e));
	writer_free(w);
	w = begun(&o, &io);
	ok(writer_shard(w, &s, &exact, &e) == 0 && writer_record(w, 0,
	    CODEC_F16, 0, (const unsigned char *)"\0\0\0\0\0\0\0\0", 8, x, 4,
	    &e) == -ERR_REFUSED && strcmp(ERR_MSG(&e), "tensor 'w' is u8, which "
	    "codec f16 cannot hold: leave it out (ace-import --tensor)") == 0, "%s",
	    ERR_MSG(&e));
	err_clear(&e);
	ok(writer_values(w, 0, x, 4, &e) == 0, "the codec f32 takes it");
	writer_free(w);
	schema_release(&sc);
	schema_release(&exact);
}

/* The contents of SEND, and the length of the shard. */
TEST(test_send)
{
	const struct writer_opts o = { .tool = "test" };
	const struct shard_end *end;
	struct schema sc;
	struct shard s;
	struct writer *w;
	struct io *io;
	uint64_t before;
	size_t n;

	model(&sc, "w", SCHEMA_F32);
	shard_init(&s);
	w = begun(&o, &io);
	ok(put(w, &sc, 0, 2) == 0, "a shard");
	(void)learned_of(io, &n);
	before = n;
	ok(writer_shard(w, &s, &sc, &e) == 0 &&
	    writer_values(w, 0, x, 4, &e) == 0 &&
	    writer_flush(w, &e) == 0 && writer_values(w, 1, x, 4, &e) == 0,
	    "another, in two frames");
	writer_dropped(w, 2);
	writer_dropped(w, 3);
	ok(writer_send(w, NULL, &e) == 0, "the shard is complete");
	(void)learned_of(io, &n);
	ok(writer_shard_bytes(w) == n - before,
	    "its bytes are those from SHRD to SEND");
	end = writer_sent(w);
	ok(end->n_data == 2 && end->n_records == 2 && end->raw == 32 &&
	    end->wire == 32 && end->status == SHARD_COMPLETE,
	    "counts and bytes");
	ok(end->sums.nonzero == 6 && end->sums.sum == 6 &&
	    end->sums.sumsq == 42 && end->sums.max_abs == 4 &&
	    end->sums.dropped == 5, "sums, and values that were set to zero");
	writer_free(w);
	schema_release(&sc);
}

/* Abort a stream after `shards' whole shards or, with `inside', in the next one; its frames must
 * be `want', a letter each as in frames. */
static void
aborts(int shards, int inside, const char *want)
{
	const struct writer_opts o = { .tool = "test" };
	char types[64], prov[64];
	struct schema sc;
	struct shard s;
	struct writer *w;
	struct io *io;
	size_t n, again;
	int r = 0, i;

	model(&sc, "w", SCHEMA_F32);
	shard_init(&s);
	w = begun(&o, &io);
	for (i = 0; i < shards && r == 0; i++)
		r = put(w, &sc, (uint64_t)i, 1);
	s.step = 9;
	if (inside && r == 0)
		r = writer_shard(w, &s, &sc, &e);
	writer_abort(w);
	(void)learned_of(io, &n);
	writer_abort(w);
	(void)learned_of(io, &again);
	ok(r == 0 && n == again, "the error is reported once");
	r = frames(io, types, prov, sizeof(prov));
	ok(strcmp(types, want) == 0 && r == -ERR_DATA && whole == shards &&
	    e.kind == ERR_TRUNCATED && (n == 0 ||
	    strstr(ERR_MSG(&e), "the program that wrote the stream aborted it") != NULL),
	    "after %d shards%s: %s %s", shards, inside ? ", in one" : "", types,
	    ERR_MSG(&e));
	writer_free(w);
	schema_release(&sc);
}

TEST(test_aborts)
{
	aborts(0, 0, "");
	aborts(1, 0, "(SSDST");
	aborts(1, 1, "(SSDSSST");
	aborts(0, 1, "(SSST");
}
