/*
 * At limits that ace-stream(5) sets for bodies, bodies with the last allowed value are read,
 * and those with the next one are refused. Bodies are zeros except for a few bytes.
 */
#include "codec/rans.h"
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 2, 0 } };

static const struct limit {
	uint32_t codec;
	uint8_t param;
	size_t n, len;
	struct {
		unsigned char at, byte;
	} set[5];		/* bytes to set; a byte of 0 changes nothing */
	const char *good, *bad;	/* name of a valid case, else NULL; of an invalid one */
} limits[] = {
	{ CODEC_F32, 0, 0, 0, { { 0, 0 } }, "no values are no bytes", NULL },
	{ CODEC_F32, 0, 0, 1, { { 0, 0 } }, NULL, "no values, a byte" },
	{ CODEC_TOPK, 0, 0, 1, { { 0, 0 } }, NULL, "no values, a byte: topk" },
	{ CODEC_F32, 0, 1, 4, { { 2, 0x80 }, { 3, 0x7f } },
	    "f32 carries the infinite", NULL },
	{ CODEC_F16, 0, 1, 2, { { 1, 0x7c } }, "so does f16", NULL },
	{ CODEC_EXACT, 0, 1, 8, { { 1, 0xff } }, "and exact", NULL },
	{ CODEC_EXACT, 0, 1, 8, { { 0, 4 } }, NULL, "a mode of planes" },
	{ CODEC_EXACT, 64, 1, 8, { { 0, 0 } }, NULL, "exact: bit 6 of the parameter" },
	{ CODEC_EXACT, 0, 1, 8, { { 2, 128 } }, NULL,
	    "a second plane that leaves values out" },
	{ CODEC_Q8, 0, 64, 68, { { 0, 0xff }, { 1, 0x7b } }, "q8: 7bff", NULL },
	{ CODEC_Q8, 0, 64, 68, { { 0, 0xff }, { 1, 0xfb } }, "q8: fbff", NULL },
	{ CODEC_Q8, 0, 64, 68, { { 1, 0x7c } }, NULL, "q8: 7c00" },
	{ CODEC_Q8, 0, 64, 68, { { 1, 0xfc } }, NULL, "q8: fc00" },
	{ CODEC_Q8, 0, 64, 68, { { 35, 0x7c } }, NULL, "q8: block 2" },
	{ CODEC_SIGN, 0, 257, 37, { { 34, 0x7f }, { 35, 0x7f } }, "sign: 7f7f",
	    NULL },
	{ CODEC_SIGN, 0, 257, 37, { { 34, 0x80 }, { 35, 0x7f } }, NULL,
	    "sign: an infinite mean" },
	{ CODEC_SIGN, 0, 257, 37, { { 35, 0x80 } }, NULL,
	    "sign: a negative mean" },
	{ CODEC_SIGN, 0, 257, 37, { { 36, 1 } }, "sign: a last one", NULL },
	{ CODEC_SIGN, 0, 257, 37, { { 36, 2 } }, NULL, "sign: padding" },
	/* 16 values in 2 columns: 8 of P, 2 of Q for each rank */
	{ CODEC_LOWRANK, 1, 16, 22, { { 0, 200 } }, "lowrank: e = 200", NULL },
	{ CODEC_LOWRANK, 1, 16, 22, { { 0, 201 } }, NULL, "lowrank: e = 201" },
	{ CODEC_LOWRANK, 1, 16, 22, { { 0, 0x38 }, { 1, 0xff } },
	    "lowrank: e = -200", NULL },
	{ CODEC_LOWRANK, 1, 16, 22, { { 0, 0x37 }, { 1, 0xff } }, NULL,
	    "lowrank: e = -201" },
	{ CODEC_LOWRANK, 1, 16, 22, { { 2, 0x80 }, { 3, 0x7f }, { 18, 0x80 },
	    { 19, 0x3f } }, NULL, "lowrank: an infinite factor times one" },
	{ CODEC_LOWRANK, 1, 16, 21, { { 0, 0 } }, NULL, "lowrank: a byte too few" },
	{ CODEC_LOWRANK, 1, 16, 23, { { 0, 0 } }, NULL, "lowrank: a byte too many" },
	{ CODEC_LOWRANK, 64, 16, 42, { { 0, 0 } }, "lowrank: rank 64", NULL },
	{ CODEC_LOWRANK, 65, 16, 42, { { 0, 0 } }, NULL, "lowrank: rank 65" },
	{ CODEC_LOWRANK, 0, 16, 2, { { 0, 0 } }, NULL, "lowrank: rank 0" },
	{ CODEC_LOWRANK, 129, 16, 16, { { 0, 0 } }, NULL, "lowrank: rank 129" },
	{ CODEC_QSGD, 1, 2, 6, { { 0, 0xff }, { 1, 0xff }, { 2, 0x7f },
	    { 3, 0x7f } }, "qsgd: the greatest norm", NULL },
	{ CODEC_QSGD, 1, 2, 6, { { 2, 0x80 }, { 3, 0x7f } }, NULL,
	    "qsgd: an infinite norm" },
	{ CODEC_QSGD, 1, 8, 3, { { 0, 0 } }, NULL, "qsgd: a norm cut short" },
	{ CODEC_QSGD, 1, 8, 5, { { 0, 0 } }, NULL,
	    "qsgd: codes after a norm of 0" },
	/* one level: codes 0 to 2 */
	{ CODEC_QSGD, 1, 3, 7, { { 3, 0x3f }, { 4, 1 }, { 5, 2 } },
	    "qsgd: three codes", NULL },
	{ CODEC_QSGD, 1, 3, 8, { { 3, 0x3f }, { 4, 1 }, { 5, 2 } }, NULL,
	    "qsgd: a byte too many" },
	{ CODEC_QSGD, 1, 3, 6, { { 3, 0x3f }, { 4, 1 } }, NULL,
	    "qsgd: a byte too few" },
	{ CODEC_QSGD, 0, 3, 7, { { 3, 0x3f } }, NULL, "qsgd: no levels" },
	{ CODEC_QSGD, 1, 3, 7, { { 3, 0x3f }, { 5, 3 } }, NULL,
	    "qsgd: a level too large" },
	{ CODEC_QSGD, 1, 3, 7, { { 3, 0xbf }, { 5, 2 } }, NULL,
	    "qsgd: a negative norm" },
	{ CODEC_QSGD, 127, 1, 5, { { 3, 0x3f }, { 4, 254 } },
	    "qsgd: 127 levels", NULL },
	{ CODEC_QSGD, 128, 1, 5, { { 3, 0x3f }, { 4, 254 } }, NULL,
	    "qsgd: 128 levels" },
	/* step 1, mode LEFT, level 20, symbols up to 3 */
	{ CODEC_ECQ, 0, 100, 0, { { 0, 0 } }, "ecq: no bytes", NULL },
	{ CODEC_ECQ, 0, 100, 1, { { 0, 0 } }, NULL, "ecq: one byte" },
	{ CODEC_ECQ, 0, 100, 6, { { 1, 0x80 }, { 2, 0x3f }, { 5, 64 + 20 } }, NULL,
	    "ecq: cut in the header" },
	{ CODEC_ECQ, 0, 100, 7, { { 1, 0x80 }, { 2, 0x3f }, { 5, 64 + 20 }, { 6, 3 } },
	    NULL, "ecq: no code" },
	{ CODEC_ECQ, 0, 100, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 43 }, { 6, 3 } },
	    NULL, "ecq: level 43" },
	{ CODEC_ECQ, 0, 100, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 192 + 20 }, { 6, 3 } },
	    NULL, "ecq: mode 3" },
	{ CODEC_ECQ, 0, 3, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 128 + 20 }, { 6, 3 } },
	    NULL, "ecq: rows of 2, and 3 values" },
	{ CODEC_ECQ, 0, 100, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 64 + 20 } }, NULL,
	    "ecq: no symbols" },
	{ CODEC_ECQ, 0, 100, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 20 }, { 6, 5 << 4 | 3 } },
	    NULL, "ecq: 32 states" },
	{ CODEC_ECQ, 0, 100, 64, { { 1, 0x80 }, { 2, 0x3f }, { 5, 20 }, { 6, 15 }, { 7, 15 } },
	    NULL, "ecq: escapes without end" },
	{ CODEC_ECQ, 0, 100, 63, { { 5, 64 + 20 }, { 6, 3 } }, NULL,
	    "ecq: stored values, too few bytes" },
	{ CODEC_TOPK, 1, 8, 6, { { 0, 1 } }, NULL, "topk: a form that is reserved" },
	/* one of eight values: k, a, r, a gap and a code */
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 1, 0x7f }, { 2, 0x7f },
	    { 5, 1 } }, "topk: a of 7f7f", NULL },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 1, 0x80 }, { 2, 0x7f },
	    { 5, 1 } }, NULL, "topk: an infinite a" },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 3, 0x7f }, { 4, 0x7f },
	    { 5, 1 } }, "topk: r of 7f7f", NULL },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 3, 0x80 }, { 4, 0x7f },
	    { 5, 1 } }, NULL, "topk: an infinite r" },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 4, 0x80 }, { 5, 1 } }, NULL,
	    "topk: a negative r" },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 5, 15 } },
	    "topk: the last place", NULL },
	{ CODEC_TOPK, 2, 7, 6, { { 0, 1 }, { 5, 14 } }, NULL,
	    "topk: a place past the last" },
	{ CODEC_TOPK, 2, 8, 6, { { 0, 1 }, { 5, 0x41 } }, NULL,
	    "topk: padding of the codes" },
	{ CODEC_NONZERO, 0, 8, 6, { { 0, 1 }, { 1, 15 }, { 5, 0x3f } },
	    "nonzero: the last place", NULL },
	{ CODEC_NONZERO, 0, 7, 6, { { 0, 1 }, { 1, 14 }, { 5, 0x3f } },
	    NULL, "nonzero: a place past the last" },
	{ CODEC_NONZERO, 0, 8, 5, { { 0, 1 }, { 1, 15 } }, NULL,
	    "nonzero: a byte too few" },
	{ CODEC_NONZERO, 0, 8, 7, { { 0, 1 }, { 1, 15 }, { 5, 0x3f } }, NULL,
	    "nonzero: a byte too many" },
	{ CODEC_NONZERO, 1, 8, 6, { { 0, 1 }, { 1, 15 }, { 5, 0x3f } }, NULL,
	    "nonzero: a parameter" },
	{ CODEC_NONZERO, 0, 8, 6, { { 0, 9 }, { 1, 15 }, { 5, 0x3f } }, NULL,
	    "nonzero: nine of eight" },
	{ CODEC_NONZERO, 0, 8, 6, { { 1, 15 }, { 5, 0x3f } }, NULL,
	    "nonzero: none, and bytes after that" },
	{ CODEC_NONZERO, 0, 8, 1, { { 0, 0 } }, "nonzero: none", NULL },
};

TEST(test_limits)
{
	const struct limit *l = limits;
	const struct limit *end = l + sizeof(limits) / sizeof(*limits);
	unsigned char p[80];
	size_t i;

	for (; l < end; l++) {
		memset(p, 0, sizeof(p));
		for (i = 0; i < sizeof(l->set) / sizeof(*l->set); i++)
			if (l->set[i].byte != 0)
				p[l->set[i].at] = l->set[i].byte;
		ok(trip_refused(&t, l->codec, l->param, p, l->len, l->n) ==
		    (l->bad != NULL), "%s: %s", l->bad != NULL ? "refused" :
		    "read", l->bad != NULL ? l->bad : l->good);
	}
}

/* Return the first of n values of a body, or NAN if it is refused. */
static float
value(uint32_t codec, uint8_t param, const char *body, size_t len, size_t n)
{
	float y[16] = { 0 };

	if (codec_decode(codec, param, &t.ctx, (const unsigned char *)body,
	    len, y, n, NULL) < 0)
		return NAN;
	return y[0];
}

TEST(test_values)
{
	/* P is -1, Q is 2^127, and the scale is 2 */
	ok(value(CODEC_LOWRANK, 1, "\1\0\x80\xbf\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	    "\0\x7f\0\0", 22, 16) == -0x1.fffffep127f, "lowrank: what is "
	    "beyond f32 is its largest value, below 0 too");
	/* q2 with a = 1/2 and r = 2; the code is the magnitude a * r with the sign set */
	ok(value(CODEC_TOPK, 2, "\1\0\x3f\0\x40\x31", 6, 8) == -1,
	    "topk: a times r, a sign");
	ok(value(CODEC_TOPK, 2, "\1\0\x7f\0\x7f\x21", 6, 8) ==
	    0x1.fffffep127f, "topk: what is beyond f32 is its largest value");
	ok(value(CODEC_TOPK, 0, "\1\xff\0\xbc\x31\0", 6, 8) == -0.5f,
	    "topk: h times 2^e, e below 0");
	ok(value(CODEC_TOPK, 0, "\1\0\0\x3c\x11\0", 6, 8) == 1,
	    "topk: h from the largest");
	ok(isinf(value(CODEC_F16, 0, "\0\xfc", 2, 1)) &&
	    isinf(value(CODEC_EXACT, 0, "\0\xff\0\0\0\0\0\0", 8, 1)),
	    "an infinite value stays so");
	ok(value(CODEC_QSGD, 2, "\0\0\x80\x40\1", 5, 1) == -2,
	    "qsgd: (c - s) norm / s");
	ok(value(CODEC_Q8, 0, "\0\xc0\x80", 3, 1) == 256, "q8: s c");
}

/* The sizes of lowrank with several row lengths. */
TEST(test_rows)
{
	static const struct {
		uint32_t cols;
		size_t want;
	} shapes[] = { { 1, 18 }, { 2, 22 }, { 8, 22 }, { 9, 18 } };
	struct codec_plan p;
	size_t i;

	(void)codec_parse("lowrank:1", &p, NULL);
	for (i = 0; i < 4; i++) {
		t.ctx.cols = shapes[i].cols;
		ok(codec_size(&p, &t.ctx, 16) == shapes[i].want,
		    "lowrank: 16 values in rows of %u are %s",
		    (unsigned)shapes[i].cols, shapes[i].want == 18 ?
		    "a square" : "as they lie");
	}
	t.ctx.cols = 2;
}

/* qsgd refuses a rANS code that is longer than the codes. */
TEST(test_longer)
{
	uint32_t count[RANS_SYMBOLS];
	const unsigned char s[4] = { 1, 2, 3, 4 };
	unsigned char p[2048] = { 0 };
	size_t len;

	rans_count(s, 4, count);
	p[3] = 0x40;
	len = rans_put(p + 4, s, 4, count);
	ok(len > 4 && trip_refused(&t, CODEC_QSGD, 2, p, 4 + len, 4),
	    "qsgd: a rANS code longer than the codes");
}

/* A body holds only the upper 24 bits of the step.  Put steps at both ends of the valid
 * range, and just outside it, into a valid body. */
static void
steps_of(uint32_t codec, const char *plan)
{
	const char *name = codec_name(codec);
	static const struct {
		unsigned char step[3];
		int bad;
	} steps[] = {
		{ { 0, 0, 1 }, 0 }, { { 0xff, 0xff, 0 }, 1 },
		{ { 0, 0x80, 0x71 }, 0 }, { { 1, 0x80, 0x71 }, 1 },
		{ { 0, 0, 0x80 }, 1 }
	};
	const struct codec_plan far[] = {
		{ codec, 0, 1e-40f }, { codec, 0, 3e38f }
	};
	unsigned char p[4096];
	struct err e = ERR_INIT;
	size_t len, i;

	trip_gauss(&t, 4, 1000, 1);
	len = trip(&t, plan, 1000);
	memcpy(p, t.body.p, len);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		memcpy(p, steps[i].step, 3);
		ok(trip_refused(&t, codec, 0, p, len, 1000) ==
		    steps[i].bad, "%s: a step of %02x%02x%02x is %s",
		    name, p[2], p[1], p[0], steps[i].bad ? "none" : "one");
	}
	for (i = 0; i < 2; i++) {
		t.body.n = 0;
		ok(codec_encode(&far[i], &t.ctx, t.x, 1000, &t.body, &t.param,
		    &e) == 0 && codec_decode(codec, 0, &t.ctx, t.body.p,
		    t.body.n, t.y, 1000, &e) == 0 && t.y[7] ==
		    (i == 0 ? t.x[7] : 0), "%s: a step of %g: %s",
		    name, (double)far[i].arg, ERR_MSG(&e));
	}
}

TEST(test_steps)
{
	steps_of(CODEC_ECQ, "ecq:0.5");
	steps_of(CODEC_TCQ, "tcq:0.5");
}

/* topk keeps at least one value. */
TEST(test_at_least)
{
	size_t i;

	for (i = 0; i < 64; i++)
		t.x[i] = i % 2 ? 0.25f : -0x1.fffffep-3f;
	t.x[0] = -0.25f;
	(void)trip(&t, "topk:1e-6", 64);
	for (i = 1; i < 64 && t.y[i] == 0; i++)
		;
	ok(t.y[0] == -0.25f && i == 64,
	    "topk: of the smallest fraction one, the first of its equals");
}

/* Return the largest |x[i] - y[i]|. (A loop of fmax crashes gcc 12 for arm64.) */
static double
farthest(const float *x, const float *y, size_t n)
{
	double d, most = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		d = fabs((double)x[i] - (double)y[i]);
		if (d > most)
			most = d;
	}
	return most;
}

/* Flip each bit after the step of a body with escapes: if the body is still accepted, its values
 * are below `limit' in magnitude. far: scale of the large values. */
static void
escapes_of(uint32_t codec, const char *plan, float far, double limit)
{
	const char *name = codec_name(codec);
	enum { N = 512 };
	unsigned char p[4096];
	struct err e = ERR_INIT;
	static const float zeros[N];
	double most;
	size_t len, i, read = 0;

	trip_gauss(&t, 9, N, 300);
	for (i = 0; i < N; i += 8)
		t.x[i] = far * (float)(18000 + 27 * i);
	len = trip(&t, plan, N);
	most = farthest(t.x, t.y, N);
	ok(most < 2, "%s of values up to %g: %g", name,
	    (double)t.x[N - 8], most);
	for (i = 0; i < 8 * len; i++) {
		memcpy(p, t.body.p, len);
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		/* skip the step at the front */
		if (i < 24 || codec_decode(codec, t.param, &t.ctx, p, len,
		    t.y, N, &e) < 0)
			continue;
		read++;
		most = fmax(most, farthest(t.y, zeros, N));
	}
	ok(read > 100 && most < limit, "%s: of %zu bits changed %zu are read, "
	    "none for more than %g", name, 8 * len, read, most);
}

TEST(test_escapes)
{
	escapes_of(CODEC_ECQ, "ecq:1", 1, 32769);
	escapes_of(CODEC_TCQ, "tcq:1", 2, 65537);
}
