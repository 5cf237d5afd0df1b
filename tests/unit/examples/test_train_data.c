/*
 * train_data: which windows of the text a device reads, and in which order. The text is a
 * sequence of numbers, six bits per byte and the byte's index in the other two, so that
 * each window shows its place.
 */
#include "../../../examples/train_data.h"
#include "../tap.h"

enum { T = 8, NUMBERS = 6000, BYTES = 4 * NUMBERS, TRAIN = BYTES * 9 / 10 };

static uint8_t text[BYTES];

static struct data
numbers(void)
{
	struct data d = { text, BYTES, TRAIN };
	size_t i;

	for (i = 0; i < BYTES; i++)
		text[i] = (uint8_t)((i / 4 >> i % 4 * 6 & 63) | i % 4 << 6);
	return d;
}

/* Return the place of a window in the text. */
static size_t
place(const uint8_t *w)
{
	size_t skip = (4 - (size_t)(w[0] >> 6)) % 4, x = 0, i;

	for (i = 0; i < 4; i++)
		x |= (size_t)(w[skip + i] & 63) << 6 * i;
	if (x >= NUMBERS || 4 * x < skip ||
	    memcmp(text + 4 * x - skip, w, T + 1) != 0)
		return SIZE_MAX;
	return 4 * x - skip;
}

/* Add 1 to seen[] for every byte to be predicted in n windows from the k-th on. Return
 * how many windows lie within [from, to). */
static size_t
read_windows(const struct data *d, const struct data_share *s, uint64_t seed,
    size_t k, size_t n, unsigned char *seen, size_t from, size_t to)
{
	uint8_t w[T + 1];
	size_t i, j, p, inside = 0;

	for (i = k; i < k + n; i++) {
		data_batch(d, s, 1, T, seed, i, w);
		p = place(w);
		inside += p >= from && p < to && p + T < to;
		for (j = 0; p != SIZE_MAX && j < T; j++)
			seen[p + 1 + j]++;
	}
	return inside;
}

static size_t
count(const unsigned char *seen, unsigned char x)
{
	size_t i, n = 0;

	for (i = 0; i < BYTES; i++)
		n += seen[i] == x;
	return n;
}

/* Count the windows at the same place in the first and second pass. */
static size_t
same_order(const struct data *d, const struct data_share *s, size_t n)
{
	uint8_t a[T + 1], b[T + 1];
	size_t i, same = 0;

	for (i = 0; i < n; i++) {
		data_batch(d, s, 1, T, 1, i, a);
		data_batch(d, s, 1, T, 1, n + i, b);
		same += place(a) < place(b) + T && place(b) < place(a) + T;
	}
	return same;
}

static void
test_passes(struct data_share s, size_t from, size_t to)
{
	const struct data d = numbers();
	const size_t n = data_windows(&d, &s, T);
	unsigned char *seen = calloc(2, BYTES);
	size_t in;

	in = read_windows(&d, &s, 1, 0, n, seen, from, to);
	ok(in == n, "%zu windows are of device %zu of %zu%s (%zu)", n,
	    s.index, s.of, s.interleaved ? ", stripes" : "", in);
	ok(count(seen, 1) == n * T && count(seen, 0) == BYTES - n * T,
	    "  no byte is read twice in the first pass");
	ok(n * T >= d.train / s.of - (s.interleaved ? 9 * T : 2 * T),
	    "  and all are read but for an end (%zu of %zu)", n * T,
	    d.train / s.of);
	read_windows(&d, &s, 1, n, n, seen + BYTES, from, to);
	ok(count(seen + BYTES, 1) == n * T,
	    "  nor in the second");
	ok(same_order(&d, &s, n) < n / 20, "  which has another order (%zu)",
	    same_order(&d, &s, n));
	free(seen);
}

/* Together the devices read everything once. */
static void
test_together(int interleaved)
{
	const struct data d = numbers();
	unsigned char *seen = calloc(1, BYTES);
	struct data_share s = { 0, 5, interleaved };
	size_t n = 0, most = 0, least = SIZE_MAX;

	for (s.index = 0; s.index < s.of; s.index++) {
		size_t mine = data_windows(&d, &s, T);

		read_windows(&d, &s, 3, 0, mine, seen, 0, TRAIN);
		n += mine;
		most = mine > most ? mine : most;
		least = mine < least ? mine : least;
	}
	ok(n * T >= d.train - s.of * 2 * T && count(seen, 1) == n * T,
	    "five devices have all windows%s", interleaved ? ", stripes" : "");
	ok(most - least <= (interleaved ? 8 : 0), "  as many each (%zu, %zu)",
	    most, least);
	free(seen);
}

TEST(test_order)
{
	const struct data d = numbers();
	const struct data_share a = { 0, 4, 0 };
	uint8_t one[24][T + 1], four[24][T + 1], other[24][T + 1];
	size_t i, next = 0, first = 0;

	for (i = 0; i < 24; i++)
		data_batch(&d, &a, 1, T, 7, i, one[i]);
	for (i = 0; i < 6; i++)
		data_batch(&d, &a, 4, T, 7, i, four[4 * i]);
	ok(memcmp(one, four, sizeof one) == 0,
	    "the order is the same whatever the batch");
	data_batch(&d, &a, 24, T, 8, 0, other[0]);
	ok(memcmp(one, other, sizeof one) != 0, "another seed, another order");
	for (i = 0; i + 1 < 24; i++) {
		next += place(one[i + 1]) == place(one[i]) + T;
		first += place(one[i]) < TRAIN / 4 / 2;
	}
	ok(next <= 2 && first >= 5 && first <= 18,
	    "which is none (%zu neighbours, %zu of the first half)", next,
	    first);
}

/* The smallest text that data_enough accepts: every device has a window, and none reaches
 * beyond the training text. */
TEST(test_smallest)
{
	struct data d = numbers();
	struct data_share s = { 0, 63, 0 };
	uint8_t w[T + 1];
	size_t i, bad = 0, none = 0;

	d.train = 63 * 8 * (T + 1);
	d.n = d.train + 2 * (T + 1);
	ok(data_enough(&d, 63, T), "a text that is just long enough");
	for (s.interleaved = 0; s.interleaved < 2; s.interleaved++)
		for (s.index = 0; s.index < s.of; s.index++) {
			none += data_windows(&d, &s, T) == 0;
			for (i = 0; i < 200; i++) {
				data_batch(&d, &s, 1, T, 1, i, w);
				bad += place(w) > d.train - T - 1;
			}
		}
	ok(none == 0 && bad == 0, "  has windows for all (%zu, %zu)", none,
	    bad);
}

int
main(void)
{
	test_passes((struct data_share){ 0, 1, 0 }, 0, TRAIN);
	test_passes((struct data_share){ 2, 4, 0 }, TRAIN / 2, TRAIN / 4 * 3);
	test_passes((struct data_share){ 0, 3, 1 }, 0, TRAIN);
	test_passes((struct data_share){ 2, 3, 1 }, 0, TRAIN);
	test_together(0);
	test_together(1);
	run_tests();
	return done_testing();
}
