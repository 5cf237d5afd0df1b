/* Groups of several patches as one, and what of them is refused. */
#include "base/err.h"
#include "base/pack.h"
#include "codec/exact.h"
#include "model/series.h"

#include "../test.h"

enum { N = 4000, STEPS = 3 };

static unsigned char word[STEPS + 1][2 * N];	/* a group, and what became of it */
static const struct model_span span = { .bytes = 2 * N, .words = N,
	.form = EXACT_BF16 };
static struct err e;

/* Step k of it, whole or given the one before, as a patch has it. */
static struct series_part
part(struct series *s, size_t k, int whole)
{
	struct series_part x = { .step = k, .sum = pack_hash64(word[k], 2 * N) };
	struct buf b = BUF_INIT;

	(void)exact_put(EXACT_BF16, whole ? NULL : word[k - 1], word[k], N, &b,
	    &x.param, &e);
	x.whole = (x.param & EXACT_GIVEN) == 0;
	x.len = (uint32_t)b.n;
	(void)scratch_put(&s->s, b.p, b.n, &x.at, &e);
	buf_release(&b);
	return x;
}

static void
words(void)
{
	size_t i, k;

	for (i = 0; i < 2 * N; i++)
		word[0][i] = (unsigned char)(i * i >> 5);
	for (k = 1; k <= STEPS; k++) {
		memcpy(word[k], word[k - 1], 2 * N);
		for (i = k; i < N; i += 97)
			word[k][2 * i] ^= 1;
	}
}

/* What n parts make, from word[0] on; the parameter, or < 0. */
static int
folds(const struct series *s, const struct series_part *list, size_t n,
    const unsigned char *want)
{
	static unsigned char new[2 * N], got[2 * N];
	struct buf body = BUF_INIT, more = BUF_INIT;
	uint8_t param = 0;
	int r = series_fold(s, list, n, &span, new, &body, &more, &param, &e);

	if (r == 0 && (exact_get(param, EXACT_BF16, (param & EXACT_GIVEN) != 0 ?
	    word[0] : NULL, body.p, body.n, got, N, &e) < 0 ||
	    memcmp(got, want, 2 * N) != 0 ||
	    ((param & EXACT_GIVEN) == 0 && memcmp(new, want, 2 * N) != 0)))
		r = -1000;
	buf_release(&body);
	buf_release(&more);
	return r < 0 ? r : param;
}

TEST(of_several_patches)
{
	struct series s = SERIES_INIT;
	struct series_part list[STEPS], many[EXACT_CHAIN_MOST + 1];
	size_t i;

	words();
	for (i = 0; i < STEPS; i++)
		list[i] = part(&s, i + 1, 0);
	ok(folds(&s, list, 1, word[1]) == (EXACT_BF16 | EXACT_GIVEN),
	    "one stays as it is");
	ok(folds(&s, list, STEPS, word[STEPS]) == (EXACT_BF16 | EXACT_GIVEN |
	    EXACT_CHAIN), "several are a chain");
	list[1] = part(&s, 2, 1);
	ok(folds(&s, list, STEPS, word[STEPS]) == EXACT_BF16,
	    "behind a whole one it is whole");
	list[0].len = 0;
	ok(folds(&s, list, 2, word[2]) == EXACT_BF16,
	    "and what is before that is not looked at");
	list[2].sum ^= 1;
	ok(folds(&s, list, STEPS, word[STEPS]) == -ERR_DATA && strstr(ERR_MSG(&e),
	    "checksum of a group, of the patch to step 3") != NULL,
	    "a checksum that is another: %s", ERR_MSG(&e));
	err_clear(&e);
	list[1].sum ^= 1;
	ok(folds(&s, list, 2, word[2]) == -ERR_DATA, "of the whole one, too");
	err_clear(&e);
	/* there and back */
	many[0] = part(&s, 1, 0);
	memcpy(word[2], word[0], 2 * N);
	many[1] = part(&s, 2, 0);
	for (i = 2; i <= EXACT_CHAIN_MOST; i++)
		many[i] = many[i % 2];
	ok(folds(&s, many, EXACT_CHAIN_MOST, word[0]) > 0, "as many as may be");
	ok(folds(&s, many, EXACT_CHAIN_MOST + 1, word[1]) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "limit: group 0 was changed 1025 times") != NULL,
	    "and one more");
	scratch_release(&s.s);
}
