/*
 * The exact search of the knapsack without memory.  What it finds is held against
 * brute force in test_select.c.
 */
#include <string.h>

#include "../../rnd.h"
#include "../starve.h"
#include "../tap.h"
#include "base/err.h"
#include "sync/select.h"

/* A search of many pairs. */
static enum starved
search(void)
{
	enum { N = 40, M = 6 };
	static struct select_level l[N * M];
	struct select_result r;
	struct err e = ERR_INIT;
	uint8_t c[N];
	int k;

	rnd_seed = 5;
	for (k = 0; k < N * M; k++) {
		l[k].rate = 1000 * (k % M) + (int64_t)(rnd() * 1000);
		l[k].dist = 1e4 - (double)l[k].rate + 100 * rnd();
	}
	k = select_budget(l, N, M, 90000, SELECT_EXACT, c, &r, &e);
	return k == 0 ? STARVED_NOT : k == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "out of memory") != NULL ? STARVED_SAID :
	    STARVED_WRONG;
}

int
main(void)
{
	int n = starve(search);

	ok(n >= 10, "whichever of %d allocations fails: said", n);
	return done_testing();
}
