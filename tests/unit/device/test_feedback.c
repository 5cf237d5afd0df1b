/*
 * Every variant of error feedback over 30 steps, with exact and lossy codecs and groups
 * not sent: residual and decoded values add up in each step, element by element, and both
 * sides hold the same history.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/rng.h"
#include "device/feedback.h"

#include "../inside.h"
#include "../tap.h"
#include "../model.h"

enum { N = 200, G = 64, STEPS = 30 };

static struct schema schema = SCHEMA_INIT;
static char dir[16], cache_dir[16];	/* a new one of each for each variant */

/* One step, as a reader of the stream or the test's own sums see it. */
struct balance {
	float g[N];		/* gradient */
	float e0[N], e1[N];	/* residual before, after */
	float s0[N], s1[N];	/* momentum or history before, after */
	float r[N];		/* reconstructed by the receiver */
};

/* Make a stream of one dense shard, in memory. */
static struct reader *
gradient(uint64_t step, float *g, struct io **mem, struct err *e)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct schema_span span;
	struct writer *w;
	struct reader *r;
	struct shard s;
	struct io *in;
	uint32_t u[4], k;
	size_t i, n;

	for (i = 0; i < N; i++) {
		rng_block(1, step, 0, (uint32_t)i, u);
		g[i] = ldexpf(rng_unit(u[0]) - 0.5f, -(int)(u[1] % 12));
	}
	shard_init(&s);
	(void)shard_set_device(&s, "edge1", e);
	s.step = step;
	(void)io_create_mem(mem, e);
	(void)writer_open(&w, *mem, &o, e);
	(void)writer_shard(w, &s, &schema, e);
	for (k = 0; k < schema.ngroups; k++) {
		schema_span(&schema, k, &span);
		(void)writer_values(w, k, g + span.offset, span.n, e);
	}
	(void)writer_send(w, NULL, e);
	(void)writer_finish(w, e);
	shard_release(&s);
	(void)io_mem(*mem, &n);
	{
		static unsigned char copy[1 << 16];

		memcpy(copy, io_mem(*mem, &n), n);
		(void)io_open_mem(&in, copy, n, e);
	}
	writer_free(w);
	(void)reader_open(&r, in, NULL, e);
	while (reader_next(r, e) != READER_SHARD)
		continue;
	return r;
}

/* Load a state file, zeros if it is absent. */
static int
load(const char *where, const char *name, enum shard_kind kind, float *x,
    char stamp[DENSE_STAMP], struct err *e)
{
	struct statedir s = STATE_INIT;
	struct schema_span span;
	struct dense d;
	const float *v;
	uint32_t g;
	int r;

	memset(x, 0, N * sizeof(*x));
	if ((r = statedir_open(&s, where, e)) < 0 ||
	    (r = dense_open(&d, &s, name, kind, e)) < 0)
		return r;
	for (g = 0; g < schema.ngroups && r == 0; g++) {
		schema_span(&schema, g, &span);
		if ((r = dense_group(&d, g, &v, e)) == 0 && v != NULL)
			memcpy(x + span.offset, v, span.n * sizeof(*v));
	}
	if (stamp != NULL)
		memcpy(stamp, d.stamp, DENSE_STAMP);
	dense_close(&d);
	statedir_close(&s);
	return r;
}

/* One step of the sender; group k is left out if (step + k) % 3 == 0. */
static int
sender(struct feedback *f, struct reader *in, const float *g,
    const struct codec_plan *pl, struct io **wire, struct err *e)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct feedback_code c;
	struct schema_span span;
	struct codec_ctx ctx;
	struct buf body = BUF_INIT;
	struct writer *w;
	float a[G], u[G], dec[G];
	uint32_t k;
	int r;

	if ((r = feedback_begin(f, reader_shard(in), reader_schema(in), e)) != 0)
		return r < 0 ? r : -99;
	for (k = 0; k < schema.ngroups; k++) {
		schema_span(&schema, k, &span);
		if ((r = feedback_target(f, k, g + span.offset, span.n, a,
		    u, e)) != 0)
			break;
		values_ctx(&schema, reader_shard(in), k, &ctx);
		body.n = 0;
		c.codec = pl->codec;
		c.body = &body;
		c.dec = dec;
		if ((r = codec_encode(pl, &ctx, a, span.n, &body, &c.param,
		    e)) < 0 || (r = codec_decode(pl->codec, c.param, &ctx,
		    body.p, body.n, dec, span.n, e)) < 0 ||
		    (r = feedback_settle(f, k, a, u, span.n, NULL,
		    (reader_shard(in)->step + k) % 3 == 0 ? NULL : &c, e)) < 0)
			break;
	}
	buf_release(&body);
	if (r != 0)
		return r;
	(void)io_create_mem(wire, e);
	(void)writer_open(&w, *wire, &o, e);
	if ((r = feedback_commit(f, reader_shard(in)->step, w, e)) == 0)
		r = writer_finish(w, e);
	{
		static unsigned char copy[1 << 16];
		size_t n;
		const unsigned char *p = io_mem(*wire, &n);

		memcpy(copy, p, n);
		writer_free(w);
		(void)io_open_mem(wire, copy, n, e);
	}
	return r;
}

static int
receiver(struct feedback_cache *c, struct io *wire, float *out, struct err *e)
{
	struct values v = VALUES_INIT;
	struct reader *r;
	size_t at = 0;
	int k;

	v.differences = 1;
	if ((k = reader_open(&r, wire, NULL, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0 && k != READER_SHARD)
		continue;
	if (k > 0 && (k = feedback_cache_begin(c, reader_shard(r), reader_schema(r), NULL, e)) >= 0 &&
	    (k = values_begin(&v, r, e)) == 0) {
		while ((k = values_next(&v, e)) > 0) {
			memcpy(out + at, v.x, v.n * sizeof(*out));
			if ((k = feedback_cache_group(c, v.group, v.sent,
			    out + at, v.n, e)) < 0)
				break;
			at += v.n;
		}
		if (k == 0)
			k = feedback_cache_commit(c, IO_SYNC_NONE, e);
	}
	values_release(&v);
	reader_free(r);
	return k;
}

/* Return the largest breach of the variant's equation, relative to the larger operand of
 * the subtraction; one rounding is 2^-24 of it. */
static double
breach(const struct feedback_opts *o, const struct balance *b)
{
	double worst = 0, want, got, size, u;
	size_t i;

	for (i = 0; i < N; i++) {
		u = b->g[i];
		if (o->kind == COMPENSATE_MOMENTUM)
			u = (float)((float)u + (float)((float)o->momentum *
			    b->s0[i]));
		want = o->kind == COMPENSATE_EF21 ? (double)b->s1[i] :
		    (double)((float)u + (float)((float)o->gamma * b->e0[i]));
		got = o->kind == COMPENSATE_EF21 ? (double)b->r[i] :
		    (double)b->r[i] + b->e1[i];
		size = fmax(fabs(want), fabs((double)b->r[i]));
		if (want != got && fabs(want - got) / size > worst)
			worst = fabs(want - got) / size;
	}
	return worst;
}

static void
try_variant(const struct feedback_opts *o, const char *codec, double allow)
{
	char stamp[DENSE_STAMP], stamp2[DENSE_STAMP], name[64];
	struct feedback_cache *c = NULL;
	struct feedback *f = NULL;
	struct err e = ERR_INIT;
	struct codec_plan pl;
	struct balance b;
	double worst = 0;
	uint64_t step;
	static int variants;
	int r, same = 1, side = o->kind != COMPENSATE_EF;

	memset(&b, 0, sizeof(b));
	(void)snprintf(dir, sizeof(dir), "S%d", ++variants);
	(void)snprintf(cache_dir, sizeof(cache_dir), "C%d", variants);
	r = codec_parse(codec, &pl, &e);
	if (r == 0 && (r = feedback_open(&f, dir, o, &e)) == 0)
		r = feedback_cache_open(&c, cache_dir, 1, &e);
	for (step = 1; step <= STEPS && r == 0; step++) {
		struct io *mem, *wire = NULL;
		struct reader *in = gradient(step, b.g, &mem, &e);

		memcpy(b.e0, b.e1, sizeof(b.e0));
		memcpy(b.s0, b.s1, sizeof(b.s0));
		r = sender(f, in, b.g, &pl, &wire, &e);
		reader_free(in);
		if (r != 0 || (r = receiver(c, wire, b.r, &e)) != 0 ||
		    (r = load(dir, "residual", SHARD_RESIDUAL, b.e1, NULL,
		    &e)) != 0)
			break;
		(void)snprintf(name, sizeof(name), DENSE_HISTORY,
		    (unsigned long long)step);
		if (side && (r = load(dir, name, SHARD_HISTORY, b.s1, stamp,
		    &e)) == 0 && o->kind != COMPENSATE_MOMENTUM) {
			r = load(cache_dir, name, SHARD_HISTORY, b.r,
			    stamp2, &e);
			same &= strcmp(stamp, stamp2) == 0;
		}
		if (breach(o, &b) > worst)
			worst = breach(o, &b);
	}
	ok(r == 0 && worst <= allow, "%s with %s: r + e' = a within %g (%s)",
	    feedback_names[o->kind], codec, worst, ERR_MSG(&e));
	if (side && o->kind != COMPENSATE_MOMENTUM)
		ok(same, "%s with %s: both sides hold the same history",
		    feedback_names[o->kind], codec);
	feedback_free(f);
	feedback_cache_free(c);
}

int
main(void)
{
	static const char *const exact[] = { "f32", "f16", "bf16", NULL };
	static const char *const lossy[] = { "q8", "q4", "sign", "topk:0.1",
	    NULL };
	struct feedback_opts o = { .kind = COMPENSATE_EF, .gamma = 1,
	    .momentum = 0.9, .decay = 0.8, .sync = IO_SYNC_NONE };
	int i, k;

	schema = model_of(N, 0, G);
	for (k = 0; k < 4; k++) {
		o.kind = (enum compensate_kind)k;
		for (i = 0; exact[i] != NULL; i++)
			try_variant(&o, exact[i], o.kind == COMPENSATE_CACHE ?
			    0x1p-23 : 0);
		for (i = 0; lossy[i] != NULL; i++)
			try_variant(&o, lossy[i], 0x1p-23);
	}
	o.kind = COMPENSATE_EF;
	o.gamma = 0.95;
	try_variant(&o, "topk:0.1", 0x1p-23);
	schema_release(&schema);
	return done_testing();
}
