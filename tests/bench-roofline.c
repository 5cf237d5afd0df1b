/*
 * Compare each codec's time on this machine with a lower bound, in nanoseconds per f32 value,
 * on one core and in one run.  The time is that with values in memory.  The speed with
 * values in the cache, as in our programs, is printed before it.
 *
 * A bound is the sum of the times of the work that the format prescribes.  The time of each
 * kind of work is that of the shortest loop that does only this:
 *
 *   read, write, copy    the group's values once, from where they lie
 *   noise    make a random number: Philox's ten rounds, by the kernel of the table
 *            in use (kern.h), whose products bound it
 *   count    count a byte: a load, an increment, a store
 *   put      put a byte into one of rANS's four states: each state waits for a
 *            comparison, two products and three sums
 *   get      get a byte out of one of them: a load, a product, a sum, a comparison,
 *            and the word that the previous state left
 *   rice     read an adaptive Rice code: its length says where the next one begins,
 *            and its value how many bits that one has
 *
 * These loops are sequential; work that another unit of the core does at the same time takes
 * no time.  Further tables have the passes of ECQ in each of its three modes, at 0.5 bits and
 * at about 6 bits per value.  The first pass runs in all modes for a sample.  The sum of the
 * passes' times is the lower bound for coding.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"

#include "bench.h"

enum { TURNS = 8, SYMBOLS = 1 << 20, NBOUNDS = 8, STATES = 16, PARTS = 4 };

enum bound { READ, WRITE, COPY, NOISE, COUNT, PUT, GET, RICE };
static const char *const bound_name[NBOUNDS] = { "read", "write", "copy",
	"noise", "count", "put", "get", "rice" };

static float *gauss, *y;
static const struct kern *kern;
static double bound[NBOUNDS];		/* ns */
static volatile uint64_t sink;		/* stores results, so that compilers keep the work */

/* Set result to the least time of TURNS runs, in ns per value of n. */
#define LEAST(result, n, work) do { \
	double least_ = 1e9, t_; \
	int k_; \
	for (k_ = 0; k_ < TURNS; k_++) { \
		t_ = now(); \
		work; \
		t_ = now() - t_; \
		least_ = t_ < least_ ? t_ : least_; \
	} \
	(result) = 1e9 * least_ / (double)(n); \
} while (0)

/* ---- the shortest loops ---- */

static void
loop_memory(enum bound b)
{
	size_t i;

	for (i = 0; i < total; i += GROUP)
		if (b == READ)
			sink += kern->max_bits(gauss + i, GROUP);
		else if (b == WRITE)
			memset(y + i, 0, 4 * GROUP);
		else
			memcpy(y + i, gauss + i, 4 * GROUP);
}

static void
loop_noise(void)
{
	static uint32_t number[1024];
	uint32_t i;

	for (i = 0; i < SYMBOLS / 4; i += 256) {
		rng_fill(1, 2, 3, i, number, 256);
		sink += number[0];
	}
}

static void
loop_count(const unsigned char *s)
{
	static uint32_t count[4][256];
	size_t i;

	for (i = 0; i < SYMBOLS; i += 4) {
		count[0][s[i]]++;
		count[1][s[i + 1]]++;
		count[2][s[i + 2]]++;
		count[3][s[i + 3]]++;
	}
	sink += count[0][1];
}

/* Each of the four states depends only on itself. */
static void
loop_put(const uint64_t inverse[4])
{
	uint32_t x[4] = { 1 << 16, 1 << 17, 1 << 18, 1 << 19 };
	size_t i;
	int j;

	for (i = 0; i < SYMBOLS; i += 4)
#pragma GCC unroll 4
		for (j = 0; j < 4; j++) {
			x[j] = x[j] >> 20 < 4000 ? x[j] : x[j] >> 16;
			x[j] += (uint32_t)(x[j] * inverse[j] >> 44) * 3 + 1;
		}
	sink += x[0] + x[1] + x[2] + x[3];
}

static void
loop_get(const uint16_t freq[4096], const unsigned char *word)
{
	uint32_t x[4] = { 1 << 16, 1 << 17, 1 << 18, 1 << 19 }, v;
	uint64_t low;
	size_t i, at = 0;
	int j;

	for (i = 0; i < SYMBOLS; i += 4) {
#pragma GCC unroll 4
		for (j = 0; j < 4; j++) {
			v = (x[j] >> 12) * freq[x[j] & 4095] + 7;
			low = 0 - (uint64_t)(v < 1 << 16);
			x[j] = v ^ ((v ^ (v << 16 | bytes_le16(word + at))) &
			    (uint32_t)low);
			at -= 2 * low;
		}
		at &= SYMBOLS / 2 - 1;
	}
	sink += x[0] + x[1] + x[2] + x[3];
}

/* In random bits a code has on average two bits more than its low bits. */
static void
loop_rice(const unsigned char *bits)
{
	uint64_t at = 0, mean = 100 << 8, w;
	unsigned i, q, r;

	for (i = 0; i < SYMBOLS / 2; i++) {
		w = bytes_le64(bits + at / 8 % (SYMBOLS / 2)) >> at % 8;
		q = (unsigned)__builtin_ctzll(w | 1 << 16);
		r = 55 - (unsigned)__builtin_clzll((mean & 0xffff) | 256);
		at += q + 1 + r;
		w = (uint64_t)q << r | (w >> q >> 1 & (((uint64_t)1 << r) - 1));
		mean += (w << 6) - (mean >> 2);
	}
	sink += mean;
}

static void
measure_bounds(void)
{
	unsigned char *s = malloc(SYMBOLS);
	static uint16_t freq[4096];
	uint64_t inverse[4];
	uint32_t r[4];
	size_t i;

	if (s == NULL)
		exit(4);
	for (i = 0; i < SYMBOLS; i++) {
		if (i % 4 == 0)
			rng_block(7, 0, 0, (uint32_t)i, r);
		s[i] = (unsigned char)(r[i % 4] >> 24);
	}
	for (i = 0; i < 4096; i++)
		freq[i] = (uint16_t)(500 + s[i]);
	for (i = 0; i < 4; i++)
		inverse[i] = ((uint64_t)1 << 44) / (300 + s[i]);
	LEAST(bound[READ], total, loop_memory(READ));
	LEAST(bound[WRITE], total, loop_memory(WRITE));
	LEAST(bound[COPY], total, loop_memory(COPY));
	LEAST(bound[NOISE], SYMBOLS, loop_noise());
	LEAST(bound[COUNT], SYMBOLS, loop_count(s));
	LEAST(bound[PUT], SYMBOLS, loop_put(inverse));
	LEAST(bound[GET], SYMBOLS, loop_get(freq, s));
	LEAST(bound[RICE], SYMBOLS / 2, loop_rice(s));
	free(s);
}

/* ---- the codecs ---- */

struct coded {
	struct codec_plan plan;
	struct buf body[64];
	uint8_t param[64];
};

/* Code all groups or, if `hot', the first group as many times, so that its values are in the
 * cache, as in a program, which works on one group at a time. */
static void
code(struct coded *c, int hot)
{
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < total / GROUP; i++) {
		struct codec_ctx ctx = { 1, 2, (uint32_t)i, 1024, i * GROUP };

		c->body[i].n = 0;
		if (codec_encode(&c->plan, &ctx, gauss + (hot ? 0 : i * GROUP),
		    GROUP, &c->body[i], &c->param[i], &e) < 0)
			die(ERR_MSG(&e));
	}
}

static void
decode(const struct coded *c, int hot)
{
	struct err e = ERR_INIT;
	size_t i, j;

	for (i = 0; i < total / GROUP; i++) {
		struct codec_ctx ctx = { 1, 2, (uint32_t)i, 1024, i * GROUP };

		j = hot ? 0 : i;
		if (codec_decode(c->plan.codec, c->param[j], &ctx,
		    c->body[j].p, c->body[j].n, y + j * GROUP, GROUP, &e) < 0)
			die(ERR_MSG(&e));
	}
}

/* One kind of work, and how often it is done per value. */
struct part {
	enum bound of;
	double times;
};

static void
line(const char *name, const char *way, const double ns[2],
    const struct part *p, size_t parts)
{
	double least = 0;
	size_t i;

	for (i = 0; i < parts; i++)
		least += p[i].times * bound[p[i].of];
	(void)printf("%-16s %-7s %6.2f %6.2f %7.2f %7.2f %6.1f  ", name, way,
	    4 / ns[1], 4 / ns[0], ns[0], least, ns[0] / least);
	for (i = 0; i < parts; i++)
		(void)printf("%s%.3g %s", i > 0 ? " + " : "", p[i].times,
		    bound_name[p[i].of]);
	(void)putchar('\n');
}

/* A codec on gauss, and the least work of coding and of decoding. */
static const struct row {
	const char *spec;
	struct part code[PARTS], decode[PARTS];
} rows[] = {
	{ "q8", { { READ, 1 } }, { { WRITE, 1 } } },
	{ "sign", { { READ, 1 } }, { { WRITE, 1 } } },
	/* three planes are copied and one is coded; all four are counted */
	{ "exact", { { COPY, 1 }, { COUNT, 4 }, { PUT, 1 } },
	    { { COPY, 1 }, { GET, 1 } } },
	{ "qsgd:7", { { READ, 1 }, { NOISE, 1 }, { COUNT, 1 }, { PUT, 1 } },
	    { { WRITE, 1 }, { GET, 1 } } },
	/* a gap and a magnitude for each value that is kept */
	{ "topk:0.01", { { READ, 1 } }, { { WRITE, 1 }, { RICE, 0.02 } } },
	{ "topk:0.1", { { READ, 1 } }, { { WRITE, 1 }, { RICE, 0.2 } } },
	{ "ecq:0.00423", { { READ, 1 } }, { { WRITE, 1 } } },
	{ "ecq:0.002886", { { READ, 1 } }, { { WRITE, 1 } } },
	{ "ecq:0.00105", { { READ, 1 } }, { { WRITE, 1 } } },
	{ "ecq:0.0000645", { { READ, 1 } }, { { WRITE, 1 } } },	/* 6 bits */
};

static void
measure_row(const struct row *r)
{
	static struct coded c;
	struct part p[2][PARTS];
	struct err e = ERR_INIT;
	double ns[2][2];
	size_t n, way;
	int hot;

	if (codec_parse(r->spec, &c.plan, &e) < 0)
		die(ERR_MSG(&e));
	for (hot = 1; hot >= 0; hot--) {
		LEAST(ns[0][hot], total, code(&c, hot));
		LEAST(ns[1][hot], total, decode(&c, hot));
	}
	memcpy(p[0], r->code, sizeof(p[0]));
	memcpy(p[1], r->decode, sizeof(p[1]));
	for (way = 0; way < 2; way++) {
		for (n = 0; n < PARTS && p[way][n].times != 0; n++)
			;
		line(r->spec, way == 0 ? "code" : "decode", ns[way], p[way], n);
	}
}

/* ---- the passes of ECQ ---- */

static const char *const mode[KERN_ECQ_MODES] = { "plain", "left", "above" };

struct ecq {
	struct kern_ecq m;
	int16_t q[GROUP];
	uint16_t code[GROUP];
	int32_t above[GROUP];
	uint32_t mark[GROUP / KERN_ECQ_LANES], span[GROUP + 64];
	uint32_t state[STATES];
	unsigned char word[4 * GROUP], *w;
	enum kern_ecq_mode mode;
	unsigned level, top;
};

static void
start(struct ecq *t)
{
	kern_ecq_start(&t->m, t->mode, t->level, 1024, 0,
	    t->mode == KERN_ECQ_ABOVE ? t->above : NULL);
	kern_ecq_tables(&t->m, t->top);
}

static void
put(struct ecq *t)
{
	unsigned j;

	for (j = 0; j < STATES; j++)
		t->state[j] = KERN_ECQ_LOW;
	t->w = kern->ecq_put(t->state, STATES, t->span, GROUP,
	    t->word + sizeof(t->word));
}

static void
get(struct ecq *t)
{
	uint32_t x[STATES];
	struct kern_ecq_get g = { x, STATES, t->w, t->word + sizeof(t->word) };

	memcpy(x, t->state, sizeof(x));
	start(t);
	if (kern->ecq_get(&t->m, &g, t->code, GROUP) < 0)
		exit(1);
}

static void
measure_passes(struct ecq *t, const float *x, float step, unsigned level,
    double all[KERN_ECQ_MODES][2])
{
	const float of[KERN_ECQ_SYMBOLS] = { 0, 1 };
	int64_t sum[3] = { 0 };
	uint32_t count[3] = { 0 };
	struct kern_ecq_sorted sorted = { &t->m, t->code, 0 };
	uint64_t low[4], bits[4];
	double ns[9];
	size_t i, k;

	t->level = level;
	t->top = 15;
	for (i = 0; i < 3; i++) {
		t->mode = (enum kern_ecq_mode)i;
		LEAST(ns[0], GROUP, kern->deadzone(t->q, x, GROUP, 1 / step,
		    0.6f, 0.45f));
		LEAST(ns[1], GROUP, start(t);
		    kern->ecq_sort(&sorted, 1, t->q, GROUP));
		t->top = sorted.top;
		LEAST(ns[2], GROUP, start(t); kern->ecq_spans(&t->m, t->code,
		    GROUP, t->span));
		LEAST(ns[3], GROUP, put(t));
		LEAST(ns[4], GROUP, get(t));
		LEAST(ns[5], GROUP, kern->ecq_marks(t->code, t->q, GROUP,
		    t->mark, KERN_ECQ_ESCAPE));
		LEAST(ns[6], GROUP, kern->ecq_values(y, t->code, t->mark,
		    GROUP, of));
		LEAST(ns[7], GROUP, kern->ecq_centers(t->q, x, GROUP, 1 / step,
		    sum, count));
		LEAST(ns[8], GROUP, for (k = 0; k < GROUP && level >= KERN_ECQ_CONTEXTS;
		    k += KERN_ECQ_LANES, sink += low[0])
			kern->ecq_low(t->q + k, t->code + k, 0, low, bits));
		(void)printf("%-8s", mode[i]);
		for (k = 0; k < 9; k++)
			(void)printf(" %8.2f", ns[k]);
		(void)putchar('\n');
		all[i][0] = ns[0] + ns[1] + ns[2] + ns[3] + ns[5] + ns[7] + ns[8];
		all[i][1] = ns[4] + ns[5] + ns[6];
	}
}

/* Sort a group in all modes in one pass, as the choice of a mode does: no mode
 * waits for another. */
static double
measure_trial(struct ecq *t)
{
	static struct kern_ecq m[KERN_ECQ_MODES];
	static uint16_t code[KERN_ECQ_MODES][GROUP];
	struct kern_ecq_sorted sorted[KERN_ECQ_MODES];
	double ns;
	unsigned i;

	for (i = 0; i < KERN_ECQ_MODES; i++)
		sorted[i] = (struct kern_ecq_sorted){ &m[i], code[i], 0 };
	LEAST(ns, GROUP,
	    for (i = 0; i < KERN_ECQ_MODES; i++)
		kern_ecq_start(&m[i], (enum kern_ecq_mode)i, t->level, 1024, 0,
		    i == KERN_ECQ_ABOVE ? t->above : NULL);
	    kern->ecq_sort(sorted, KERN_ECQ_MODES, t->q, GROUP));
	(void)printf("%-8s %8s %8.2f\n", "at once", "", ns);
	return ns;
}

/* Print the time of all passes of a coding: those of its mode, and for a quarter
 * of the group the sorting and counting in all modes. */
static void
together(const double all[KERN_ECQ_MODES][2], double once)
{
	const double choice = (once + 3 * bound[COUNT]) / 4;
	unsigned i;

	(void)printf("\n%-8s %8s %8s %8s %8s\n", "together", "code", "GB/s",
	    "decode", "GB/s");
	for (i = 0; i < KERN_ECQ_MODES; i++)
		(void)printf("%-8s %8.2f %8.2f %8.2f %8.2f\n", mode[i],
		    all[i][0] + choice, 4 / (all[i][0] + choice), all[i][1],
		    4 / all[i][1]);
}

int
main(void)
{
	struct ecq *t = calloc(1, sizeof(*t));
	double all[KERN_ECQ_MODES][2];
	struct err e = ERR_INIT;
	size_t i;

	gauss = calloc(total, 4);
	y = calloc(total, 4);
	if (t == NULL || gauss == NULL || y == NULL)
		return 4;
	if ((kern = kern_get(&e)) == NULL)
		die(ERR_MSG(&e));
	make(gauss, y);
	measure_bounds();
	(void)printf("%s, ns:", kern->name);
	for (i = 0; i < NBOUNDS; i++)
		(void)printf(" %s %.3f", bound_name[i], bound[i]);
	(void)printf("\n\n%-16s %-7s %6s %6s %7s %7s %6s  %s\n", "gauss", "",
	    "cache", "memory", "ns", "bound", "times", "made of");
	(void)printf("%-16s %-7s %13s   of memory\n", "", "", "GB/s");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		measure_row(&rows[i]);
	for (i = 0; i < 2; i++) {
		(void)printf("\n%-8s quantise     sort    spans      put      get    marks   "
		    "values  centres    plain   ns\n", i == 0 ? "ecq" : "6 bits");
		measure_passes(t, gauss, i == 0 ? 0.002886f : 0.0000645f, i == 0 ? 16 : 27, all);
		together(all, measure_trial(t));
	}
	free(t);
	return 0;
}
