#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/splice.h"

enum { SHARE_SIZE = 1 << 20, SHARE_PAGE = 4096, SHARE_SPARE = 8 };

struct splice {
	int from, to;
	int own[2];		/* the pipe that keeps shared bytes, or -1 */
	size_t room;		/* bytes that the pipe can hold in any case */
	size_t want;		/* bytes still to be read and kept */
	size_t kept;		/* bytes kept so far */
	int off;		/* 1: pipe2, tee or splice failed: keep and move no bytes */
};

/* Open the pipe that keeps shared bytes. It must be large, because DATA frames have about
 * a quarter of a MiB. */
static void
splice_open(struct splice *s)
{
	int n;

	if (pipe2(s->own, O_CLOEXEC) < 0) {
		s->own[0] = s->own[1] = -1;
		s->off = 1;
		return;
	}
	fd_pipe_size(s->own[1], SHARE_SIZE);
	n = fcntl(s->own[1], F_GETPIPE_SZ);
	/* each piece takes at least a page, even a short first or last piece */
	s->room = n > SHARE_SPARE * SHARE_PAGE ?
	    (size_t)n - SHARE_SPARE * SHARE_PAGE : 0;
}

static void
splice_close(struct splice *s)
{
	if (s->own[0] >= 0) {
		(void)close(s->own[0]);
		(void)close(s->own[1]);
	}
	s->own[0] = s->own[1] = -1;
	s->want = s->kept = 0;
}

struct splice *
splice_new(int from, int to)
{
	struct splice *s;

	if (!fd_is_pipe(from) || !fd_is_pipe(to) ||
	    (s = alloc_get(1, sizeof(*s), NULL)) == NULL)
		return NULL;
	s->from = from;
	s->to = to;
	s->own[0] = s->own[1] = -1;
	return s;
}

void
splice_free(struct splice *s)
{
	if (s == NULL)
		return;
	splice_close(s);
	alloc_free(s);
}

void
splice_begin(struct splice *s, size_t n)
{
	if (s->kept != 0)
		splice_close(s);
	s->want = 0;
	if (n == 0 || s->off)
		return;
	if (s->own[0] < 0)
		splice_open(s);
	if (n <= s->room && !s->off)
		s->want = n;
}

/* Keep up to n of the next bytes.  Return their number, 0 at the end of the input or if
 * they cannot be kept, or < 0 for fd_ready's error. */
static ssize_t
splice_keep(struct splice *s, int watch, size_t n, const char *name, struct err *e)
{
	int r, waited = 0;
	ssize_t k;

	for (;;) {
		k = tee(s->from, s->own[1], n, SPLICE_F_NONBLOCK);
		if (k >= 0)
			return k;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN) {
			s->off = 1;
			return 0;
		}
		/* no input yet, or our own pipe is full */
		if (waited)
			return 0;
		if ((r = fd_ready(s->from, watch, -1, name, e)) < 0)
			return r;
		waited = r;
	}
}

int
splice_read(struct splice *s, int watch, void *p, size_t n, size_t *got,
    const char *name, struct err *e)
{
	size_t done = 0, some;
	ssize_t k;
	int r;

	if (s->want == 0)
		return fd_read(s->from, watch, p, n, got, name, e);
	*got = 0;
	k = splice_keep(s, watch, n < s->want ? n : s->want, name, e);
	if (k < 0)
		return (int)k;
	if (k == 0) {
		s->want = 0;	/* splice_has then sees that not all is kept */
		return fd_read(s->from, watch, p, n, got, name, e);
	}
	while (done < (size_t)k) {
		if ((r = fd_read(s->from, -1, (unsigned char *)p + done,
		    (size_t)k - done, &some, name, e)) < 0)
			return r;
		if (some == 0)
			break;
		done += some;
	}
	s->want -= done;
	s->kept += (size_t)k;
	*got = done;
	return 0;
}

/* Splice once. Wait for room in `to', and for input if `from' is empty. Return the number of
 * moved bytes, 0 at the end of the input, or -1. */
static ssize_t
splice_splice(int from, int to, size_t n)
{
	struct pollfd p = { .fd = to, .events = POLLOUT };
	ssize_t k;

	for (;;) {
		k = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE);
		if (k >= 0)
			return k;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || (poll(&p, 1, -1) < 0 && errno != EINTR))
			return -1;
	}
}

int
splice_has(const struct splice *s, int to, size_t n)
{
	return n > 0 && s->kept == n && s->want == 0 && to == s->to;
}

size_t
splice_pass(struct splice *s, size_t n)
{
	size_t done = 0;
	ssize_t k;

	while (done < n && (k = splice_splice(s->own[0], s->to, n - done)) > 0)
		done += (size_t)k;
	s->kept = 0;
	if (done < n) {
		splice_close(s);
		s->off = 1;
	}
	return done;
}

int
splice_move(struct splice *s, int watch, size_t n, size_t *got, const char *name,
    struct err *e)
{
	ssize_t k;
	int r = 0;

	*got = 0;
	while (!s->off && r == 0)
		r = fd_ready(s->from, watch, -1, name, e);
	if (r < 0 || s->off)
		return r;
	if ((k = splice_splice(s->from, s->to, n)) < 0) {
		s->off = 1;
		return 0;
	}
	*got = (size_t)k;
	return 1;
}
