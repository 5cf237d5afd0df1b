
#include "../inside.h"
#include "../test.h"
#include "../model.h"
#include "../../memory.h"
#include "base/err.h"
#include "base/io.h"
#include "device/link.h"
#include "device/receipts.h"
#include "format/writer.h"
#include "sync/ratio.h"

/*
 * A simulated link behind a buffer, with a clock of its own.  feed() writes n bytes again
 * and again for secs seconds, each time after `gap' idle seconds.
 */
struct sim {
	struct link l;
	double rate, cap;	/* bit/s of the link, bytes of the buffer */
	double now, fill;	/* seconds; bytes in the buffer */
};

static void
drain(struct sim *s, double secs)
{
	s->now += secs;
	s->fill -= secs * s->rate / 8;
	if (s->fill < 0)
		s->fill = 0;
}

static void
feed(struct sim *s, double secs, size_t n, double gap)
{
	double end = s->now + secs, from;

	while (s->now < end) {
		drain(s, gap);
		link_idle(&s->l, gap);
		from = s->now;
		drain(s, 1e-5);
		s->fill += (double)n;
		if (s->fill > s->cap)
			drain(s, (s->fill - s->cap) * 8 / s->rate);
		link_wrote(&s->l, from, s->now, n);
	}
}

static struct sim
sim(double rate, double cap)
{
	return (struct sim){ .rate = rate, .cap = cap };
}

static int
near(double x, double want)
{
	return fabs(x - want) <= 0.01 * want;
}

TEST(bandwidth)
{
	static const double rates[] = { 2e5, 5e6, 20e6, 50e6, 200e6, 1e9 };
	struct sim s;
	size_t i;

	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		s = sim(rates[i], 1 << 20);
		feed(&s, 10 + 1e7 * 8 / rates[i], 256 * 1024, 1e-5);
		ok(near(link_bandwidth(&s.l), rates[i]), "%g bit/s: %g",
		    rates[i], link_bandwidth(&s.l));
	}
	s = sim(20e6, 8e6);
	feed(&s, 8, 65536, 1e-5);
	ok(near(link_bandwidth(&s.l), 20e6), "behind a buffer of 8 MB: %g",
	    link_bandwidth(&s.l));
	s = sim(20e6, 1 << 20);
	feed(&s, 2, 65536, 1);
	ok(link_bandwidth(&s.l) < 1, "an idle link: bandwidth unknown");
	feed(&s, 3, 65536, 1e-5);
	for (i = 0; i < 5; i++) {
		feed(&s, 1, 65536, 1e-5);
		drain(&s, 3);
		link_idle(&s.l, 3);
	}
	ok(near(link_bandwidth(&s.l), 20e6), "bursts with pauses: %g bit/s",
	    link_bandwidth(&s.l));
	s.rate = 5e6;
	feed(&s, 30, 65536, 1e-5);
	ok(near(link_bandwidth(&s.l), 5e6), "the estimate follows a change: %g bit/s",
	    link_bandwidth(&s.l));
}

/*
 * Simulate a link of rate s->rate behind two buffers: a pipe of 64 KiB that we fill and a
 * connection's buffer of s->cap bytes. A program moves bytes from one to the other and halts
 * for `wait' seconds, about `often' times per second. Return the bit/s carried in secs
 * seconds.
 */
static double
halting(struct sim *s, double secs, double wait, double often, uint32_t seed)
{
	const double tick = 1e-3, pipe = 65536;
	const size_t piece = 65536;
	double stop = -1, in_pipe = 0, in_cap = 0, began = 0, went = 0, k;
	size_t left = piece;

	for (s->now = 0; s->now < secs; s->now += tick) {
		seed = seed * 1664525 + 1013904223;
		if (seed / 4294967296.0 < often * tick)
			stop = s->now + wait;
		k = fmin(in_cap, s->rate / 8 * tick);
		in_cap -= k;
		went += k;
		while (s->now >= stop || in_pipe < pipe) {
			k = s->now < stop ? 0 : fmin(in_pipe, s->cap - in_cap);
			in_pipe -= k;
			in_cap += k;
			if (pipe - in_pipe < 1)
				break;
			k = fmin((double)left, pipe - in_pipe);
			in_pipe += k;
			left -= (size_t)k;
			if (left == 0) {
				link_wrote(&s->l, began, s->now, piece);
				began = s->now;
				left = piece;
			}
		}
	}
	return went * 8 / secs;
}

/* With halts the rates of single spans are far off, but the estimate is not. */
TEST(halts)
{
	static const double rates[] = { 5e6, 20e6, 50e6, 200e6 };
	struct sim s;
	uint32_t seed;
	double took;
	size_t i;

	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (seed = 1; seed <= 5; seed++) {
			s = sim(rates[i], rates[i] / 8 * 0.6);
			took = halting(&s, 6, 0.25, 0.7, seed);
			ok(took > 0.95 * rates[i] &&
			    near(link_bandwidth(&s.l), took),
			    "%g bit/s through a program that often halts: %g "
			    "of %g", rates[i], link_bandwidth(&s.l), took);
		}
}

/* After each rest the buffers grow for some seconds and take half as much again as the
 * link carries. If most of the time was after these seconds, only that time counts; of
 * shorter transfers the latest half counts. */
TEST(settles)
{
	static const double grow[] = { 1.8, 1.6 }, secs[] = { 6, 3.4 };
	struct sim s;
	size_t k, spell;
	double at;

	for (k = 0; k < 2; k++) {
		s = sim(20e6, 0);
		for (spell = 0; spell < 4; spell++) {
			for (at = 0; at < secs[k]; at += 0.05) {
				s.cap = 1e5 + 1.25e6 * fmin(at, grow[k]);
				feed(&s, 0.05, 16384, 1e-5);
			}
			drain(&s, 3);
			link_idle(&s.l, 3);
		}
		ok(near(link_bandwidth(&s.l), 20e6), "behind buffers that grow "
		    "in %g of %g s: %g", grow[k], secs[k],
		    link_bandwidth(&s.l));
	}
}

/* Send a shard, and pause `rest' seconds after it arrived; return the seconds until it did. */
static double
send(struct sim *s, double bytes, double rest)
{
	double from = s->now, took;

	for (; bytes > 0; bytes -= 65536)
		feed(s, 1e-9, bytes < 65536 ? (size_t)bytes : 65536, 1e-6);
	rest += s->fill * 8 / s->rate;
	took = s->now - from + s->fill * 8 / s->rate;
	drain(s, rest);
	link_idle(&s->l, rest);
	return took;
}

/* After 40 shards the link falls from 200 to 5 Mbit/s.  Each of the next three shards is as
 * large as the estimated rate allows within the deadline.  The first of them was planned
 * before the fall; the other two must be in time. */
TEST(falls)
{
	static const double deadline[] = { 0.4, 1, 3, 10 };
	double took[3] = { 0 }, rate;
	size_t i, k;
	struct sim s;

	for (i = 0; i < sizeof(deadline) / sizeof(deadline[0]); i++) {
		s = sim(200e6, 1 << 20);
		for (k = 0; k < 40; k++)
			(void)send(&s, 200e6 / 8 * fmax(deadline[i], 1), 0.1);
		rate = ratio_acted(-1, link_bandwidth(&s.l));
		ok(rate > 180e6, "%g s: %g bit/s before", deadline[i], rate);
		s.rate = 5e6;
		for (k = 0; k < 3; k++) {
			took[k] = send(&s, rate / 8 * deadline[i], 0.1);
			rate = ratio_acted(rate, link_bandwidth(&s.l));
		}
		ok(rate <= 5.1e6 && fmax(took[1], took[2]) <= 1.02 * deadline[i],
		    "%g s: three shards after the fall %g bit/s, the last took "
		    "%.3g s (%.3g, %.3g)", deadline[i], rate, took[2], took[0],
		    took[1]);
	}
}

TEST(pace)
{
	double due = 0, now = 100, start = 100, w;
	size_t sent = 0, i;

	for (i = 0; i < 1000; i++) {
		now += link_pace(&due, 8e6, now, 10000);
		sent += 10000;
		if (i == 500)
			now += 0.1;	/* a stall, after which the pace catches up */
	}
	ok(fabs((double)(sent - 10000) / (now - start) - 1e6) < 1,
	    "1 MB/s, in spite of a stall");
	now += 100;
	for (i = 0, w = 0; i < 40; i++)
		w += link_pace(&due, 8e6, now + w, 10000);
	ok(fabs(w - 0.19) < 1e-6, "after 100 s without data, 0.2 s are made up");
	now += w + 1;
	for (i = 0, w = 0; i < 40; i++)
		w += link_pace(&due, 8e6, now + w, 10000);
	ok(fabs(w - 0.19) < 1e-6, "after 1 s without data, too");
}

TEST(stream)
{
	struct writer_opts wo = { "test", NULL, 0, 0 };
	struct schema sc = model_of(100, 0, 0);
	struct err e = ERR_INIT;
	struct shard s;
	struct writer *w = NULL;
	struct io *io;
	const unsigned char *p;
	unsigned char bad[200];
	float x[100] = { 1, 2, 3 };
	size_t n = 0, at, step;
	struct link l;

	shard_init(&s);
	ok(memory_create(&io, &e) == 0 && writer_open(&w, io, &wo, &e) == 0,
	    "a stream");
	for (s.step = 0; s.step < 3; s.step++)
		ok(writer_shard(w, &s, &sc, &e) == 0 &&
		    writer_values(w, 0, x, 100, &e) == 0 &&
		    writer_send(w, NULL, &e) == 0, "with a shard");
	ok(writer_finish(w, &e) == 0, "to its end");
	p = learned_of(io, &n);
	for (step = 1; step < 200; step += 33) {
		l = (struct link){ .n = 0 };
		for (at = 0; at < n; at += step)
			link_bytes(&l, p + at, n - at < step ? n - at : step, 1);
		ok(!l.track.lost && l.shards == 3 && l.pending == 3,
		    "three shards in pieces of %zu", step);
	}
	l = (struct link){ .n = 0 };
	for (l.pending = 0; l.pending < LINK_SHARDS; l.pending++)
		memset(&l.sent[l.pending], (int)l.pending,
		    sizeof(l.sent[0]));
	link_bytes(&l, p, n, 7);
	for (at = 3; at < LINK_SHARDS && l.sent[at - 3].digest[0] == at; at++)
		;
	ok(l.shards == 3 && l.pending == LINK_SHARDS && at == LINK_SHARDS &&
	    l.sent[at - 3].at == 7 && l.sent[at - 1].at == 7 &&
	    l.sent[at - 3].looked == 0, "of many shards only the newest await receipts");
	memcpy(bad, p, sizeof(bad));
	bad[20] ^= 1;
	l = (struct link){ .n = 0 };
	link_bytes(&l, bad, sizeof(bad), 1);
	ok(l.track.lost && l.shards == 0, "a changed header ends the measurement");
	l = (struct link){ .n = 0 };
	link_bytes(&l, (const unsigned char *)"#!/bin/sh\n# anything else, "
	    "which is 64 bytes long and a few more.....", 68, 1);
	link_bytes(&l, p, n, 1);
	ok(l.track.lost && l.shards == 0, "so do bytes that are no stream");
	writer_free(w);
	schema_release(&sc);
	shard_release(&s);
}

/* Make a receipt for each pending shard. */
static int
answer(const struct link *l, const struct statedir *st, struct err *e)
{
	struct receipts q;
	size_t i;

	memset(&q, 0, sizeof(q));
	for (i = 0; i < l->pending; i++) {
		struct receipt r;

		memset(&r, 0, sizeof(r));
		r.step = i;
		memcpy(r.digest, l->sent[i].digest, SHARD_DIGEST);
		receipts_add(&q, &r);
	}
	return receipts_save(&q, st, IO_SYNC_NONE, e);
}

/* Round trips are smoothed by RFC 6298. The first trip is the mean, half of it the deviation.
 * A later trip moves the mean by an eighth of its distance from the mean, and the deviation
 * by a quarter of the way to that distance. */
TEST(trips)
{
	static const double took[] = { 0.08, 0.16, 0.04, 0.4 };
	struct statedir st = STATE_INIT;
	struct err e = ERR_INIT;
	struct link l;
	double now = 10, mean = 0, off = 0;
	size_t i;
	int good;

	good = statedir_open(&st, "trips", &e) == 0;
	l = (struct link){ .n = 0 };
	for (i = 0; i < 4; i++, now += 1) {
		l.pending = 1;
		memset(&l.sent[0], (int)i + 1, sizeof(l.sent[0]));
		l.sent[0].at = now;
		l.sent[0].looked = 0;
		good &= link_receipts(&l, &st, now, &e) == 0 && l.pending == 1 &&
		    answer(&l, &st, &e) == 0 &&
		    link_receipts(&l, &st, now + took[i], &e) == 0 &&
		    l.pending == 0;
		off = i == 0 ? took[0] / 2 :
		    0.75 * off + 0.25 * fabs(mean - took[i]);
		mean = i == 0 ? took[0] : 0.875 * mean + 0.125 * took[i];
		ok(good && fabs(l.rtt - mean) < 1e-9 &&
		    fabs(l.jitter - off) < 1e-9, "after a trip of %g s: %g s, "
		    "and %g s from it", took[i], l.rtt, l.jitter);
	}
	/* a receipt that exists before the shard is sent belongs to an earlier
	 * transmission */
	l.pending = 1;
	l.sent[0].at = now;
	l.sent[0].looked = 0;
	ok(link_receipts(&l, &st, now + 3, &e) == 0 && l.pending == 0 &&
	    fabs(l.rtt - mean) < 1e-9, "an older receipt is no round trip");
	/* of three pending shards the answered one is removed */
	for (i = 0; i < 3; i++) {
		memset(&l.sent[i], 100 + (int)i, sizeof(l.sent[0]));
		l.sent[i].at = now + (double)i;
		l.sent[i].looked = 1;
	}
	l.pending = 1;
	good = answer(&l, &st, &e) == 0;
	l.pending = 3;
	good &= link_receipts(&l, &st, now + 0.5, &e) == 0;
	ok(good && l.pending == 2 && l.sent[0].digest[0] == 101 &&
	    l.sent[0].at == now + 1 && l.sent[1].digest[5] == 102 &&
	    l.sent[1].at == now + 2, "of three one is answered, two are left");
	statedir_close(&st);
}

TEST(patience)
{
	struct link l;

	l = (struct link){ .n = 0 };
	ok(link_patience(&l, 5) == 1, "no shard awaits a receipt: 1 s");
	l.pending = 2;
	l.sent[0].at = 50;
	l.sent[1].at = 100;
	ok(near(link_patience(&l, 110), 0.2), "a 50th of the time since the "
	    "newest shard");
	ok(link_patience(&l, 100) == 0.002 && link_patience(&l, 1e6) == 1,
	    "two milliseconds at least, a second at most");
}

/* Return the number under a key of the memory `link'; -1: absent, -2: an error. */
static double
known(const struct statedir *st, const char *key)
{
	struct err e = ERR_INIT;
	double v = -1;

	return learned_number(st, LEARNED_LINK, key, &v, &e) < 0 ? -2 : v;
}

TEST(kept)
{
	struct statedir st = STATE_INIT;
	struct learned h = LEARNED_INIT;
	struct err e = ERR_INIT;
	struct sim s = sim(20e6, 1 << 20);
	struct link l;
	float x = 1;

	ok(statedir_open(&st, "kept", &e) == 0 &&
	    link_save(&s.l, &st, 0, &e) == 0 &&
	    learned_load(&h, &st, LEARNED_LINK, &e) == 0,
	    "a link without measurements writes no file");
	(void)learned_put(&h, "w", &x, 1, &e);
	(void)text_set(&h.kv, "other", "5", &e);
	(void)text_set(&h.kv, LINK_RTT, "1e9", &e);
	(void)text_set(&h.kv, LINK_JITTER, "-1", &e);
	ok(learned_save(&h, &st, LEARNED_LINK, NULL, IO_SYNC_RENAME, &e) == 0 &&
	    link_load(&s.l, &st, &e) == 0 && s.l.rtt == 0 &&
	    s.l.jitter == 0, "impossible times count as unknown");
	learned_release(&h);
	s.l.trips = 1;
	s.l.rtt = 0.1234567;
	s.l.jitter = 0.0625;
	ok(link_save(&s.l, &st, 0, &e) == 0 &&
	    known(&st, LEARNED_BANDWIDTH) == -1 &&
	    known(&st, LINK_RTT) == 0.123457 &&
	    known(&st, LINK_JITTER) == 0.0625 && known(&st, "other") == 5,
	    "a round trip, no bandwidth; other keys stay");
	l = (struct link){ .n = 0 };
	ok(link_load(&l, &st, &e) == 0 && l.rtt == 0.123457 &&
	    l.jitter == 0.0625 && l.trips == 0, "and back");
	s.l.rtt = 0;
	ok(link_save(&s.l, &st, 3e6, &e) == 0 &&
	    known(&st, LEARNED_BANDWIDTH) == 3e6 &&
	    known(&st, LINK_RTT) == 0.123457, "only a limit is known: the limit");
	feed(&s, 10, 65536, 1e-5);
	ok(link_save(&s.l, &st, 0, &e) == 0 &&
	    near(known(&st, LEARNED_BANDWIDTH), 20e6), "a measured bandwidth: that one");
	ok(link_save(&s.l, &st, 5e6, &e) == 0 &&
	    known(&st, LEARNED_BANDWIDTH) == 5e6, "with a lower limit: the limit");
	ok(link_save(&s.l, &st, 50e6, &e) == 0 &&
	    near(known(&st, LEARNED_BANDWIDTH), 20e6), "with a higher limit: the measured one");
	statedir_close(&st);
}
