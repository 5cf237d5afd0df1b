/*
 * Measure a link from its near end: the rate at which it takes bytes, and the time until a
 * shard's receipt.  Times are seconds of a monotonic clock, passed by the caller; nothing here
 * waits or reads a clock.
 *
 * Bandwidth.  When a blocked write ends, the buffers between us and the link are full.
 * So the bytes written between two such moments are what the link took meanwhile.  Spans
 * of at least LINK_SPAN between such moments are kept, unless we had nothing to send for
 * the fraction LINK_STARVED of the span or more.
 *
 * After a pause, buffers take megabytes that the link has not carried yet (TCP's grow
 * meanwhile).  So the first span after a pause is dropped.  Of the newest LINK_SPANS others,
 * those count that began LINK_SETTLE or more after a pause.  If these take less than half of
 * all spans' time, or less than LINK_ENOUGH, the spans that began latest after a pause count,
 * too, until there is enough.
 *
 * A single span can mislead: a pipe or ssh before the link may wait for a processor while the
 * link drains its buffers, and fill them when it runs.  Then one span seems too slow and
 * the next too fast.  The estimate is therefore a weighted median of slopes (bytes over
 * time): one for each pair of span ends without a pause between, weighted by the time
 * between them (Sen, Estimates of the Regression Coefficient Based on Kendall's Tau,
 * 1968; weights: Sievers, Weighted Rank Statistics for Simple Linear Regression, 1978).
 * Spans shorter than 2 LINK_SPAN in all give no estimate.
 *
 * Round trip: from a shard's last byte to its receipt in the state, smoothed with gain 1/8;
 * jitter is the mean deviation, gain 1/4 (RFC 6298, section 2).
 */
#ifndef ACE_LINK_H
#define ACE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "device/learned.h"
#include "format/frame.h"
#include "format/shard.h"

struct err;

enum { LINK_SPANS = 64, LINK_SHARDS = 64 };
#define LINK_SPAN 0.25		/* these three are seconds; for their meanings see above */
#define LINK_SETTLE 2.0
#define LINK_ENOUGH 5.0
#define LINK_STARVED 0.05	/* fraction of a span */
#define LINK_BLOCKED 0.0003	/* seconds from which a write counts as blocked */

#define LINK_RTT "rtt"		/* keys of the memory `link'; in seconds */
#define LINK_JITTER "jitter"

/* The position in the frames of a stream whose bytes pass.  Headers are verified, payloads
 * are not.  The struct begins as zeros. */
enum { LINK_HEAD = FRAME_HEAD_SIZE + SHARD_END_SIZE };

struct link_track {
	int lost;		/* 1: the bytes are not a stream, or are damaged */
	uint64_t left;		/* bytes left of the payload and padding; 0: in a header */
	size_t have;		/* bytes in head */
	unsigned char head[LINK_HEAD];	/* first bytes of the frame; if DATA, only its header */
	struct frame_head h;	/* header of the current frame, once it is complete */
};

struct link {			/* begins as zeros */
	/* bandwidth */
	int running;		/* 1: buffers were full at `since' */
	double since, starved;	/* starved: seconds of link_idle after `since' */
	double rested;		/* when buffers were first full after a pause */
	uint64_t bytes;		/* bytes written after `since' */
	uint64_t total;		/* all bytes written */
	size_t n;		/* number of spans so far; span i is in w[i % LINK_SPANS] */
	struct link_span {
		double spell;		/* value of `rested', which changes only at a pause */
		double from, to;	/* times at which the span began and ended */
		uint64_t before, after;	/* `total' at `from' and at `to' */
	} w[LINK_SPANS];
	/* round trips */
	double rtt, jitter;	/* seconds; 0: not known */
	uint64_t trips;		/* round trips measured */
	size_t pending;		/* number of shards in `sent', oldest first */
	struct link_sent {
		unsigned char digest[SHARD_DIGEST];
		double at;	/* when the shard's last byte passed */
		int looked;	/* 1: an earlier look found no receipt for this shard */
	} sent[LINK_SHARDS];
	uint64_t shards;	/* complete shards that passed */
	struct link_track track;	/* position in the stream after the bytes that passed */
};

/* Note a write of n bytes from time `from' to `to'. */
void link_wrote(struct link *l, double from, double to, size_t n);
/* Note `secs' seconds in which nothing was written, because there was no input or because
 * of the rate limit. */
void link_idle(struct link *l, double secs);
/* Return the bandwidth in bit/s, 0 if unknown. */
double link_bandwidth(const struct link *l);

/* Return how many of the next bytes are values, which link_bytes does not need to see. */
uint64_t link_track_unseen(const struct link_track *t);

/* Note bytes that passed, and find the ends of shards in them. The bytes need not be
 * a stream. p may be NULL for values (link_track_unseen). */
void link_bytes(struct link *l, const unsigned char *p, size_t n, double now);
/* link_receipts: look for receipts of passed shards in the state.  Call it when
 * l->pending has grown (a receipt that is present then answers an earlier sending, which
 * gives no round trip), and repeatedly after that.  link_patience: return the seconds to
 * the next look: 1/50 of the time since the newest shard, from 0.002 to 1; 1 without a
 * pending shard. */
int link_receipts(struct link *l, const struct statedir *s, double now, struct err *e);
double link_patience(const struct link *l, double now);

/* link_load: read round trip and jitter from the state.  link_save: write bandwidth, round
 * trip and jitter, if known, to the state; other keys stay.  limit: the caller's rate limit
 * in bit/s, which replaces an unknown or larger bandwidth; 0: none. */
int link_load(struct link *l, const struct statedir *s, struct err *e);
int link_save(const struct link *l, const struct statedir *s, double limit,
    struct err *e);

/* Return the seconds to wait before writing n bytes, so that at most `rate' bit/s are
 * sent (a token bucket); *due begins as 0. After a pause, the bytes of 0.2 s are sent without
 * a wait. */
double link_pace(double *due, double rate, double now, size_t n);

#endif
