/*
 * Pass bytes on without copying them.  While a filter reads bytes from one pipe that it will
 * write unchanged to another, tee(2) keeps the same pages in a third pipe.  After inspection,
 * splice(2) moves the pages to the output.  If the system refuses or the bytes do not fit,
 * nothing is lost: the caller has the bytes in memory and writes them.
 */
#ifndef ACE_SPLICE_H
#define ACE_SPLICE_H

#include <stddef.h>

struct err;
struct splice;

/* Prepare to pass bytes from one pipe to another; splice_free closes neither.  Return NULL if
 * one is not a pipe, or if memory is short; the caller then copies bytes. */
struct splice *splice_new(int from, int to);
void splice_free(struct splice *s);

/* Forget the bytes kept before, and keep the next n bytes that are read, if n > 0 and the
 * third pipe has room for n. */
void splice_begin(struct splice *s, size_t n);
/* Read from the pipe `from' as fd_read does, and keep the bytes that splice_begin asks for. */
int splice_read(struct splice *s, int watch, void *p, size_t n, size_t *got,
    const char *name, struct err *e);
/* splice_has: return 1 if all n bytes read since splice_begin were kept and `to' is their
 * output.  splice_pass: after that, move them to the output.  Return the number of moved
 * bytes: n, or fewer if the system fails.  In that case no more bytes are kept, and the
 * caller's write of the rest reports the error. */
int splice_has(const struct splice *s, int to, size_t n);
size_t splice_pass(struct splice *s, size_t n);

/* Move at most n available bytes unread.  Wait for input as fd_read does.  Return 1, with
 * *got 0 at the end of the input; or 0 if the system refuses and the caller must read and
 * write the bytes. */
int splice_move(struct splice *s, int watch, size_t n, size_t *got,
    const char *name, struct err *e);

#endif
