/*
 * libFuzzer: byte 0 a codec, 1 its parameter, 2-3 how many values, 4 the row
 * length; the rest is a body to decode, and then values to encode: what was
 * coded must decode, within the bound, to finite values.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"

enum { MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *const plans[] = {
	"f32", "f16", "bf16", "lossless", "q8", "q4", "sign", "topk:0.01",
	"topk:0.3", "qsgd:4", "qsgd:255", "i64", "ecq:0.01", "ecq:1e-20",
	"topk:0.2:q4", "topk:0.2:q2:rice", "topk:0.1:mag:sample",
	"chunk:3/16:q2", "threshold:0.5:q4", "tern", "tern:clip", "tern:mse",
	"natural", "eden:1", "eden:3.3:mse", "eden:0.1", "lowrank:2",
	"lowrank:64:q8", "nonzero"
};

static void
fail(const char *plan, size_t n, const struct err *e)
{
	(void)fprintf(stderr, "%s of %zu values: %s\n", plan, n, ERR_MSG(e));
	abort();
}

static void
there_and_back(const struct codec_ctx *ctx, const float *x, size_t n, float *y)
{
	static float told[MAX];
	struct buf b = BUF_INIT;
	struct codec_plan plan;
	struct err e = ERR_INIT;
	uint8_t param;
	size_t i, k;

	for (k = 0; k < sizeof(plans) / sizeof(plans[0]); k++) {
		if (codec_parse(plans[k], &plan, &e) < 0)
			abort();
		b.n = 0;
		err_clear(&e);
		/* i64 refuses what it cannot hold */
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
		if (codec_exact(plan.codec, param) && memcmp(x, y, 4 * n) != 0)
			fail(plans[k], n, &e);
	}
	buf_release(&b);
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
	r = codec_decode(p[0] & 0x0f, p[1], &ctx, p + 5, n - 5, x, want, &e);
	if (r == 0 && (p[0] & 0x0f) > CODEC_LOSSLESS)
		for (i = 0; i < want; i++)
			if (!isfinite(x[i]))
				abort();
	want = (n - 5) / 4 < MAX ? (n - 5) / 4 : MAX;
	for (i = 0; i < want; i++) {
		x[i] = bytes_f32(bytes_le32(p + 5 + 4 * i));
		if (!isfinite(x[i]))
			x[i] = 0;
	}
	there_and_back(&ctx, x, want, y);
	return 0;
}
