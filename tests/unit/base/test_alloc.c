/* Allocations of size 0, of sizes that overflow, and growing arrays. */
#include "../test.h"
#include "base/alloc.h"
#include "base/err.h"

TEST(test_nothing)
{
	struct err e = ERR_INIT;
	void *a = alloc_get(0, 8, &e), *b = alloc_get(8, 0, &e);
	void *c = alloc_raw(0, 8, &e), *d = alloc_raw(8, 0, &e);

	ok(a != NULL && b != NULL && c != NULL && d != NULL &&
	    e.code == ERR_OK, "an allocation of size 0 is not NULL");
	alloc_free(a);
	alloc_free(b);
	alloc_free(c);
	alloc_free(d);
	alloc_free(NULL);
}

TEST(test_overflow)
{
	struct err e = ERR_INIT, f = ERR_INIT;
	volatile size_t many = SIZE_MAX / 8 + 1;	/* volatile: the compiler must
							 * not see the overflow */
	uint64_t *p = NULL;
	size_t cap = 0;

	ok(alloc_get(many, 8, &e) == NULL && e.code == ERR_SYS &&
	    strstr(ERR_MSG(&e), "exceeds") != NULL, "alloc_get: %s", ERR_MSG(&e));
	ok(alloc_grow(&p, &cap, many, 8, &f) == -ERR_SYS &&
	    p == NULL && cap == 0 && strstr(ERR_MSG(&f), "exceeds") != NULL,
	    "alloc_grow: %s", ERR_MSG(&f));
}

TEST(test_grow)
{
	struct err e = ERR_INIT;
	uint64_t *p = NULL, *was;
	size_t cap = 0, n, wrong = 0;

	for (n = 0; n < 1000; n++) {
		wrong += alloc_grow(&p, &cap, n + 1, sizeof(*p), &e) != 0 ||
		    cap < n + 1;
		p[n] = n;
	}
	for (n = 0; n < 1000; n++)
		wrong += p[n] != n;
	ok(wrong == 0, "an array grows to a thousand items, one by one");
	was = p;
	ok(alloc_grow(&p, &cap, 1000, sizeof(*p), &e) == 0 && p == was,
	    "an array with room is not moved");
	alloc_free(p);
}
