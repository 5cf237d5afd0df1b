/*
 * The exact search of the knapsack without memory.  What it finds is held against
 * brute force in test_select.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../rnd.h"
#include "../tap.h"
#include "base/err.h"
#include "sync/select.h"

/* starved(n): a search of many pairs in a process of its own, where the n-th
 * allocation fails and all after it: 0 done, 1 it said so, 2 something else. */
static int
starved(int n)
{
	enum { N = 40, M = 6 };
	static struct select_level l[N * M];
	struct select_result r;
	struct err e = ERR_INIT;
	uint8_t c[N];
	char text[16];
	int k, status = -1;
	pid_t pid = fork();

	if (pid > 0)
		return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		    WEXITSTATUS(status) : 2;
	(void)snprintf(text, sizeof(text), "%d", n);
	(void)setenv("ACE_FAIL_ALLOC", text, 1);
	rnd_seed = 5;
	for (k = 0; k < N * M; k++) {
		l[k].rate = 1000 * (k % M) + (int64_t)(rnd() * 1000);
		l[k].dist = 1e4 - (double)l[k].rate + 100 * rnd();
	}
	k = select_budget(l, N, M, 90000, SELECT_EXACT, c, &r, &e);
	_exit(pid < 0 ? 2 : k == 0 ? 0 : k == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "out of memory") != NULL ? 1 : 2);
}

int
main(void)
{
	int n = 1, r;

	while ((r = starved(n)) == 1)
		n++;
	ok(r == 0 && n > 10, "whichever of %d allocations fails: said", n - 1);
	return done_testing();
}
