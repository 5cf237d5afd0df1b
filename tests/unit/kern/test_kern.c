/*
 * Every kernel table gives the bits of kern_ref: lengths up to 300 at offsets 0 to 8,
 * between inaccessible pages, with values of every kind.
 */
#include "guard.h"
#include "../tap.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "kern/kern.h"

enum { LEN = 300, OFF = 8 };

static uint32_t
pick(uint32_t i, int finite)
{
	static const uint32_t odd[] = {
		0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x7f7fffff,
		0xff7fffff, 0x00800000, 0x3f800000, 0x477fe000, 0x477fefff,
		0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x387fffff,
		0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001
	};
	uint32_t r[4], n = sizeof(odd) / sizeof(odd[0]);

	rng_block(1, 2, 3, i, r);
	if (r[0] % 8 == 0)
		return odd[r[1] % (finite ? n - 5 : n)];
	if (r[0] % 8 < 3 && !(finite && (r[1] >> 23 & 255) == 255))
		return r[1];
	return (r[1] & 0x807fffff) | (100 + r[2] % 40) << 23;
}

static void
fill(float *x, size_t n, uint32_t from, int finite)
{
	size_t i;
	uint32_t u;

	for (i = 0; i < n; i++) {
		u = pick(from + (uint32_t)i, finite);
		memcpy(x + i, &u, 4);
	}
}

struct arena {
	struct guard a, b, y;
};

static int
same(const void *y, const void *want, size_t n)
{
	return n == 0 || memcmp(y, want, n) == 0;
}

static int
one_stat(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off, int finite)
{
	float *x = guard_place(m->a, n, 4, off);
	struct kern_stat s, t;

	fill(x, n, (uint32_t)(n * 16 + off), finite);
	memset(&s, 0, sizeof(s));
	memset(&t, 0, sizeof(t));
	k->stat(x, n, &s);
	ref->stat(x, n, &t);
	return memcmp(&s, &t, sizeof(s)) == 0 &&
	    k->max_bits(x, n) == ref->max_bits(x, n) &&
	    (kern_first_nonfinite(x, n) == n) == (k->max_bits(x, n) < 0x7f800000);
}

/* Find values that reach a threshold: all, none and some of them. */
static int
one_at_least(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	static const uint32_t t[] = { 0, 1, 0x3f800000, 0x39000000, 0x7f800000,
	    0x80000000, 0xffffffff };
	float *x = guard_place(m->a, n, 4, off);
	uint32_t *at = guard_place(m->y, n + 1, 4, off), want[LEN + 1];
	size_t i, some, good = 1;

	fill(x, n, (uint32_t)(n * 16 + off), 0);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		some = ref->at_least(want, x, n, t[i]);
		good &= k->at_least(at, x, n, t[i]) == some;
		good &= memcmp(at, want, some * 4) == 0;
	}
	return (int)good;
}

/* Compare sums; a NaN may have any payload. */
static int
same64(const double *a, const double *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (memcmp(a + i, b + i, 8) != 0 && !(a[i] != a[i] && b[i] != b[i]))
			return 0;
	return 1;
}

static int
one_f64(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	float *x = guard_place(m->a, n, 4, off), *y = guard_place(m->b, n, 4, off);
	double *acc = guard_place(m->y, n, 8, off), want[LEN];
	float yr[LEN];
	size_t i;
	int good;

	fill(x, n, (uint32_t)(n * 16 + off), 0);
	for (i = 0; i < n; i++) {
		want[i] = i % 7 == 3 ? 1e300 * (double)x[i] : 1e-3 / 3.0;
		acc[i] = want[i];
	}
	k->axpy64(acc, 0.3, x, n);
	ref->axpy64(want, 0.3, x, n);
	good = same64(acc, want, n);
	k->narrow(y, acc, n);
	ref->narrow(yr, acc, n);
	return good && same(y, yr, n * 4);
}

static int
one_f32(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	float *a = guard_place(m->a, n, 4, off), *b = guard_place(m->b, n, 4, off);
	float *y = guard_place(m->y, n, 4, off), want[LEN];
	int good;

	fill(a, n, (uint32_t)(n * 16 + off), 0);
	fill(b, n, (uint32_t)(n * 16 + off + 90000), 0);
	k->add_scaled(y, a, 0.7f, b, n);
	ref->add_scaled(want, a, 0.7f, b, n);
	good = same(y, want, n * 4);
	memcpy(y, a, n * 4);			/* in place */
	k->add_scaled(y, y, 0.7f, b, n);
	ref->add_scaled(want, a, 0.7f, b, n);
	return good && same(y, want, n * 4);
}

static int
one_half(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	float *x = guard_place(m->a, n, 4, off), back[LEN];
	uint16_t *h = guard_place(m->b, n, 2, off), want[LEN];
	float *y = guard_place(m->y, n, 4, off);
	int good;

	fill(x, n, (uint32_t)(n * 16 + off), 0);
	k->to_f16(h, x, n);
	ref->to_f16(want, x, n);
	good = same(h, want, n * 2);
	k->from_f16(y, h, n);
	ref->from_f16(back, want, n);
	return good && same(y, back, n * 4);
}

typedef void (*coder)(unsigned char *, const float *, size_t);
typedef void (*decoder)(float *, const unsigned char *, size_t);

static int
one_coder(coder put, coder put_ref, decoder get, decoder get_ref,
    struct arena *m, size_t n, size_t off, size_t size)
{
	float *x = guard_place(m->a, n, 4, off), *y = guard_place(m->y, n, 4, off);
	unsigned char *p = guard_place(m->b, size, 1, off), want[2 * LEN];
	float back[LEN];
	int good;

	fill(x, n, (uint32_t)(n * 16 + off), 1);
	if (n % 3 == 0)
		memset(x, 0, n / 2 * 4);
	put(p, x, n);
	put_ref(want, x, n);
	good = same(p, want, size);
	get(y, p, n);
	get_ref(back, want, n);
	return good && same(y, back, n * 4);
}

static int
one_deadzone(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	static const float inv[] = { 1e3f, 1, 1e-3f, 3e38f, 1e38f };
	float *x = guard_place(m->a, n, 4, off), f = inv[n % 5];
	int16_t *q = guard_place(m->b, n, 2, off), want[LEN];

	fill(x, n, (uint32_t)(n * 16 + off), 1);
	k->deadzone(q, x, n, f, 0.75f, 0.375f);
	ref->deadzone(want, x, n, f, 0.75f, 0.375f);
	return same(q, want, n * 2);
}

/* Split into planes and back, to the bit. */
static int
one_split(const struct kern *k, const struct kern *ref, struct arena *m,
    size_t n, size_t off)
{
	float *x = guard_place(m->a, n, 4, off), *y = guard_place(m->b, n, 4, off);
	unsigned char *p = guard_place(m->y, 4 * n, 1, off), want[4 * LEN];

	fill(x, n, (uint32_t)(n * 16 + off), 0);
	ref->split(want, x, n);
	k->split(p, x, n);
	k->join(y, p, n);
	return same(p, want, 4 * n) && same(y, x, 4 * n);
}

static void
test_blocks(const struct kern *k, const struct kern *ref, struct arena *m)
{
	size_t n, off;
	int a = 1, c = 1, d = 1, f = 1;

	for (n = 0; n <= LEN; n++)
		for (off = 0; off <= OFF + 1; off++) {
			a &= one_coder(k->q8, ref->q8, k->unq8, ref->unq8, m,
			    n, off, KERN_Q8_SIZE(n));
			c &= one_coder(k->sign, ref->sign, k->unsign,
			    ref->unsign, m, n, off, KERN_SIGN_SIZE(n));
			d &= one_deadzone(k, ref, m, n, off);
			f &= one_split(k, ref, m, n, off);
		}
	ok(a, "%s: q8 gives ref's bits", k->name);
	ok(c, "%s: sign gives ref's bits", k->name);
	ok(d, "%s: deadzone gives ref's bits", k->name);
	ok(f, "%s: split gives ref's bytes, and join all bits", k->name);
}

/* Compare planes and blocks with bytes that were computed by hand. */
static void
test_blocks_known(const struct kern *k)
{
	float x[32] = { 4, -1, 0.5f, 1.75f, -4, 0.26f, 3.9f }, y[32];
	static const unsigned char planes[] = { 0x7f, 0x80, 0, 0x80, 0, 0, 0, 1 };
	static const float two[] = { 1, -3 };
	unsigned char p[64];

	k->split(p, two, 2);
	ok(memcmp(p, planes, 8) == 0, "%s: two values in planes", k->name);
	/* m = -4, s = 4/128: -4 is code -128; 4 would be 128, cut to 127; 0.26 is 8.32 s */
	k->q8(p, x, 32);
	ok(p[0] == 0 && p[1] == 0x3d && p[2] == 127 && p[3] == 0xe0 &&
	    p[6] == 0x80 && p[7] == 8, "%s: a q8 block by hand", k->name);
	k->unq8(y, p, 32);
	ok(y[0] == 3.96875f && y[1] == -1 && y[4] == -4 && y[5] == 0.25f && y[7] == 0,
	    "%s: and back", k->name);
	k->sign(p, x, 32);	/* the mean is 15.41 / 32 = 0.4816 */
	ok(p[0] == 0xf7 && p[1] == 0x3e && p[2] == 0x12 && p[3] == 0,
	    "%s: a sign block by hand", k->name);
}

static void
test_deadzone_known(const struct kern *k)
{
	/* the last four values are at the end of the zone or of a step */
	static const float x[] = { 0, -0.74f, 0.76f, -1.6f, 1.7f, 9e9f, -1e9f,
	    0.75f, -0.75f, 1.625f, 2.625f };
	static const int16_t want[] = { 0, 0, 1, -1, 2, 32767, -32767, 1, -1, 2,
	    3 };
	enum { ALL = 11, MANY = 66 };		/* more than any kernel handles per step */
	int16_t q[MANY];
	float many[MANY];
	int i, good = 1;

	for (i = 0; i < MANY; i++)
		many[i] = x[i % ALL];
	k->deadzone(q, many, MANY, 1, 0.75f, 0.375f);
	for (i = 0; i < MANY; i++)
		good &= q[i] == want[i % ALL];
	ok(good, "%s: dead zone by hand", k->name);
}

/* The scales of the largest numbers are as large as allowed. */
static void
test_scale_known(const struct kern *k)
{
	unsigned char p[KERN_Q8_SIZE(96)];
	float x[96];
	int i, good = 1;

	for (i = 0; i < 96; i++)
		x[i] = i % 32 == 7 ? -3.4e38f : 1e38f;
	k->q8(p, x, 96);
	for (i = 0; i < 3; i++)
		good &= bytes_le16(p + 34 * i) == KERN_Q8_TOP;
	for (i = 0; i < 96; i++)
		x[i] = -3.402e38f;
	k->sign(p, x, 96);
	good &= bytes_le16(p) == KERN_SIGN_TOP;
	ok(good, "%s: the largest scales of q8 and sign", k->name);
}

static void
test_table(const struct kern *k, const struct kern *ref, struct arena *m)
{
	size_t n, off;
	int stat = 1, f64 = 1, f32 = 1, half = 1, least = 1;

	for (n = 0; n <= LEN; n++)
		for (off = 0; off <= OFF + 1; off++) {
			stat &= one_stat(k, ref, m, n, off, 0);
			stat &= one_stat(k, ref, m, n, off, 1);
			f64 &= one_f64(k, ref, m, n, off);
			f32 &= one_f32(k, ref, m, n, off);
			half &= one_half(k, ref, m, n, off);
			least &= one_at_least(k, ref, m, n, off);
		}
	ok(stat, "%s: stat and max_bits give ref's bits", k->name);
	ok(f64, "%s: axpy64, narrow give ref's bits", k->name);
	ok(least, "%s: at_least gives ref's places", k->name);
	ok(f32, "%s: add_scaled, sub give ref's bits", k->name);
	ok(half, "%s: f16 conversions give ref's bits", k->name);
}

/* Return the value of a binary16 by its definition in IEEE 754. */
static double
f16_value(uint32_t h)
{
	uint32_t e = h >> 10 & 31, f = h & 0x3ff;
	double v = e == 0 ? ldexp(f, -24) : ldexp(1024 + f, (int)e - 25);

	return h & 0x8000 ? -v : v;
}

static void
test_f16(const struct kern *k)
{
	uint32_t h, e;
	uint16_t in, back;
	float x;
	int from = 1, to = 1, ties = 1;

	for (h = 0; h < 65536; h++) {
		in = (uint16_t)h;
		k->from_f16(&x, &in, 1);
		k->to_f16(&back, &x, 1);
		e = h >> 10 & 31;
		if (e == 31) {
			from &= (h & 0x3ff) == 0 ? isinf(x) : isnan(x);
			from &= !!signbit(x) == (int)(h >> 15);
			to &= back == ((h & 0x3ff) == 0 ? h : (h | 0x200));
			continue;
		}
		from &= (double)x == f16_value(h);
		to &= back == h;
		if ((h & 0x7fff) == 0x7bff)
			continue;
		/* half way to the next: rounded to even */
		x = (float)((f16_value(h) + f16_value(h + 1)) / 2);
		k->to_f16(&back, &x, 1);
		ties &= back == h + (h & 1);
		x = nextafterf(x, 0);
		k->to_f16(&back, &x, 1);
		ties &= back == h;
	}
	ok(from, "%s: from_f16 of all 65536", k->name);
	ok(to, "%s: to_f16 of all 65536; NaN keeps sign and payload", k->name);
	ok(ties, "%s: to_f16 halfway and just below", k->name);
	x = 65519.996f;
	k->to_f16(&back, &x, 1);
	ok(back == 0x7bff, "%s: below 65520 is 65504", k->name);
	x = -65520.0f;
	k->to_f16(&back, &x, 1);
	ok(back == 0xfc00, "%s: 65520 is infinity", k->name);
}

static void
test_choice(void)
{
	struct err e = ERR_INIT;
	const struct kern *const *l = kern_list();

	unsetenv("ACE_KERNEL");
	ok(kern_get(&e) != NULL, "a table by itself: %s", kern_get(&e)->name);
	for (; *l != NULL; l++) {
		(void)setenv("ACE_KERNEL", (*l)->name, 1);
		ok(kern_get(&e) == *l, "ACE_KERNEL=%s", (*l)->name);
	}
	(void)setenv("ACE_KERNEL", "abacus", 1);
	ok(kern_get(&e) == NULL && strstr(ERR_MSG(&e), "abacus") != NULL &&
	    e.code == ERR_USAGE && kern_name() == NULL,
	    "an unknown kernel is refused: %s", ERR_MSG(&e));
	(void)setenv("ACE_KERNEL", "", 1);
	ok(kern_get(NULL) == l[-1] && strcmp(kern_name(), l[-1]->name) == 0 &&
	    strcmp(kern_list()[0]->name, "ref") == 0,
	    "an empty name asks for the last of them, the fastest");
	unsetenv("ACE_KERNEL");
}

static void
test_known(const struct kern *k)
{
	/* the expected results below were computed by hand */
	static const float x[] = { 1, -2, 0, -0.0f, 3, INFINITY, NAN, 0.5f };
	float y[2], a[2] = { INFINITY, 1 }, b[2] = { -INFINITY, 2 };
	struct kern_stat s;
	uint32_t u;

	k->stat(x, 8, &s);
	ok(s.sum == 2.5 && s.sumsq == 14.25 && s.sumabs == 6.5 &&
	    s.max_abs == 3.0f && s.nonzero == 4 && s.nonfinite == 2,
	    "%s: stat by hand", k->name);
	k->add_scaled(y, a, 1.0f, b, 2);
	memcpy(&u, y, 4);
	ok(u == 0x7fc00000 && y[1] == 3.0f, "%s: inf - inf is 7fc00000",
	    k->name);
}

int
main(void)
{
	const struct kern *const *l = kern_list();
	static struct arena m;
	size_t i;

	m.a = guard_new();
	m.b = guard_new();
	m.y = guard_new();
	test_choice();
	for (i = 0; l[i] != NULL; i++) {
		test_known(l[i]);
		test_blocks_known(l[i]);
		test_deadzone_known(l[i]);
		test_scale_known(l[i]);
		test_blocks(l[i], l[0], &m);
		test_f16(l[i]);
		test_table(l[i], l[0], &m);
	}
	return done_testing();
}
