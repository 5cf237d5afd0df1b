/* Slices of tensors, and patches of slices with false annotations. */
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/writer.h"
#include "model/series.h"
#include "model/slice.h"

#include "../inside.h"
#include "../model.h"
#include "../test.h"

static struct err e;

static unsigned
any(unsigned n)
{
	static uint64_t x = 1;

	x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return n == 0 ? 0 : (unsigned)(x >> 33) % n;
}

static int
has(const struct slice *p, const struct schema_tensor *t, uint64_t x)
{
	unsigned d;

	for (d = t->ndim; d-- > 0; x /= t->dim[d])
		if (x % t->dim[d] < p->off[d] ||
		    x % t->dim[d] >= p->off[d] + p->len[d])
			return 0;
	return 1;
}

/* Make a random slice of `in', which is a slice itself. */
static struct slice
slice_in(const struct slice *in, unsigned ndim)
{
	struct slice p = { .off = { 0 } };
	unsigned d;

	for (d = 0; d < ndim; d++) {
		p.off[d] = in->off[d] + any((unsigned)in->len[d] + 1);
		p.len[d] = any((unsigned)(in->off[d] + in->len[d] - p.off[d]) + 1);
		if (any(3) == 0) {
			p.off[d] = in->off[d];
			p.len[d] = in->len[d];
		}
	}
	return p;
}

/* Each value of a tensor is its index: check each value of a slice. */
TEST(slices)
{
	struct schema_tensor t = { .dtype = SCHEMA_U8 };
	unsigned char group[256], tile[256], back[256];
	struct slice all, own, p;
	unsigned i, d, x, lo, hi, n, k, bad = 0;

	for (i = 0; i < 20000; i++) {
		t.ndim = (uint8_t)any(5);
		for (t.numel = 1, d = 0; d < t.ndim; d++)
			t.numel *= t.dim[d] = any(8) == 0 ? 1 : any(4) + any(2);
		slice_whole(&t, &all);
		own = slice_in(&all, t.ndim);
		p = slice_in(&own, t.ndim);
		lo = any((unsigned)t.numel + 1);
		hi = lo + any((unsigned)t.numel - lo + 1);
		for (n = k = 0, x = lo; x < hi; x++) {
			if (has(&own, &t, x))
				group[n++] = (unsigned char)x;
			k += (unsigned)has(&p, &t, x);
		}
		bad += slice_before(&own, &t, hi) - slice_before(&own, &t, lo) != n;
		memset(back, 255, sizeof(back));
		bad += slice_move(&p, &t, lo, hi, &own, 0, group, tile) != k;
		bad += slice_move(&p, &t, lo, hi, &own, 1, back, tile) != k;
		for (n = k = 0, x = lo; x < hi; x++) {
			if (has(&p, &t, x))
				bad += tile[k++] != (unsigned char)x;
			if (has(&own, &t, x))
				bad += back[n++] != (has(&p, &t, x) ?
				    (unsigned char)x : 255);
		}
		bad += slice_move(&p, &t, lo, hi, &own, 0, group, group) != k ||
		    memcmp(group, tile, k) != 0;
	}
	is_u64(bad, 0, "a slice has what it should");
}

/* A patch of slices: its two dimensions, checksums and records. */
struct lie {
	const char *what, *says, *part;
	uint64_t v[4];
	int sums, notes, records, plain;
};

/* Read a patch of f32[4, 2] as the holder of rows 0 and 1; return 0 or the error. */
static int
reads(const struct lie *x)
{
	struct schema sc = model_of(4, 2, MODEL_GROUP);
	struct slice own = { .len = { 2, 2 } };
	struct model m = { .path = "m", .schema = sc, .slice = &own };
	struct series s = SERIES_INIT;
	struct model_note note = MODEL_NOTE_INIT;
	struct buf b = BUF_INIT, cut = BUF_INIT, body = BUF_INIT;
	unsigned char words[16] = { 1 }, sum[8] = { 0 };
	struct writer_opts made = { "maker", "maker 1", 0 };
	struct reader_opts o = { .any_model = 1 };
	struct reader *in = NULL;
	struct writer *w;
	struct shard sh;
	struct io *io;
	uint8_t param;
	int i, r;

	shard_init(&sh);
	sh.kind = SHARD_MODEL;
	sh.flags = SHARD_PREDICTED;
	(void)text_set(&sh.kv, SHARD_KEY_PREDICT, SHARD_PREDICT_PATCH, &e);
	(void)text_set(&sh.kv, SHARD_KEY_HISTORY, "none", &e);
	(void)text_set(&sh.kv, SHARD_KEY_PART, x->part, &e);
	(void)exact_put(EXACT_F32, NULL, words, 4, &body, &param, &e);
	(void)io_create(&io, "patch", 0, &e);
	(void)writer_open(&w, io, &made, &e);
	(void)writer_shard(w, &sh, &sc, &e);
	note.before[0] = note.after[0] = 1;
	for (i = 0; i < x->records; i++) {
		(void)writer_record(w, 0, CODEC_EXACT, (uint8_t)(x->plain ?
		    EXACT_BF16 : param | EXACT_PART), body.p, body.n, NULL, 8, &e);
		(void)model_note_add(&note, 7, &e);
	}
	(void)model_note_encode(&note, &b, &e);
	(void)writer_note(w, FRAME_MODL, b.p, b.n, &e);
	for (i = 0; i < 4; i++) {
		(void)buf_room(&cut, 10, &e);
		cut.n += bytes_set_varint(cut.p + cut.n, x->v[i]);
	}
	for (i = 0; i < x->sums; i++)
		(void)buf_put(&cut, sum, sizeof(sum), &e);
	for (i = 0; i < x->notes; i++)
		(void)writer_note(w, FRAME_PART, cut.p, cut.n, &e);
	(void)writer_send(w, NULL, &e);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	err_clear(&e);
	if ((r = reader_file(&in, "patch", &o, &e)) == 0)
		r = series_read(&s, in, &m, &e);
	reader_free(in);
	series_release(&s);
	shard_release(&sh);
	schema_release(&sc);
	model_note_release(&note);
	buf_release(&b);
	buf_release(&cut);
	buf_release(&body);
	return r;
}

TEST(lies)
{
	static const struct lie lie[] = {
		{ "all of what it has", "", "0/1", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "less", "", "0/1", { 1, 1, 0, 2 }, 1, 1, 1, 0 },
		{ "nothing that changed", "", "0/1", { 0, 2, 0, 2 }, 1, 1, 0, 0 },
		{ "no words", "", "0/1", { 0, 0, 0, 2 }, 0, 1, 0, 0 },
		{ "others", "", "0/1", { 2, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "more", "holds only some of the values", "0/1", { 1, 3, 0, 2 }, 1, 1, 1, 0 },
		{ "words beyond the tensor", "ends beyond its shape in dimension 0", "0/1",
		    { 3, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "a sum that is 1", "ends beyond its shape in dimension 1", "0/1",
		    { 0, 2, 2, UINT64_MAX }, 1, 1, 1, 0 },
		{ "2^64 - 1", "ends beyond its shape in dimension 0", "0/1",
		    { UINT64_MAX, UINT64_MAX, 0, 2 }, 1, 1, 1, 0 },
		{ "2^63", "ends beyond its shape in dimension 0", "0/1",
		    { (uint64_t)1 << 63, (uint64_t)1 << 63, 0, 2 }, 1, 1, 1, 0 },
		{ "no checksum", "the list of slices in the patch of rank 0", "0/1",
		    { 0, 2, 0, 2 }, 0, 1, 1, 0 },
		{ "two checksums", "the list of slices in the patch of rank 0", "0/1",
		    { 0, 2, 0, 2 }, 2, 1, 1, 0 },
		{ "a record without words", "the list of slices in the patch of rank 0", "0/1",
		    { 4, 0, 0, 2 }, 1, 1, 1, 0 },
		{ "nothing", "the list of slices in the patch of rank 0", "0/1", { 0 }, 0, 0, 1, 0 },
		{ "all twice", "the list of slices in the patch of rank 0", "0/1",
		    { 0, 2, 0, 2 }, 1, 2, 1, 0 },
		{ "records of whole groups", "group 0 holds values of whole tensors", "0/1",
		    { 0, 2, 0, 2 }, 1, 1, 1, 1 },
		{ "rank 1 of 1", "key part", "1/1", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "rank 0 of 0", "key part", "0/0", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "rank 0 of 1025", "key part", "0/1025", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "no rank", "key part", "/1", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "words", "key part", "zero of one", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "a long number", "key part", "00000000000000000000000000000000/1",
		    { 0, 2, 0, 2 }, 1, 1, 1, 0 },
		{ "one of two", "has parts of 2 ranks, and the part of rank 0 is missing",
		    "1/2", { 0, 2, 0, 2 }, 1, 1, 1, 0 },
	};
	size_t i;
	int r;

	for (i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
		r = reads(&lie[i]);
		ok(lie[i].says[0] == '\0' ? r == 0 : r == (i + 1 <
		    sizeof(lie) / sizeof(*lie) ? -ERR_DATA : -ERR_REFUSED) &&
		    strstr(ERR_MSG(&e), lie[i].says) != NULL, "a part that says %s: %s",
		    lie[i].what, r < 0 ? ERR_MSG(&e) : "taken");
	}
}
