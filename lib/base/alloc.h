/* Our code calls malloc(3) only here, so that a test can make any alloc_ or buf_ call fail. */
#ifndef ACE_ALLOC_H
#define ACE_ALLOC_H

#include <stddef.h>

struct err;

/* For tests: allow `left' more allocations and fail all later ones. */
void alloc_starve(long left);

/* Keep up to 16 MiB of freed memory at the end of the heap instead of returning it to the
 * system. Call it at the start. The next group or shard needs as much again, and new pages
 * take more time than the work on them. */
void alloc_keep(void);

/* Put the next 8 MiB of allocations, each below 4 MiB, into large pages, if the system has
 * them. Call it once, after alloc_keep. */
void alloc_expect(void);

/* Return n * size zeroed bytes, to be freed by alloc_free; n * size may be 0. Return NULL
 * with ERR_SYS if n * size overflows or there is no memory. */
void *alloc_get(size_t n, size_t size, struct err *e);

/* Like alloc_get without zeroing, for memory that will be completely overwritten: zeroing
 * may take as long as the work itself. */
void *alloc_raw(size_t n, size_t size, struct err *e);

/* Make room for `need' elements of `size' > 0 bytes in an array. p: the address of the pointer
 * to it; *cap: elements it has room for. If it must grow, it grows by at least half; new
 * elements are not zeroed. Return 0, or -ERR_SYS with *p and *cap unchanged. */
int alloc_grow(void *p, size_t *cap, size_t need, size_t size, struct err *e);

/* Return a copy of the string s, to be freed by alloc_free; NULL with ERR_SYS if there is
 * no memory. alloc_path: the same for DIR/NAME. */
char *alloc_dup(const char *s, struct err *e);
char *alloc_path(const char *dir, const char *name, struct err *e);

void alloc_free(void *p);

/* Tell the system that all n bytes at p will be used, so that it uses large pages for them, if
 * it has them. Do nothing if n is less than 4 MiB. */
void alloc_whole(void *p, size_t n);

/* A growing byte buffer that encoders write to. */
struct buf {
	unsigned char *p;
	size_t n, cap;		/* bytes in use; bytes allocated */
};
#define BUF_INIT { NULL, 0, 0 }

/* buf_room: make room for n more bytes after the b->n in use. buf_put: append the n
 * bytes at p. buf_puts: append a string without its NUL. These return 0 or -ERR_SYS.
 * buf_release: free the memory. */
int buf_room(struct buf *b, size_t n, struct err *e);
int buf_put(struct buf *b, const void *p, size_t n, struct err *e);
int buf_puts(struct buf *b, const char *s, struct err *e);
void buf_release(struct buf *b);

#endif
