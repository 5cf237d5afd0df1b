/*
 * Passing bytes on without copying them out again.  While a filter reads from
 * one pipe what it will write to another unchanged, tee(2) keeps the same pages
 * in a pipe of our own, and splice(2) moves them from there to the output once
 * they were looked at.  Where the system refuses, or they do not fit, nothing
 * is lost: the caller has the bytes in memory and writes them.
 */
#ifndef ACE_SPLICE_H
#define ACE_SPLICE_H

#include <stddef.h>

struct err;
struct splice;

/* splice_new(from, to): NULL when not both are pipes or the system has no tee;
 * then bytes are copied. */
struct splice *splice_new(int from, int to);
void splice_free(struct splice *s);

/* splice_begin(s, n): the next n bytes read are to be kept, and what was kept
 * before is forgotten.  0: none. */
void splice_begin(struct splice *s, size_t n);
/* splice_read(s, watch, p, n, got, name, e): fd_read of the pipe `from'. */
int splice_read(struct splice *s, int watch, void *p, size_t n, size_t *got,
    const char *name, struct err *e);
/* splice_has(s, to, n): 1 if all of the n bytes read since splice_begin were kept
 * and `to' is where they go; splice_pass(s, n) then moves them there.  Returns
 * how many went: n, or fewer where the system stops, and then no more are
 * shared; whoever writes the rest is told why. */
int splice_has(const struct splice *s, int to, size_t n);
size_t splice_pass(struct splice *s, size_t n);

/* splice_move(s, watch, n, got, name, e): moves what there is, at most n bytes,
 * unseen; waits for input as fd_read does.  1, and *got is 0 at the end of the
 * input; or 0 where the system refuses, and they have to be read. */
int splice_move(struct splice *s, int watch, size_t n, size_t *got,
    const char *name, struct err *e);

#endif
