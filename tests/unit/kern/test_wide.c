/*
 * The loops of kern/wide.h, which round at random and split bytes: every table gives the bits of kern_ref, and
 * that the meaning: all lengths 0..300 at offsets 0..8, against unreadable
 * pages on both sides.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "../tap.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "kern/kern.h"

enum { LEN = 300, OFF = 8 };

static struct guard in, rnd, out;

/* Values of all magnitudes, the least and the largest among them. */
static void
fill(float *x, uint32_t *noise, size_t n, uint32_t from)
{
	static const uint32_t odd[] = { 0, 0x80000000, 1, 0x80000001, 0x7fffff,
	    0x00800000, 0x80ffffff, 0x7f7fffff, 0xff7fffff, 0x3f800000 };
	uint32_t r[4], u;
	size_t i;

	for (i = 0; i < n; i++) {
		rng_block(9, 8, 7, from + (uint32_t)i, r);
		u = r[0] % 8 == 0 ? odd[r[1] % 10] :
		    (r[1] & 0x807fffff) | (r[0] % 16 < 4 ? r[2] % 254 :
		    110 + r[2] % 24) << 23;
		memcpy(x + i, &u, 4);
		noise[i] = r[0] % 32 == 9 ? UINT32_MAX : r[0] % 32 == 10 ? 0 :
		    r[3];
	}
}

/* What a table gives for these n values, and ref, byte for byte. */
static int
one(const struct kern *k, const struct kern *ref, size_t n, size_t off)
{
	static const int top[] = { 128, 127, 1, -20, -126, -150 };
	static const float s[] = { 0, 1, 0x1p-149f, 3e38f, 0.37f };
	static const unsigned levels[] = { 1, 3, 7, 127, 255 };
	float *x = guard_place(in, n, 4, off);
	uint32_t *noise = guard_place(rnd, n, 4, off);
	unsigned char *t = guard_place(out, n, 1, off), want[2 * LEN];
	uint16_t *q = guard_place(out, n, 2, off);
	int good = 1;
	size_t i;

	fill(x, noise, n, (uint32_t)(n * 16 + off));
	for (i = 0; i < 6; i++) {
		good &= ref->powers(want, x, noise, n, top[i]) ==
		    k->powers(t, x, noise, n, top[i]);
		good &= n == 0 || memcmp(t, want, n) == 0;
	}
	for (i = 0; i < 5; i++) {
		ref->ternary(want, x, noise, n, s[i]);
		k->ternary(t, x, noise, n, s[i]);
		good &= n == 0 || memcmp(t, want, n) == 0;
		ref->levels((uint16_t *)(void *)want, x, noise, n,
		    i == 4 ? 1e44 : 0.1 * (double)i, levels[i]);
		k->levels(q, x, noise, n, i == 4 ? 1e44 : 0.1 * (double)i,
		    levels[i]);
		good &= n == 0 || memcmp(q, want, 2 * n) == 0;
	}
	return good;
}

/* Planes and back, to the bit. */
static int
one_split(const struct kern *k, const struct kern *ref, size_t n, size_t off)
{
	float *x = guard_place(in, n, 4, off), *y = guard_place(rnd, n, 4, off);
	unsigned char *p = guard_place(out, 4 * n, 1, off), want[4 * LEN];

	fill(x, (uint32_t *)(void *)y, n, (uint32_t)(n + off));
	ref->split(want, x, n);
	k->split(p, x, n);
	if (n != 0 && memcmp(p, want, 4 * n) != 0)
		return 0;
	k->join(y, p, n);
	return n == 0 || memcmp(x, y, 4 * n) == 0;
}

/* Any number of blocks from any on, also where their numbers wrap. */
static int
one_noise(const struct kern *k, size_t n, size_t off)
{
	uint32_t *r = guard_place(out, 4 * n, 4, off), want[4 * LEN];
	uint32_t block = off == 8 ? UINT32_MAX - 20 : (uint32_t)(n * off);
	size_t i;

	k->noise(0x123456789abcdefu, 0xfedcba9876543210u, 77, block, r, n);
	for (i = 0; i < n; i++)
		rng_block(0x123456789abcdefu, 0xfedcba9876543210u, 77,
		    block + (uint32_t)i, want + 4 * i);
	return n == 0 || memcmp(r, want, 16 * n) == 0;
}

static void
test_table(const struct kern *k, const struct kern *ref)
{
	size_t n, off;
	int good = 1, noise = 1, split = 1;

	for (n = 0; n <= LEN; n++)
		for (off = 0; off <= OFF + 1; off++) {
			good &= one(k, ref, n, off);
			split &= one_split(k, ref, n, off);
			noise &= n > 250 || one_noise(k, n, off);
		}
	ok(noise, "%s: the numbers of rng_block", k->name);
	ok(split, "%s: split gives ref's bytes, and join all bits", k->name);
	ok(good, "%s: powers, levels, ternary give ref's bits", k->name);
}

/* By hand: with the least noise down, with the most up. */
static void
test_known(const struct kern *k)
{
	static const float x[] = { 1, -3, 0.75f, 0, -0.0f, 1e-40f, 4 };
	static const uint32_t no[7] = { 0 };
	static const uint32_t yes[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX,
	    UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	static const unsigned char down[] = { 3, 130, 4, 0, 0, 128, 1 };
	static const unsigned char up[] = { 3, 129, 3, 0, 0, 128, 1 };
	static const uint16_t low[] = { 5, 1, 4, 4, 4, 4, 8 };
	static const uint16_t high[] = { 5, 1, 4, 4, 4, 4, 8 };
	static const unsigned char some[] = { 1, 2, 1, 0, 0, 1, 1 };
	static const unsigned char most[] = { 0, 0, 0, 0, 0, 0, 1 };
	static const unsigned char planes[] = { 0x7f, 0x80, 0, 0x80, 0, 0, 0, 1 };
	static const float two[] = { 1, -3 };
	unsigned char c[8];
	uint16_t q[7];

	k->split(c, two, 2);
	ok(memcmp(c, planes, 8) == 0, "%s: two values in planes", k->name);
	ok(k->powers(c, x, no, 7, 2) == 1 && memcmp(c, down, 7) == 0,
	    "%s: powers of two, down", k->name);
	ok(k->powers(c, x, yes, 7, 2) == 1 && memcmp(c, up, 7) == 0,
	    "%s: and up", k->name);
	k->levels(q, x, yes, 7, 0.25, 4);
	ok(memcmp(q, low, sizeof(q)) == 0, "%s: levels, down", k->name);
	k->levels(q, x, no, 7, 0.25, 4);
	/* 0.75 is between 0 and 1, and so is 1e-40 */
	ok(q[2] == 5 && q[5] == 5 && q[0] == high[0] && q[1] == high[1] &&
	    q[3] == 4 && q[6] == 8, "%s: and up", k->name);
	k->ternary(c, x, no, 7, 4);
	ok(memcmp(c, some, 7) == 0, "%s: ternary, all", k->name);
	k->ternary(c, x, yes, 7, 4);
	ok(memcmp(c, most, 7) == 0, "%s: and those that must", k->name);
}

int
main(void)
{
	const struct kern *const *l = kern_list();
	size_t i;

	in = guard_new();
	rnd = guard_new();
	out = guard_new();
	for (i = 0; l[i] != NULL; i++) {
		test_table(l[i], l[0]);
		test_known(l[i]);
	}
	return done_testing();
}
