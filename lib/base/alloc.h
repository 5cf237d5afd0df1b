/*
 * The one place memory comes from, so that a test can make any allocation fail.
 */
#ifndef ACE_ALLOC_H
#define ACE_ALLOC_H

#include <stddef.h>

struct err;

/* alloc_starve(left): for tests: so many more allocations, and none after them. */
void alloc_starve(long left);

/* alloc_keep(): for a whole program, at its start: memory that was freed is not
 * given back at once, as the next group or shard asks for as much again, and
 * fresh pages cost more than what is done to them. */
void alloc_keep(void);

/* alloc_expect(): some megabytes are going to be allocated in pieces: those to come are
 * put into large pages, where there are.  To be called once. */
void alloc_expect(void);

/* alloc_get(n, size, e): n*size zeroed bytes, overflow-checked; n*size may be
 * 0.  NULL and e filled (ERR_SYS) when there is no memory. */
void *alloc_get(size_t n, size_t size, struct err *e);

/* alloc_raw(n, size, e): the same, not zeroed, for what is written as a whole:
 * zeros may take as long as the work. */
void *alloc_raw(size_t n, size_t size, struct err *e);

/* alloc_grow(p, cap, need, size, e): make room for `need' elements in the
 * array *p of *cap elements, growing by half.  0 or -ERR_SYS; on failure *p
 * and *cap are as they were. */
int alloc_grow(void *p, size_t *cap, size_t need, size_t size, struct err *e);

/* alloc_dup(s, e): a copy of the string s, to be given to alloc_free; NULL and
 * e filled (ERR_SYS) when there is no memory. */
char *alloc_dup(const char *s, struct err *e);

void alloc_free(void *p);

/* alloc_whole(p, n): the n bytes at p will all be used: in large pages, where there
 * are, of which few have to be made. */
void alloc_whole(void *p, size_t n);

/* A byte buffer that grows: what encoders write to. */
struct buf {
	unsigned char *p;
	size_t n, cap;
};
#define BUF_INIT { NULL, 0, 0 }

/* buf_room(b, n, e): makes room for at least n more bytes behind the b->n that
 * are in use.  buf_put(b, p, n, e): appends the n bytes at p; buf_puts(b, s, e)
 * those of a string.  All return 0 or -ERR_SYS.  buf_release(b): frees the memory. */
int buf_room(struct buf *b, size_t n, struct err *e);
int buf_put(struct buf *b, const void *p, size_t n, struct err *e);
int buf_puts(struct buf *b, const char *s, struct err *e);
void buf_release(struct buf *b);

#endif
