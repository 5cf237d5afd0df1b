/* The note of a patch: encoded and decoded, cut, with wrong counts. */
#include "../test.h"
#include "base/bytes.h"
#include "base/err.h"
#include "model/model.h"

static struct err e;

enum { GROUPS = 3 };

static void
made(struct buf *b)
{
	struct model_note t = MODEL_NOTE_INIT;
	uint64_t i;

	memset(t.before, 0x11, MODEL_HASH);
	memset(t.after, 0xee, MODEL_HASH);
	for (i = 0; i < GROUPS; i++)
		if (model_note_add(&t, UINT64_MAX - i, &e) < 0 ||
		    model_note_changed(&t, i * 1000, &e) < 0)
			abort();
	if (model_note_encode(&t, b, &e) < 0)
		abort();
	model_note_release(&t);
}

TEST(test_there_and_back)
{
	struct model_note t = MODEL_NOTE_INIT;
	struct buf b = BUF_INIT, again = BUF_INIT;
	int i;

	made(&b);
	is_u64(b.n, 40 + 8 * GROUPS + 5, "bytes");
	/* decode twice into the same struct, which must keep nothing of the first time */
	for (i = 0; i < 2; i++)
		ok(model_note_decode(&t, b.p, b.n, &e) == 0 && t.n == GROUPS &&
		    t.sum[2] == UINT64_MAX - 2 && t.before[15] == 0x11 &&
		    t.after[0] == 0xee && t.changed.n == 5, "decoded");
	ok(model_note_encode(&t, &again, &e) == 0 && again.n == b.n &&
	    memcmp(again.p, b.p, b.n) == 0, "the same bytes");
	ok(model_note_decode(&t, b.p, 40 + 8 * GROUPS, &e) == 0 &&
	    t.changed.n == 0, "without counts of changes");
	model_note_release(&t);
	buf_release(&b);
	buf_release(&again);
}

TEST(test_lies)
{
	static const uint64_t counts[] = { GROUPS + 1, (uint64_t)1 << 61,
	    ((uint64_t)1 << 61) + GROUPS, UINT64_MAX };
	struct model_note t = MODEL_NOTE_INIT;
	struct buf b = BUF_INIT;
	size_t n, i;
	char want[96];
	int bad = 0;

	made(&b);
	for (n = 0; n < 40 + 8 * GROUPS; n++) {
		err_clear(&e);
		(void)snprintf(want, sizeof(want), "corrupt: frame mODL has %zu B, %s", n,
		    n < 40 ? "expected at least 40 B" : "too few for its number of groups, 3");
		bad += model_note_decode(&t, b.p, n, &e) != -ERR_DATA ||
		    strcmp(ERR_MSG(&e), want) != 0;
	}
	ok(bad == 0, "a note that is cut anywhere is refused");
	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		bytes_set64(b.p + 32, counts[i]);
		err_clear(&e);
		ok(model_note_decode(&t, b.p, b.n, &e) == -ERR_DATA,
		    "%llx of %d: %s", (unsigned long long)counts[i], GROUPS,
		    ERR_MSG(&e));
	}
	model_note_release(&t);
	buf_release(&b);
}
