/* Annotation arrays: names of contributors, times of tensors. */
#include "../test.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/array.h"

static struct err e;

/* Decode n bytes, in memory of exactly that size; return the number of names or < 0. */
static int
names(const void *p, size_t n)
{
	struct array_names l = ARRAY_NAMES_INIT;
	unsigned char *q = malloc(n != 0 ? n : 1);
	int r;

	if (n != 0)
		memcpy(q, p, n);
	err_clear(&e);
	r = array_get_names(&l, q, n, &e);
	r = r < 0 ? r : (int)l.n;
	array_release(&l);
	free(q);
	return r;
}

static int
corrupt(int r)
{
	return r == -ERR_DATA && e.kind == ERR_CORRUPT;
}

TEST(test_names)
{
	static const char want[] = "\3\0\0\0\0\0\0\0" "\1\0A" "\3\0a,b" "\3\0b\xc3\xa9";
	struct array_names l = ARRAY_NAMES_INIT;
	struct buf b = BUF_INIT;
	size_t i, whole = 0;

	ok(array_name(&l, "b\xc3\xa9", 3, &e) == 0 &&
	    array_name(&l, "a,bc", 3, &e) == 0 &&
	    array_name(&l, "A", 1, &e) == 0, "three names");
	ok(array_put_names(&l, &b, &e) == 0 && b.n == 21 &&
	    memcmp(b.p, want, 21) == 0, "names are written sorted by bytes");
	ok(names(b.p, b.n) == 3, "and are read: %s", ERR_MSG(&e));
	for (i = 0; i < b.n; i++)
		whole += !corrupt(names(b.p, i));
	ok(whole == 0, "every prefix is corrupt");
	ok(buf_put(&b, "", 1, &e) == 0 && corrupt(names(b.p, b.n)),
	    "and so is a byte after the last name: %s", ERR_MSG(&e));
	b.n--;
	b.p[4] = 1;
	ok(corrupt(names(b.p, b.n)), "a word that has to be zero: %s",
	    ERR_MSG(&e));
	ok(names("\0\0\0\0\0\0\0\0", 8) == 0, "no names at all");
	buf_release(&b);
	array_release(&l);
}

/* Several frames of a shard form one list. */
TEST(test_frames)
{
	static const unsigned char ab[] = "\2\0\0\0\0\0\0\0\1\0a\1\0b";
	static const unsigned char b[] = "\1\0\0\0\0\0\0\0\1\0b";
	static const unsigned char c[] = "\1\0\0\0\0\0\0\0\1\0c";
	struct array_names l = ARRAY_NAMES_INIT;

	err_clear(&e);
	ok(array_get_names(&l, ab, 14, &e) == 0 && array_get_names(&l, c, 11,
	    &e) == 0 && l.n == 3, "frames whose names follow each other");
	ok(corrupt(array_get_names(&l, c, 11, &e)), "a name that occurs again: %s",
	    ERR_MSG(&e));
	array_release(&l);
	err_clear(&e);
	ok(array_get_names(&l, ab, 14, &e) == 0 &&
	    corrupt(array_get_names(&l, b, 11, &e)), "two frames name the same");
	array_release(&l);
}

TEST(test_name)
{
	unsigned char b[8 + 2 + 256] = { 1 };

	memset(b + 10, 'x', 256);
	bytes_set16(b + 8, 255);
	ok(names(b, 8 + 2 + 255) == 1, "a name of 255 bytes");
	bytes_set16(b + 8, 256);
	ok(corrupt(names(b, sizeof(b))), "one of 256: %s", ERR_MSG(&e));
	ok(corrupt(names("\1\0\0\0\0\0\0\0\0\0", 10)), "one of none: %s",
	    ERR_MSG(&e));
	ok(corrupt(names("\1\0\0\0\0\0\0\0\1\0\n", 11)),
	    "a control character: %s", ERR_MSG(&e));
	ok(corrupt(names("\1\0\0\0\0\0\0\0\2\0a", 11)), "a name that is cut: %s",
	    ERR_MSG(&e));
	ok(corrupt(names("\2\0\0\0\0\0\0\0\1\0b\1\0a", 14)), "not sorted: %s",
	    ERR_MSG(&e));
	ok(corrupt(names("\2\0\0\0\0\0\0\0\1\0a\1\0a", 14)), "one twice: %s",
	    ERR_MSG(&e));
}

static int
times(const struct buf *b, size_t n)
{
	double v[3];

	err_clear(&e);
	return array_get_times(b->p, b->n, n, v, &e);
}

TEST(test_times)
{
	double v[3] = { 0, 0.25, ARRAY_LONGEST }, got[3] = { 9, 9, 9 };
	struct buf b = BUF_INIT;

	ok(array_put_times(v, 3, &b, &e) == 0 && b.n == 32 &&
	    bytes_le32(b.p) == 3 && bytes_le32(b.p + 4) == 0,
	    "8 bytes, and 8 for each of three");
	ok(array_get_times(b.p, b.n, 3, got, &e) == 0 &&
	    memcmp(v, got, sizeof(v)) == 0, "times are written and read, up to 10^7 s");
	ok(ARRAY_LONGEST == 1e7, "10^7 s is the longest time");
	ok(corrupt(times(&b, 2)) && strcmp(ERR_MSG(&e),
	    "corrupt: the times of tensors: expected 2 numbers from 0 to 1e+07 s, one for each tensor") == 0,
	    "of two tensors: %s",
	    ERR_MSG(&e));
	bytes_set_f64(b.p + 8, 1.0000001e7);
	ok(corrupt(times(&b, 3)), "a time too long");
	bytes_set_f64(b.p + 8, -1e-9);
	ok(corrupt(times(&b, 3)), "a time below 0");
	bytes_set_f64(b.p + 8, (double)NAN);
	ok(corrupt(times(&b, 3)), "a time that is NaN");
	bytes_set_f64(b.p + 8, 1);
	ok(times(&b, 3) == 0, "a valid time");
	bytes_set32(b.p, 2);
	ok(corrupt(times(&b, 3)), "a wrong number of times");
	bytes_set32(b.p, 3);
	b.p[7] = 1;
	ok(corrupt(times(&b, 3)), "a word that has to be zero");
	b.p[7] = 0;
	b.n--;
	ok(corrupt(times(&b, 3)), "times that are cut");
	buf_release(&b);
}
