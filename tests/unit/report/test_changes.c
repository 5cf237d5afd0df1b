/*
 * What ace-inspect prints about a patch: each tensor, each type, and the totals; wrong
 * counts in mODL are refused.
 */
#include "../test.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "files/dtype.h"
#include "format/frame.h"
#include "format/writer.h"
#include "kern/kern.h"
#include "report/list.h"
#include "report/report.h"
#include "report/verify.h"

static struct err e;

enum { GROUP = 8, TENSORS = 4, RECORDS = 4 };

/* 12 values in groups of 8, so two groups; 6 f4, so 3 words; none; and 5 that do not
 * change. */
static const struct {
	const char *name;
	unsigned dtype, form;
	uint64_t n;
} tensors[TENSORS] = {
	{ "a", SCHEMA_BF16, EXACT_BF16, 12 }, { "b", SCHEMA_F4, EXACT_INT8, 6 },
	{ "c", SCHEMA_F32, EXACT_F32, 5 }, { "d", SCHEMA_BF16, EXACT_BF16, 4 }
};

/* The default changes: 3 and 1 of a, 1 of b, 2 of d. */
static const unsigned char honest[] = { 3, 1, 1, 2 };

static void
record(struct writer *w, uint32_t group, unsigned form, size_t n, size_t values,
    size_t changed)
{
	unsigned char old[64] = { 0 }, new[64] = { 0 };
	struct buf body = BUF_INIT;
	uint8_t param;
	size_t i;

	for (i = 0; i < changed; i++)
		new[i * exact_size(form)] = 1;
	if (exact_put(form, old, new, n, &body, &param, &e) != (int)changed ||
	    writer_record(w, group, CODEC_EXACT, param, body.p, body.n, NULL,
	    values, &e) < 0)
		abort();
	buf_release(&body);
}

/* A patch whose mODL has these counts after its hashes, `times' times, before or after
 * the records. */
struct patch {
	const unsigned char *tail;
	size_t n;
	int times, first, whole;
};

static void
modl(struct writer *w, const struct patch *p)
{
	unsigned char note[40 + 8 * RECORDS + 64] = { 0 };
	int i;

	if (!p->whole)
		note[0] = 1;
	note[16] = 0xab;
	note[32] = RECORDS;
	memcpy(note + 40 + 8 * RECORDS, p->tail, p->n);
	for (i = 0; i < p->times; i++)
		if (writer_note(w, FRAME_MODL, note, 40 + 8 * RECORDS + p->n,
		    &e) < 0)
			abort();
}

static struct writer *
made(const struct patch *p, struct io **io)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct schema sc = SCHEMA_INIT;
	struct writer *w;
	struct shard s;
	size_t i;

	sc.group_size = GROUP;
	for (i = 0; i < TENSORS; i++) {
		struct schema_tensor t = { .name = (char *)(uintptr_t)
		    tensors[i].name, .dtype = (uint8_t)tensors[i].dtype,
		    .ndim = 1, .dim = { tensors[i].n } };

		if (schema_add(&sc, &t, &e) < 0)
			abort();
	}
	shard_init(&s);
	s.kind = SHARD_MODEL;
	s.flags |= p->whole ? 0 : SHARD_PREDICTED;
	if (schema_finish(&sc, &e) < 0 || io_create_mem(io, &e) < 0 ||
	    writer_open(&w, *io, &o, &e) < 0 || (!p->whole &&
	    (text_set(&s.kv, SHARD_KEY_PREDICT, SHARD_PREDICT_PATCH, &e) < 0 ||
	    text_set(&s.kv, SHARD_KEY_HISTORY, "none", &e) < 0)) ||
	    writer_shard(w, &s, &sc, &e) < 0)
		abort();
	if (p->first)
		modl(w, p);
	record(w, 0, EXACT_BF16, 8, 8, 3);
	record(w, 1, EXACT_BF16, 4, 4, 1);
	record(w, 2, EXACT_INT8, 3, 6, 1);
	record(w, 4, EXACT_BF16, 4, 4, 2);
	if (!p->first)
		modl(w, p);
	if (writer_send(w, NULL, &e) < 0 || writer_finish(w, &e) < 0)
		abort();
	shard_release(&s);
	schema_release(&sc);
	return w;
}

/* Run list or verify on it. */
static int
seen(const struct patch *p, int verify, int json, const char *glob, char **text)
{
	struct io *out, *in = NULL;
	struct writer *w = made(p, &out);
	struct reader *r = NULL;
	struct report rep;
	const unsigned char *bytes;
	size_t n, size;
	FILE *f = open_memstream(text, &size);
	int k;

	err_clear(&e);
	bytes = io_mem(out, &n);
	report_init(&rep, f, kern_list()[0]);
	rep.glob = glob;
	if (json)
		rep.s.form = SCREEN_JSON;
	if (io_open_mem(&in, bytes, n, &e) < 0)
		abort();
	rep.io = in;
	if ((k = reader_open(&r, in, NULL, &e)) == 0)
		k = verify ? verify_file(&rep, r, &e) : list_stream(&rep, r, &e);
	reader_free(r);
	(void)fclose(f);
	writer_free(w);
	return k;
}

/* Check that the output for the default patch contains this text. */
static void
says(const char *glob, const char *want)
{
	const struct patch p = { honest, sizeof(honest), 1, 0, 0 };
	char *text;

	ok(seen(&p, 0, 0, glob, &text) == 0 && strstr(text, want) != NULL, "%.60s",
	    want + 1);
	if (strstr(text, want) == NULL)
		(void)printf("# %s: %s\n", ERR_MSG(&e), text);
	free(text);
}

TEST(test_text)
{
	says(NULL, "\nmodels        from 01000000000000000000000000000000 to "
	    "ab000000000000000000000000000000");
	says(NULL, "\nchanged  dtype         values          %            of  "
	    "bits/value");
	/* a has both groups; two f4 are one value; unchanged tensors are left out */
	says(NULL, "\na        bf16               4    33.3333            12  ");
	says(NULL, "\nb        f4                 1    33.3333             3  ");
	says(NULL, "\nd        bf16               2    50.0000             4  ");
	says(NULL, "\nall      bf16               6    37.5000            16  ");
	says(NULL, "\nall      f4                 1    33.3333             3  ");
	/* its type is listed, with zeros */
	says(NULL, "\nall      f32                0     0.0000             5      0.0000");
	says(NULL, "\nall                         7    29.1667            24  ");
	says("[bd]", "\nall                         3    42.8571             7  ");
	says("d", "\nall                         2    50.0000             4  ");
}

/* Unchanged tensors have no line. */
TEST(test_left_out)
{
	const struct patch p = { honest, sizeof(honest), 1, 0, 0 };
	char *text;

	ok(seen(&p, 0, 0, NULL, &text) == 0 &&
	    strstr(text, "\nb        f4") != NULL &&
	    strstr(text, "\nc        f32") == NULL, "no line for c");
	free(text);
}

TEST(test_counts)
{
	static const unsigned char most[] = { 8, 4, 3, 4 };
	struct patch p = { most, sizeof(most), 1, 0, 0 };
	char *text;

	ok(seen(&p, 0, 1, NULL, &text) == 0 &&
	    strstr(text, "\"changed\":12,\"values\":12,") != NULL &&
	    strstr(text, "\"changed\":19,\"values\":24,") != NULL,
	    "as many as there are: %s", ERR_MSG(&e));
	free(text);
	p.n = 0;
	ok(seen(&p, 0, 1, NULL, &text) == 0 &&
	    strstr(text, "\"changed\":") == NULL &&
	    strstr(text, "\"before\":\"01") != NULL, "not said: %s",
	    ERR_MSG(&e));
	free(text);
	ok(seen(&p, 1, 0, NULL, &text) == 0, "and right: %s", ERR_MSG(&e));
	free(text);
	/* as with an old model whose hash is zero, which means none */
	p.whole = 1;
	ok(seen(&p, 0, 1, NULL, &text) == 0 &&
	    strstr(text, "\"before\":") == NULL &&
	    strstr(text, "\"after\":\"ab") != NULL, "whole: %s", ERR_MSG(&e));
	free(text);
}

/* Wrong counts after the hashes. */
static const struct {
	const char *what, *list;	/* list: the error of ace-inspect list; NULL:
					 * the same */
	unsigned char tail[32];
	size_t n;
	int times, first, whole;
} lies[] = {
	{ "one number too few", NULL, { 3, 1, 1 }, 3, 1, 0, 0 },
	{ "one too many", NULL, { 3, 1, 1, 2, 0 }, 5, 1, 0, 0 },
	{ "the last one cut", NULL, { 3, 1, 1, 0x82 }, 4, 1, 0, 0 },
	{ "not in the shortest form", NULL, { 3, 1, 1, 0x82, 0 }, 5, 1, 0, 0 },
	{ "above 64 bits", NULL, { 255, 255, 255, 255, 255, 255, 255, 255, 255,
	    2, 1, 1, 2 }, 13, 1, 0, 0 },
	{ "twice", NULL, { 3, 1, 1, 2 }, 4, 2, 0, 0 },
	{ "before the records", NULL, { 3, 1, 1, 2 }, 4, 1, 1, 0 },
	{ "of a whole model", NULL, { 3, 1, 1, 2 }, 4, 1, 0, 1 },
	{ "9 of 8 and 4, which are 12", "more values of tensor 'a'", { 9, 4, 1, 2 }, 4,
	    1, 0, 0 },
	{ "4 of 3", "more values of tensor 'b'", { 3, 1, 4, 2 }, 4, 1, 0, 0 },
	/* together they are 2 */
	{ "2^64 - 1, and 3", "more values of tensor 'a'", { 255, 255, 255, 255, 255,
	    255, 255, 255, 255, 1, 3, 1, 2 }, 13, 1, 0, 0 }
};

TEST(test_lies)
{
	struct patch p;
	const char *want;
	char *text;
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		p = (struct patch){ lies[i].tail, lies[i].n, lies[i].times,
		    lies[i].first, lies[i].whole };
		want = lies[i].list != NULL ? lies[i].list : "counts in frame mODL";
		ok(seen(&p, 0, 0, NULL, &text) == -ERR_DATA &&
		    strstr(ERR_MSG(&e), want) != NULL, "%s: %s", lies[i].what,
		    ERR_MSG(&e));
		free(text);
		if (lies[i].list != NULL)
			continue;
		ok(seen(&p, 1, 0, NULL, &text) == -ERR_DATA &&
		    strstr(ERR_MSG(&e), want) != NULL, "verified: %s",
		    ERR_MSG(&e));
		free(text);
	}
}
