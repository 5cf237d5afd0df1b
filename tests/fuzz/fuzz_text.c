/*
 * libFuzzer: read any bytes as payloads of frames of the kinds that the first byte selects.
 * The fuzzer of whole streams seldom makes a valid frame of each kind.
 */
#include <string.h>

#include "base/err.h"
#include "format/annotation.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/receipt.h"
#include "format/schema.h"
#include "format/shard.h"
#include "format/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { GROUPS = 300, LAYERS = 64 };

static void
notes(const unsigned char *p, size_t n, struct err *e)
{
	static const uint32_t entries[] = { NOTE_STAT, NOTE_SCORE, NOTE_PLAN };
	struct codec_plan plan;
	struct note t;
	uint32_t i;
	size_t k;

	for (k = 0; k < 3; k++) {
		if (note_get(&t, p, n, entries[k], GROUPS, e) < 0)
			continue;
		for (i = 0; i < t.n; i++)
			if (k == 1)
				(void)note_score(&t, i);
			else if (k == 2)
				note_plan(&t, i, &plan);
	}
}

static void
texts(const unsigned char *p, size_t n, struct err *e)
{
	struct text_kv a = TEXT_KV_INIT, b = TEXT_KV_INIT, c = TEXT_KV_INIT;
	struct buf again = BUF_INIT;

	/* each value has one form: what is read is written unchanged */
	if (text_decode(&a, p, n, e) == 0 && text_encode(&a, &again, e) == 0 &&
	    (again.n != n || (n != 0 && memcmp(again.p, p, n) != 0)))
		__builtin_trap();
	(void)text_get_lines(&b, p, n, e);
	(void)keys_read(&c, p, n, e);
	text_release(&a);
	text_release(&b);
	text_release(&c);
	buf_release(&again);
}

static void
arrays(const unsigned char *p, size_t n, struct err *e)
{
	struct array_names l = ARRAY_NAMES_INIT;
	double v[LAYERS];

	(void)array_get_names(&l, p, n, e);
	array_release(&l);
	(void)array_get_times(p, n, LAYERS, v, e);
}

static void
shards(const unsigned char *p, size_t n, struct err *e)
{
	struct buf again = BUF_INIT;
	struct receipt r;
	struct shard s;

	shard_init(&s);
	if (shard_decode(&s, p, n, e) == 0 && shard_encode(&s, &again, e) == 0 &&
	    (again.n != n || memcmp(again.p, p, n) != 0))
		__builtin_trap();
	shard_release(&s);
	again.n = 0;
	if (receipt_decode(&r, p, n, e) == 0 &&
	    receipt_encode(&r, &again, e) == 0 &&
	    (again.n != n || memcmp(again.p, p, n) != 0))
		__builtin_trap();
	buf_release(&again);
}

static void
schemas(const unsigned char *p, size_t n, struct err *e)
{
	struct schema s = SCHEMA_INIT;
	struct schema_span span;
	size_t size;
	uint32_t g;

	if (schema_bytes(p, n, 1 << 20, n, &size, e) == 0 &&
	    schema_decode(&s, p, n, e) == 0)
		for (g = 0; g < s.ngroups && g < GROUPS; g++)
			schema_span(&s, g, &span);
	schema_release(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static void (*const how[])(const unsigned char *, size_t,
	    struct err *) = { notes, texts, arrays, shards, schemas };
	struct err e = ERR_INIT;

	if (n > 0)
		how[p[0] % 5](p + 1, n - 1, &e);
	return 0;
}
