/*
 * The median of the last steps: what a step made again finds is what it found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "mean/contrib.h"

#include "../tap.h"

static struct err e;
static char path[] = "/tmp/ace-norms.XXXXXX";

static int
is(double x, double want)
{
	return x <= want && x >= want;
}

static int
again(struct contrib_norms *s)
{
	contrib_norms_release(s);
	err_clear(&e);
	return contrib_norms_open(s, alloc_dup(path, &e), IO_SYNC_NONE, &e);
}

static int
holds(const char *text)
{
	struct contrib_norms s = CONTRIB_NORMS_INIT;
	FILE *f = fopen(path, "w");
	int r;

	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		return 99;
	r = again(&s);
	contrib_norms_release(&s);
	return r;
}

int
main(void)
{
	static const char *const bad[] = { "x\n", "1\n", "1 2", "1 -2\n",
	    "1 nan\n", "1 inf\n", "2 1\n1 1\n", "1 1\n1 1\n", "1  \n", "\n" };
	struct contrib_norms s = CONTRIB_NORMS_INIT;
	uint64_t i;
	int fd = mkstemp(path);

	if (fd < 0)
		return 99;
	(void)close(fd);
	(void)unlink(path);
	ok(again(&s) == 0 && is(contrib_norms_median(&s, 9), 0), "no file: none");
	ok(contrib_norms_add(&s, 3, 5, &e) == 0 && is(contrib_norms_median(&s, 3), 0) &&
	    is(contrib_norms_median(&s, 4), 5), "a step is not its own past");
	for (i = 4; i < 8; i++)
		(void)contrib_norms_add(&s, i, (double)i / 3, &e);
	ok(again(&s) == 0 && s.n == 5 && is(contrib_norms_median(&s, 8), 2),
	    "read again: %g", contrib_norms_median(&s, 8));
	ok(is(contrib_norms_median(&s, 7), (5.0 / 3 + 2) / 2),
	    "of four the mean of two");
	ok(contrib_norms_add(&s, 6, 100, &e) == 0 && s.n == 4 &&
	    is(contrib_norms_median(&s, 6), 5.0 / 3), "a step again: those before it");
	for (i = 10; i < 1000; i++)
		(void)contrib_norms_add(&s, i, (double)i, &e);
	ok(again(&s) == 0 && s.n == CONTRIB_NORMS_WINDOW &&
	    is(contrib_norms_median(&s, 1000), 991.5), "the newest of many");
	contrib_norms_release(&s);
	ok(contrib_norms_add(&s, 1, 7, &e) == 0 && is(contrib_norms_median(&s, 2), 7),
	    "in memory");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(holds(bad[i]) == -ERR_DATA, "%s", ERR_MSG(&e));
	(void)unlink(path);
	return done_testing();
}
