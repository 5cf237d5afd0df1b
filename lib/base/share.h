/*
 * Passing bytes on without copying them out again.  While a filter reads from
 * one pipe what it will write to another unchanged, tee(2) keeps the same pages
 * in a pipe of our own, and splice(2) moves them from there to the output once
 * they were looked at.  Where the system refuses, or they do not fit, nothing
 * is lost: the caller has the bytes in memory and writes them.
 */
#ifndef ACE_SHARE_H
#define ACE_SHARE_H

#include <stddef.h>

struct err;
struct share;

/* share_new(from, to): NULL when not both are pipes or the system has no tee;
 * then bytes are copied. */
struct share *share_new(int from, int to);
void share_free(struct share *s);

/* share_begin(s, n): the next n bytes read are to be kept, and what was kept
 * before is forgotten.  0: none. */
void share_begin(struct share *s, size_t n);
/* share_read(s, watch, p, n, got, name, e): fd_read of the pipe `from'. */
int share_read(struct share *s, int watch, void *p, size_t n, size_t *got,
    const char *name, struct err *e);
/* share_has(s, to, n): 1 if all of the n bytes read since share_begin were kept
 * and `to' is where they go; share_pass(s, n) then moves them there.  Returns
 * how many went: n, or fewer where the system stops, and then no more are
 * shared; whoever writes the rest is told why. */
int share_has(const struct share *s, int to, size_t n);
size_t share_pass(struct share *s, size_t n);

/* share_move(s, watch, n, got, name, e): moves what there is, at most n bytes,
 * unseen; waits for input as fd_read does.  1, and *got is 0 at the end of the
 * input; or 0 where the system refuses, and they have to be read. */
int share_move(struct share *s, int watch, size_t n, size_t *got,
    const char *name, struct err *e);

#endif
