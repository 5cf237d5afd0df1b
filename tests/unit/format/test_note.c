/* Annotations of groups, and a plan that arrives in pieces. */
#include <float.h>
#include "base/bytes.h"
#include "base/err.h"
#include "format/note.h"

#include "../test.h"

static struct err e;

static int
get(struct note *n, const struct buf *b, uint32_t entry, uint32_t groups)
{
	err_clear(&e);
	return note_get(n, b->p, b->n, entry, groups, &e);
}

TEST(test_stats)
{
	struct stat_group s[2], t;
	struct buf b = BUF_INIT;
	struct note n;
	float x[3] = { 1, 0, -4 };

	(void)stat_group_of(x, 3, &s[0]);
	(void)stat_group_of(x, 2, &s[1]);
	(void)note_put_stats(&b, 5, s, 2, &e);
	ok(b.n == NOTE_HEAD + 2 * NOTE_STAT, "%zu bytes for two groups", b.n);
	ok(get(&n, &b, NOTE_STAT, 7) == 0 && n.first == 5 && n.n == 2,
	    "groups 5 and 6: %s", ERR_MSG(&e));
	note_stat(&n, 0, &t);
	ok(memcmp(&t, &s[0], sizeof(t)) == 0, "the first as it was");
	note_stat(&n, 1, &t);
	ok(memcmp(&t, &s[1], sizeof(t)) == 0, "the second as it was");
	buf_release(&b);
}

TEST(test_plan)
{
	static const struct codec_plan want[] = {
		{ CODEC_NONE, 0, 0 }, { CODEC_TOPK, 1, 0.25f }
	};
	static const double prices[] = { 0, DBL_MAX, -DBL_MIN, NAN, -INFINITY,
	    INFINITY };
	struct buf b = BUF_INIT;
	struct codec_plan p;
	struct note n;
	size_t i;

	(void)note_put_plan(&b, 0, want, 2,
	    &(struct note_terms){ 4096, 0.5 }, &e);
	ok(get(&n, &b, NOTE_PLAN, 2) == 0 && n.n == 2, "a plan");
	ok(n.terms.budget == 4096 && n.terms.price == 0.5,
	    "its budget and the price of a byte");
	note_plan(&n, 0, &p);
	ok(p.codec == CODEC_NONE, "not sent");
	note_plan(&n, 1, &p);
	ok(p.codec == CODEC_TOPK && p.param == 1 && p.arg == 0.25f, "topk");
	for (i = 0; i < sizeof(prices) / sizeof(prices[0]); i++) {
		b.n = 0;
		(void)note_put_plan(&b, 0, want, 2,
		    &(struct note_terms){ 4096, prices[i] }, &e);
		ok(get(&n, &b, NOTE_PLAN, 2) == (i < 2 ? 0 : -ERR_DATA),
		    "a price of %g", prices[i]);
	}
	buf_release(&b);
}

TEST(test_hostile)
{
	float s[3] = { 0, 0.5f, 1 };
	struct buf b = BUF_INIT;
	unsigned long wrong = 0;
	struct note n;
	size_t full, i;

	(void)note_put_scores(&b, 2, s, 3, &e);
	ok(get(&n, &b, NOTE_SCORE, 5) == 0 && note_score(&n, 2) == 1,
	    "scores");
	ok(get(&n, &b, NOTE_SCORE, 4) == -ERR_DATA, "beyond the schema: %s",
	    ERR_MSG(&e));
	ok(get(&n, &b, NOTE_PLAN, 5) == -ERR_DATA, "another entry size: %s",
	    ERR_MSG(&e));
	full = b.n;
	for (i = 0; i < full; i++) {
		struct buf part = { malloc(i != 0 ? i : 1), i, i };

		memcpy(part.p, b.p, i);
		wrong += get(&n, &part, NOTE_SCORE, 5) != -ERR_DATA;
		free(part.p);
	}
	ok(wrong == 0, "every prefix is refused");
	bytes_set32(b.p, UINT32_MAX);
	ok(get(&n, &b, NOTE_SCORE, 5) == -ERR_DATA, "first + n overflows");
	bytes_set32(b.p, 2);
	bytes_set32(b.p + 4, 0x40000003);
	ok(get(&n, &b, NOTE_SCORE, 5) == -ERR_DATA, "n * size overflows");
	buf_release(&b);
}

static int
add(struct note_wait *p, uint32_t first, uint32_t n, uint8_t codec, uint32_t groups)
{
	struct codec_plan c[8];
	struct buf b = BUF_INIT;
	uint32_t i;
	int r;

	for (i = 0; i < n; i++)
		c[i] = (struct codec_plan){ codec, 0, (float)(first + i) };
	(void)note_put_plan(&b, first, c, n, NULL, &e);
	err_clear(&e);
	r = note_wait_add(p, b.p, b.n, groups, &e);
	buf_release(&b);
	return r;
}

TEST(test_pieces)
{
	struct note_wait p = NOTE_WAIT_INIT;
	struct codec_plan c;
	uint32_t g, wrong = 0;

	ok(note_wait_get(&p, 0, &c) == 0 && !p.any, "no plan yet");
	ok(add(&p, 0, 3, CODEC_Q8, 10) == 0 && add(&p, 3, 4, CODEC_Q4, 10) == 0,
	    "two pieces");
	for (g = 0; g < 7; g++)
		wrong += note_wait_get(&p, g, &c) != 1 || c.arg != (float)g ||
		    c.codec != (g < 3 ? CODEC_Q8 : CODEC_Q4);
	ok(wrong == 0 && p.any, "each group its own");
	ok(note_wait_get(&p, 7, &c) == 0, "not told yet");
	ok(add(&p, 9, 2, CODEC_Q4, 10) == -ERR_DATA, "beyond the schema: %s",
	    ERR_MSG(&e));
	note_wait_clear(&p);
	for (g = 0; g < 1000000 && add(&p, 9, 0, CODEC_Q4, 10) == 0; g++)
		continue;
	ok(g < 600000 && strncmp(ERR_MSG(&e), "limit", 5) == 0,
	    "%u empty pieces are too many: %s", g, ERR_MSG(&e));
	note_wait_clear(&p);
	ok(note_wait_get(&p, 8, &c) == 0 && !p.any, "the next shard has none");
	note_wait_release(&p);
}
