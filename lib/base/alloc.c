#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"

/* For tests: number of allocations that still succeed, if alloc_starve was called. */
static long alloc_left;
static int alloc_counted;

/* In bytes.  APART: allocations of this size or more get their own mapping.  KEPT: limit on
 * unused memory at the end of the heap.  PAD: added to each request to the system.  WHOLE:
 * size of a large page.  EXPECTED: memory that alloc_expect puts into large pages. */
enum { ALLOC_APART = 4 << 20, ALLOC_KEPT = 16 << 20, ALLOC_PAD = 512 << 10,
    ALLOC_WHOLE = 2 << 20, ALLOC_EXPECTED = 8 << 20 };

void
alloc_starve(long left)
{
	alloc_left = left;
	alloc_counted = 1;
}

static int
alloc_refuse(void)
{
	return alloc_counted &&
	    __atomic_sub_fetch(&alloc_left, 1, __ATOMIC_RELAXED) < 0;
}

void
alloc_keep(void)
{
#ifdef M_MMAP_THRESHOLD			/* not all C libraries have these options */
	(void)mallopt(M_MMAP_THRESHOLD, ALLOC_APART);
	(void)mallopt(M_TRIM_THRESHOLD, ALLOC_KEPT);
	(void)mallopt(M_TOP_PAD, ALLOC_PAD);
	(void)mallopt(M_ARENA_MAX, 1);
#endif
}

/* Abort if bytes exceeds ALLOC_MOST, which only fuzzing defines: an input of a few kilobytes
 * must not need more.  Allocations inside other libraries are not checked. */
static void
alloc_modest(size_t bytes)
{
#ifdef ALLOC_MOST
	if (bytes > ALLOC_MOST)
		abort();
#endif
}

void
alloc_expect(void)
{
#if defined(MADV_HUGEPAGE) && defined(M_MMAP_THRESHOLD)
	const uintptr_t page = 4096, whole = ALLOC_WHOLE;
	const uintptr_t at = (uintptr_t)sbrk(0);
	const uintptr_t from = (at + page + whole - 1) & ~(whole - 1);
	char *volatile p;	/* so that compilers keep both calls */

	/* Large pages replace only untouched memory.  malloc writes just before and after
	 * a block: keep these writes in the small pages around it. */
	if (sbrk((intptr_t)(from - page - at)) == (void *)-1)
		return;
	(void)mallopt(M_MMAP_THRESHOLD, 2 * ALLOC_EXPECTED);
	p = malloc(ALLOC_EXPECTED + page);
	(void)mallopt(M_MMAP_THRESHOLD, ALLOC_APART);
	if ((uintptr_t)p < from && (uintptr_t)p >= from - page)
		alloc_whole((char *)from, ALLOC_EXPECTED);
	free(p);
#endif
}

void *
alloc_get(size_t n, size_t size, struct err *e)
{
	void *p;

	if (size != 0 && n > SIZE_MAX / size) {
		(void)err_set(e, ERR_SYS, "out of memory: the size exceeds 64 bits");
		return NULL;
	}
	alloc_modest(n * size);
	p = alloc_refuse() ? NULL : calloc(n != 0 ? n : 1, size != 0 ? size : 1);
	if (p == NULL)
		(void)err_set(e, ERR_SYS, "out of memory (%zu bytes)", n * size);
	return p;
}

int
alloc_grow(void *pp, size_t *cap, size_t need, size_t size, struct err *e)
{
	void *old, *p;
	size_t want = *cap + *cap / 2;

	if (need <= *cap)
		return 0;
	if (want < need)
		want = need;
	if (want < 16)
		want = 16;
	if (want > SIZE_MAX / size)
		return err_set(e, ERR_SYS, "out of memory: the size exceeds 64 bits");
	memcpy(&old, pp, sizeof(old));
	alloc_modest(want * size);
	p = alloc_refuse() ? NULL : realloc(old, want * size);
	if (p == NULL)
		return err_set(e, ERR_SYS, "out of memory (%zu bytes)", want * size);
	memcpy(pp, &p, sizeof(p));
	*cap = want;
	return 0;
}

void *
alloc_raw(size_t n, size_t size, struct err *e)
{
	size_t cap = 0;
	void *p = NULL;

	return alloc_grow(&p, &cap, n != 0 ? n : 1, size != 0 ? size : 1,
	    e) < 0 ? NULL : p;
}

char *
alloc_dup(const char *s, struct err *e)
{
	size_t n = strlen(s) + 1;
	char *p = alloc_get(n, 1, e);

	if (p != NULL)
		memcpy(p, s, n);
	return p;
}

char *
alloc_path(const char *dir, const char *name, struct err *e)
{
	const size_t k = strlen(dir), n = k + strlen(name) + 2;
	char *p = alloc_get(n, 1, e);

	if (p != NULL)
		(void)snprintf(p, n, "%s%s%s", dir, k > 0 && dir[k - 1] == '/' ? "" :
		    "/", name);
	return p;
}

void
alloc_free(void *p)
{
	free(p);
}

void
alloc_whole(void *p, size_t n)
{
#ifdef MADV_HUGEPAGE
	const uintptr_t page = 4096, from = ((uintptr_t)p + page - 1) & ~(page - 1);
	const uintptr_t to = ((uintptr_t)p + n) & ~(page - 1);

	/* best effort */
	if (n >= ALLOC_APART && from < to)
		(void)madvise((char *)p + (from - (uintptr_t)p), to - from,
		    MADV_HUGEPAGE);
#endif
}

int
buf_room(struct buf *b, size_t n, struct err *e)
{
	if (n > SIZE_MAX - b->n)
		return err_set(e, ERR_SYS, "out of memory: the size exceeds 64 bits");
	if (b->n == 0 && n > b->cap)	/* nothing to keep: free it first */
		buf_release(b);
	return alloc_grow(&b->p, &b->cap, b->n + n, 1, e);
}

int
buf_put(struct buf *b, const void *p, size_t n, struct err *e)
{
	int r = buf_room(b, n, e);

	if (r < 0)
		return r;
	if (n != 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

int
buf_puts(struct buf *b, const char *s, struct err *e)
{
	return buf_put(b, s, strlen(s), e);
}

void
buf_release(struct buf *b)
{
	free(b->p);
	b->p = NULL;
	b->n = b->cap = 0;
}
