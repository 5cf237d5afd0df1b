/*
 * Measures a link from its near end: how fast it takes bytes, and how long a
 * shard's receipt takes.  All times are seconds of a clock that does not jump,
 * and are the caller's; nothing here waits or looks at a clock.
 *
 * Bandwidth.  A write that blocked ended when the buffers below were full; so
 * what was written from one such moment to a later one is what the link took
 * meanwhile.  Such spans, of LINK_SPAN at least, are kept; one in which we
 * had nothing to send for a part of LINK_STARVED is dropped.
 *
 * After a rest, buffers swallow megabytes that the link has not carried yet
 * (TCP's grow as they do).  So the first span after a rest is dropped, and
 * of the newest LINK_SPANS of the others those count that began LINK_SETTLE
 * after the last rest; where these are not half of the time or LINK_ENOUGH,
 * those that come nearest.
 *
 * One span may mislead: what stands between us and the link (a pipe, ssh)
 * may wait for a processor while the link lives on its buffers, and fills them
 * at once when it runs.  Bytes that one span lacks, the next has.  So the
 * estimate is a slope: of the bytes written over the time, through the
 * spans' ends, for every two ends of one spell between rests; of these the
 * median, each with the weight of the time between (Sen, Estimates of the
 * Regression Coefficient Based on Kendall's Tau, 1968; the weights: Sievers,
 * Weighted Rank Statistics for Simple Linear Regression, 1978).  Less than two
 * spans are none.
 *
 * Round trip: from a shard's last byte to its receipt in the state, smoothed
 * with gain 1/8; jitter is the mean deviation, gain 1/4 (RFC 6298, section 2).
 */
#ifndef ACE_LINK_H
#define ACE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "device/memory.h"
#include "format/frame.h"
#include "format/shard.h"

struct err;

enum { LINK_SPANS = 64, LINK_SHARDS = 64 };
#define LINK_SPAN 0.25
#define LINK_SETTLE 2.0
#define LINK_ENOUGH 5.0
#define LINK_STARVED 0.05	/* of a span */
#define LINK_BLOCKED 0.0003	/* a write that took longer did block */

#define LINK_RTT "rtt"		/* keys of the state file, seconds */
#define LINK_JITTER "jitter"

/* Finds the frames in the bytes of a stream while they pass: where each ends, and
 * of which type it is.  It looks at headers and their checksums only; payloads
 * are not verified, which takes a reader.  Begins as zeros. */
enum { LINK_HEAD = FRAME_HEAD_SIZE + SHARD_END_SIZE };

struct link_track {
	int lost;		/* this is no stream, or a damaged one */
	uint64_t left;		/* of the current frame; 0: in its header */
	size_t have;
	unsigned char head[LINK_HEAD];	/* how the frame begins */
	struct frame_head h;	/* of the current frame */
};

struct link {
	/* bandwidth */
	int running;		/* there was a full moment, at `since' */
	double since, starved;
	double rested;		/* when buffers were first full after a rest */
	uint64_t bytes;		/* written since */
	uint64_t total;		/* ever */
	size_t n;		/* spans ever */
	struct link_span {
		double spell;		/* `rested' of then: which it is of */
		double from, to;
		uint64_t before, after;	/* `total' then */
	} w[LINK_SPANS];
	/* round trips */
	double rtt, jitter;	/* 0: not known */
	uint64_t trips;
	size_t pending;
	struct link_sent {
		unsigned char digest[SHARD_DIGEST];
		double at;
		int looked;	/* its receipt was not there when it went */
	} sent[LINK_SHARDS];
	uint64_t shards;	/* whole ones that passed */
	struct link_track track;	/* of the stream, if it is one */
};

/* link_init: knows nothing. */
void link_init(struct link *l);

/* link_wrote(l, from, to, n): a write of n bytes lasted from `from' to `to'. */
void link_wrote(struct link *l, double from, double to, size_t n);
/* link_idle(l, secs): for so long nothing was written, since there was no
 * input or the rate is limited. */
void link_idle(struct link *l, double secs);
/* link_bandwidth(l): bit/s, 0 not known. */
double link_bandwidth(const struct link *l);

/* link_track_unseen(t): how many bytes of values come next, of which link_bytes
 * need not see a copy. */
uint64_t link_track_unseen(const struct link_track *t);

/* link_bytes(l, p, n, now): these bytes have passed; finds the ends of shards
 * in them.  They need not be a stream.  p may be NULL for values that passed
 * unseen (link_track_unseen). */
void link_bytes(struct link *l, const unsigned char *p, size_t n, double now);
/* link_receipts(l, s, now, e): looks into the state for receipts of the shards
 * that have passed.  To be called when l->pending has grown (a receipt that is
 * there already then is for an earlier sending of the shard, and no round
 * trip), and after that again and again.  link_patience(l, now): seconds to
 * the next such look, a 50th of the time since the newest shard. */
int link_receipts(struct link *l, const struct statedir *s, double now,
    struct err *e);
double link_patience(const struct link *l, double now);

/* link_load(l, s, e): takes the round trip and its jitter from the state.
 * link_save(l, s, limit, e): writes what is known into the state; keys of
 * others in that file stay.  limit: the rate in bit/s to which the caller
 * limits the link, 0: none. */
int link_load(struct link *l, const struct statedir *s, struct err *e);
int link_save(const struct link *l, const struct statedir *s, double limit,
    struct err *e);

/* link_pace(due, rate, now, n): seconds to wait before n bytes may be written,
 * so that no more than `rate' bit/s go (a token bucket); *due is 0 at first.
 * After a pause no more than a fifth of a second is made up for. */
double link_pace(double *due, double rate, double now, size_t n);

#endif
