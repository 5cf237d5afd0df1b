/*
 * libFuzzer: byte 0 is a codec, byte 1 its parameter, bytes 2-3 the number of values, byte 4
 * the row length less one.  Decode the rest as a body, then encode it as values.  Their code
 * must not exceed codec_bound, and must decode to finite values.  Every kernel table of this
 * machine must give the same bits and bytes.  If the upper half of byte 0 is 1, also try codec
 * exact with old values.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "kern/kern.h"

enum { MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *const plans[] = {
	"f32", "f16", "exact", "q8", "sign", "topk:0.01",
	"topk:0.3", "qsgd:4", "qsgd:127", "ecq:0.01", "ecq:1e-20",
	"topk:0.2:q2", "topk:0.1:mag", "chunk:3/16:q2", "lowrank:2",
	"lowrank:64", "nonzero", "tcq:0.01", "tcq:1e-20"
};
enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

static void
fail(const char *plan, size_t n, const struct err *e)
{
	(void)fprintf(stderr, "%s of %zu values: %s\n", plan, n, ERR_MSG(e));
	abort();
}

/* Return the codec of a byte: its low half; 15, the escape, selects TCQ, which is above 15. */
static uint32_t
number(uint8_t b)
{
	return (b & 0x0f) == CODEC_ESCAPE ? CODEC_TCQ : b & 0x0f;
}

/* Code and decode x[n] by plan `from' and at most three after it; all would be slow. */
static void
there_and_back(const struct codec_ctx *ctx, size_t from, const float *x, size_t n,
    float *y)
{
	static float told[MAX];
	struct buf b = BUF_INIT;
	struct codec_plan plan;
	struct err e = ERR_INIT;
	uint8_t param;
	size_t i, k;

	for (k = from; k < from + 4 && k < PLANS; k++) {
		if (codec_parse(plans[k], &plan, &e) < 0)
			abort();
		b.n = 0;
		err_clear(&e);
		if (codec_encode_after(&plan, ctx, NULL, x, n, NULL, &b,
		    &param, told, &e) < 0)
			continue;
		if (b.n > codec_bound(&plan, n) || codec_decode(plan.codec,
		    param, ctx, b.p, b.n, y, n, &e) < 0)
			fail(plans[k], n, &e);
		if (memcmp(told, y, 4 * n) != 0)
			fail(plans[k], n, &e);
		for (i = 0; i < n; i++)
			if (!isfinite(y[i]))
				fail(plans[k], n, &e);
		if (codec_exact(plan.codec) && memcmp(x, y, 4 * n) != 0)
			fail(plans[k], n, &e);
	}
	buf_release(&b);
}

/* Use this kernel table from here on; NULL: the default. Return 0 if the machine lacks it. */
static int
use(const char *table)
{
	struct err e = ERR_INIT;

	if (table == NULL)
		return unsetenv("ACE_KERNEL") == 0;
	return setenv("ACE_KERNEL", table, 1) == 0 && kern_get(&e) != NULL;
}

static const char *const tables[] = { "avx2", "avx512", "neon" };
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* Decode p[n] with each table; the result must be `was' and, if that is 0, want[values]. */
static void
decodes_alike(const struct codec_ctx *ctx, const uint8_t *p, size_t n,
    const float *want, size_t values, int was)
{
	static float y[MAX];
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i <= TABLES; i++) {
		err_clear(&e);
		if (!use(i < TABLES ? tables[i] : "ref"))
			continue;
		if (codec_decode(number(p[0]), p[1], ctx, p + 5, n - 5, y,
		    values, &e) != was)
			abort();
		if (was == 0 && memcmp(want, y, 4 * values) != 0)
			abort();
	}
	(void)use(NULL);
}

static void
codes_alike(const struct codec_ctx *ctx, const char *text, const float *x,
    size_t n)
{
	struct buf one = BUF_INIT, b = BUF_INIT;
	struct codec_plan plan;
	struct err e = ERR_INIT;
	uint8_t param, other;
	size_t i;
	int r, k;

	if (codec_parse(text, &plan, &e) < 0 || !use("ref"))
		abort();
	r = codec_encode(&plan, ctx, x, n, &one, &param, &e);
	for (i = 0; i < TABLES; i++) {
		err_clear(&e);
		if (!use(tables[i]))
			continue;
		b.n = 0;
		k = codec_encode(&plan, ctx, x, n, &b, &other, &e);
		if (k != r || (r == 0 && (other != param || b.n != one.n ||
		    (b.n != 0 && memcmp(b.p, one.p, b.n) != 0))))
			fail(text, n, &e);
	}
	(void)use(NULL);
	buf_release(&one);
	buf_release(&b);
}

static void
bits_back(unsigned form, const unsigned char *old, const unsigned char *new,
    size_t want)
{
	static unsigned char got[8 * MAX];
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	uint8_t param;

	if (exact_put(form, old, new, want, &b, &param, &e) < 0 ||
	    b.n > exact_bound(form, want) || (b.n > 0 && (exact_get(param, form,
	    old, b.p, b.n, got, want, &e) < 0 ||
	    memcmp(got, new, want * exact_size(form)) != 0)))
		fail("exact", want, &e);
	buf_release(&b);
}

/* Decode p[n] as a body with fixed old words; then code and decode p[n] as new words, and as
 * changes of the upper halves of bytes: both must come back. */
static void
bits(unsigned form, const uint8_t *p, size_t n, size_t want)
{
	static unsigned char old[8 * MAX], new[8 * MAX], got[8 * MAX];
	const size_t size = exact_size(form);
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < sizeof(old); i++)
		old[i] = (unsigned char)(i * i >> 3);
	(void)exact_get((uint8_t)(form | EXACT_GIVEN), form, old, p, n, got, want,
	    &e);
	err_clear(&e);
	(void)exact_get((uint8_t)form, form, old, p, n, got, want, &e);
	err_clear(&e);
	(void)exact_get(EXACT_HALVES | EXACT_GIVEN, form, old, p, n, got, want, &e);
	err_clear(&e);
	memcpy(new, old, sizeof(new));
	memcpy(new, p, n < want * size ? n : want * size);
	bits_back(form, old, new, want);
	for (i = 0; i < sizeof(new); i++)
		new[i] = old[i] ^ (i < n && p[i] < 16 ? (unsigned char)(p[i] << 4) : 0);
	bits_back(form, old, new, want);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static float x[MAX], y[MAX];
	struct codec_ctx ctx = { 1, 2, 3, 1, 0 };
	struct err e = ERR_INIT;
	size_t i, want;
	int r;

	if (n < 5)
		return 0;
	want = bytes_le16(p + 2) % MAX;
	ctx.cols = p[4] + 1u;
	if (p[0] >> 4 == 1)
		bits(p[1] % EXACT_NFORM, p + 5, n - 5, want);
	r = codec_decode(number(p[0]), p[1], &ctx, p + 5, n - 5, x, want, &e);
	decodes_alike(&ctx, p, n, x, want, r);
	if (r == 0 && number(p[0]) > CODEC_F16 && number(p[0]) != CODEC_EXACT)
		for (i = 0; i < want; i++)
			if (!isfinite(x[i]))
				abort();
	want = (n - 5) / 4 < MAX ? (n - 5) / 4 : MAX;
	for (i = 0; i < want; i++) {
		x[i] = bytes_f32(bytes_le32(p + 5 + 4 * i));
		if (!isfinite(x[i]))
			x[i] = 0;
	}
	codes_alike(&ctx, plans[p[0] % PLANS], x, want);
	there_and_back(&ctx, p[1] % PLANS, x, want, y);
	return 0;
}
