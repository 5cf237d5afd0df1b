/*
 * late: simulate a link in a pipe.  It reads bytes as fast as they come, as a socket's buffer
 * does, and writes them after a delay, at most at a given rate, and after a fixed time for
 * each DATA frame of a shard stream.
 *
 *   late [-d SECONDS] [-r BIT/S] [-c SECONDS] [-l FILE]
 *
 *   -d  delay of every byte        -c  time for each DATA frame
 *   -l  write one line per DATA frame: its bytes and the seconds it took
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/clock.h"
#include "format/frame.h"

enum { PIECE = 1 << 16, MOST = 1 << 28 };

struct piece {
	struct piece *next;
	double due;
	size_t n;
	unsigned char p[];
};

struct late {
	double delay, rate, cost;
	FILE *log;
	double free;		/* time at which the link is free again */
	struct piece *first, **last;
	size_t held;
	/* the stream */
	unsigned char head[FRAME_HEAD_SIZE];
	size_t have;
	uint64_t left;		/* bytes of payload and padding still to come */
	size_t frame;		/* bytes of this DATA frame; 0: not a DATA frame */
	double from;
};

static void
fail(const char *what)
{
	(void)fprintf(stderr, "late: %s: %s\n", what, strerror(errno));
	exit(4);
}

/* Parse a complete header: find the bytes that follow it; a DATA frame occupies the link. */
static void
header(struct late *x)
{
	struct frame_head h;
	struct err e = ERR_INIT;

	x->have = 0;
	x->frame = 0;
	if (frame_decode(&h, x->head, FRAME_MAX_HARD, 0, &e) < 0)
		return;
	x->left = (uint64_t)h.wire_len + frame_padding(h.wire_len);
	if (h.type != FRAME_DATA)
		return;
	x->frame = FRAME_HEAD_SIZE + (size_t)x->left;
	x->from = x->free;
	x->free += x->cost;
}

/* Add the time that n bytes take on the link, and find the frames in them. */
static void
pass(struct late *x, const unsigned char *p, size_t n)
{
	size_t k;

	for (; n > 0; p += k, n -= k) {
		if (x->left > 0) {
			k = x->left < n ? (size_t)x->left : n;
			x->left -= k;
		} else {
			k = sizeof(x->head) - x->have;
			k = k < n ? k : n;
			memcpy(x->head + x->have, p, k);
			x->have += k;
			if (x->have == sizeof(x->head))
				header(x);
		}
		if (x->rate > 0)
			x->free += 8 * (double)k / x->rate;
		if (x->left == 0 && x->frame > 0 && x->have == 0) {
			if (x->log != NULL)
				(void)fprintf(x->log, "%zu\t%.9f\n", x->frame,
				    x->free - x->from);
			x->frame = 0;
		}
	}
}

static int
take(struct late *x)
{
	struct piece *q = malloc(sizeof(*q) + PIECE);
	ssize_t n;

	if (q == NULL)
		fail("memory");
	n = read(STDIN_FILENO, q->p, PIECE);
	if (n < 0 && errno != EINTR)
		fail("read");
	if (n <= 0) {
		free(q);
		return n < 0;
	}
	x->free = fmax(x->free, clock_now());
	pass(x, q->p, (size_t)n);
	q->n = (size_t)n;
	q->due = x->free + x->delay;
	q->next = NULL;
	*x->last = q;
	x->last = &q->next;
	x->held += q->n;
	return 1;
}

static void
give(struct late *x)
{
	struct piece *q = x->first;
	size_t at = 0;
	ssize_t n;

	while (at < q->n) {
		if ((n = write(STDOUT_FILENO, q->p + at, q->n - at)) < 0 &&
		    errno != EINTR)
			fail("write");
		at += n > 0 ? (size_t)n : 0;
	}
	x->held -= q->n;
	if ((x->first = q->next) == NULL)
		x->last = &x->first;
	free(q);
}

/* Wait for input or a due piece, and handle both. Return 0 once the input has ended. */
static int
turn(struct late *x, int open)
{
	struct pollfd fd = { open && x->held < MOST ? STDIN_FILENO : -1, POLLIN,
	    0 };
	struct timespec t = { 0, 0 };
	double wait = x->first != NULL ? fmax(0, x->first->due - clock_now()) : 3600;

	t.tv_sec = (time_t)wait;
	t.tv_nsec = (long)((wait - (double)t.tv_sec) * 1e9);
	if (ppoll(&fd, 1, &t, NULL) < 0 && errno != EINTR)
		fail("poll");
	if (fd.fd >= 0 && fd.revents != 0)
		open = take(x);
	while (x->first != NULL && x->first->due <= clock_now())
		give(x);
	return open;
}

int
main(int argc, char **argv)
{
	static struct late x;
	int k, open = 1;

	x.last = &x.first;
	while ((k = getopt(argc, argv, "d:r:c:l:")) != -1) {
		if (k == 'd')
			x.delay = strtod(optarg, NULL);
		else if (k == 'r')
			x.rate = strtod(optarg, NULL);
		else if (k == 'c')
			x.cost = strtod(optarg, NULL);
		else if (k != 'l' || (x.log = fopen(optarg, "w")) == NULL)
			return 2;
	}
	while (open || x.first != NULL)
		open = turn(&x, open);
	return x.log != NULL && fclose(x.log) != 0 ? 4 : 0;
}
