/*
 * Memory between two pages that cannot be accessed.
 */
#ifndef GUARD_H
#define GUARD_H

#include <sys/mman.h>

#include <stdlib.h>
#include <unistd.h>

struct guard {
	unsigned char *lo, *hi;
};

static inline struct guard
guard_new(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *p = mmap(NULL, 3 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct guard g = { NULL, NULL };

	if (p == MAP_FAILED ||
	    mprotect(p + page, page, PROT_READ | PROT_WRITE) < 0)
		exit(1);
	g.lo = p + page;
	g.hi = g.lo + page;
	return g;
}

/* Return room for n elements: off - 1 elements after the first page or, if off is 0, up to
 * the last page. */
static inline void *
guard_place(struct guard g, size_t n, size_t size, size_t off)
{
	return off == 0 ? g.hi - n * size : g.lo + (off - 1) * size;
}

#endif
