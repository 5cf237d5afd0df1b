#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "../tap.h"
#include "base/err.h"
#include "pipe/scratch.h"

enum { ITEMS = 200, MOST = 5000 };

static unsigned char
byte(size_t i, size_t j)
{
	return (unsigned char)(i * 31 + j * 7);
}

/* Fill the file; there: build each item in place where scratch_next allows. */
static int
fill(struct scratch *h, int there, uint64_t at[ITEMS], struct err *e)
{
	unsigned char own[MOST], *p;
	size_t i, j, n;
	void *next;
	int r = 0;

	for (i = 0; i < ITEMS && r == 0; i++) {
		n = i * 37 % MOST;
		next = NULL;
		if (there && (r = scratch_next(h, n, i == 0 ? 3 * MOST : 0, &next,
		    e)) < 0)
			return r;
		p = next != NULL ? next : own;
		for (j = 0; j < n; j++)
			p[j] = byte(i, j);
		r = scratch_put(h, p, n, &at[i], e);
	}
	return r;
}

static int
wrong(const struct scratch *h, const uint64_t at[ITEMS])
{
	unsigned char p[MOST];
	size_t k, i, j, n;
	int bad = 0;

	for (k = 0; k < ITEMS; k++) {
		i = k * 71 % ITEMS;
		n = i * 37 % MOST;
		bad |= scratch_get(h, at[i], p, n, NULL) < 0;
		for (j = 0; j < n; j++)
			bad |= p[j] != byte(i, j);
	}
	return bad;
}

/* Read several items at once, also across the end of the memory. */
static int
together(const struct scratch *h, const uint64_t at[ITEMS])
{
	static unsigned char p[ITEMS * MOST];
	size_t i, j;
	int bad = scratch_get(h, 0, p, h->n, NULL) < 0;

	for (i = 0; i < ITEMS; i++)
		for (j = 0; j < i * 37 % MOST; j++)
			bad |= p[at[i] + j] != byte(i, j);
	return bad;
}

int
main(void)
{
	static const size_t most[] = { 0, 1, 10000, 1 << 20 };
	struct rlimit limit = { 4096, 4096 };
	struct err e = ERR_INIT;
	uint64_t at[ITEMS];
	struct scratch h;
	size_t i;
	int r;

	for (i = 0; i < 4; i++) {
		h = (struct scratch)SCRATCH_INIT(most[i]);
		r = fill(&h, 0, at, &e);
		ok(r == 0 && !wrong(&h, at) && h.open == (most[i] < 1 << 20),
		    "%zu bytes in memory: all is there, in any order", most[i]);
		scratch_clear(&h);
		r = fill(&h, 1, at, &e);
		ok(r == 0 && !together(&h, at), "and all of it at once");
		ok(r == 0 && !wrong(&h, at) && h.open == (most[i] < 1 << 20),
		    "and again, made in its place, after all was let go");
		scratch_release(&h);
	}
	h = (struct scratch)SCRATCH_INIT(1000);
	r = fill(&h, 0, at, &e);
	r |= ftruncate(h.fd, 0);
	ok(r == 0 && scratch_get(&h, at[ITEMS - 1], (unsigned char[MOST]){ 0 }, 1,
	    &e) == -ERR_SYS && strstr(ERR_MSG(&e), "that wait") != NULL,
	    "what the file has no more: %s", ERR_MSG(&e));
	err_clear(&e);
	scratch_release(&h);
	h = (struct scratch)SCRATCH_INIT(1000);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	ok(fill(&h, 0, at, &e) == -ERR_SYS, "no room: %s", ERR_MSG(&e));
	scratch_release(&h);
	return done_testing();
}
