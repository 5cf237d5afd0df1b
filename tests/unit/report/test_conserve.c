/*
 * Conservation over 100 steps of error feedback, for every codec: decoded values plus the
 * new residual equal the gradient plus the old residual, bit for bit if the code is
 * exact, else within one rounding; over all steps within 2^-23 * steps * max of the f64
 * sums.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/rng.h"
#include "device/feedback.h"

#include "../tap.h"
#include "../model.h"

enum { N = 1000, G = 256, STEPS = 100 };

static struct schema schema = SCHEMA_INIT;
static char dir[64];

struct balance {
	float g[N], e0[N], a[N], dec[N], e1[N];
	double sum_g[N], sum_dec[N];
	double max;			/* of |a|, all steps */
	uint64_t lost;			/* values that broke the rule */
};

/* Fill with values of twelve octaves, some zeros, and a group that is sometimes all
 * zero. */
static void
gradient(uint64_t step, float *g)
{
	uint32_t u[4];
	size_t i;

	for (i = 0; i < N; i++) {
		rng_block(3, step, 0, (uint32_t)i, u);
		g[i] = ldexpf(rng_unit(u[0]) - 0.5f, -(int)(u[1] % 12));
		if (u[2] % 8 == 0 || (i / G == step % 7))
			g[i] = 0;
	}
}

/* Make a reader at this step's shard; its values are not used. */
static int
announce(uint64_t step, unsigned char *copy, size_t cap, struct reader **r,
    struct err *e)
{
	struct writer_opts o = { "test", NULL, 0 };
	const unsigned char *p;
	struct writer *w;
	struct io *io, *in;
	struct shard s;
	size_t n;
	int k;

	shard_init(&s);
	s.step = step;
	if ((k = shard_set_device(&s, "edge1", e)) < 0 ||
	    (k = io_create_mem(&io, e)) < 0 ||
	    (k = writer_open(&w, io, &o, e)) < 0)
		return k;
	if ((k = writer_shard(w, &s, &schema, e)) == 0 &&
	    (k = writer_send(w, NULL, e)) == 0)
		k = writer_finish(w, e);
	p = io_mem(io, &n);
	if (k == 0 && n <= cap)
		memcpy(copy, p, n);
	writer_free(w);
	shard_release(&s);
	if (k < 0 || (k = io_open_mem(&in, copy, n, e)) < 0 ||
	    (k = reader_open(r, in, NULL, e)) < 0)
		return k;
	while ((k = reader_next(*r, e)) > 0 && k != READER_SHARD)
		continue;
	return k < 0 ? k : 0;
}

static int
group(struct feedback *f, struct reader *in, const struct codec_plan *pl,
    uint32_t k, struct balance *b, struct err *e)
{
	struct buf body = BUF_INIT;
	struct feedback_code c;
	struct schema_span span;
	struct codec_ctx ctx;
	float a[G], u[G];
	size_t at;
	int r;

	schema_span(&schema, k, &span);
	at = span.offset;
	memset(b->dec + at, 0, span.n * sizeof(float));
	r = feedback_target(f, k, b->g + at, span.n, b->a + at, u,
	    e);
	if (r != 0)
		return r;
	memcpy(a, b->a + at, span.n * sizeof(float));
	values_ctx(&schema, reader_shard(in), k, &ctx);
	if ((r = codec_encode(pl, &ctx, a, span.n, &body, &c.param, e)) == 0)
		r = codec_decode(pl->codec, c.param, &ctx, body.p, body.n,
		    b->dec + at, span.n, e);
	c.codec = pl->codec;
	c.body = &body;
	c.dec = b->dec + at;
	if (r == 0)
		r = feedback_settle(f, k, a, u, span.n, NULL, &c, e);
	buf_release(&body);
	return r;
}

/* Load the new residual from its file. */
static int
load(float *x, struct err *e)
{
	struct statedir s = STATE_INIT;
	struct schema_span span;
	struct residual q;
	const float *v;
	uint32_t k;
	int r;

	memset(x, 0, N * sizeof(*x));
	if ((r = statedir_open(&s, dir, e)) < 0)
		return r;
	r = residual_open(&q, &s, e);
	for (k = 0; k < schema.ngroups && r == 0; k++) {
		schema_span(&schema, k, &span);
		r = dense_group(&q.d, k, &v, e);
		if (r == 0 && v != NULL)
			memcpy(x + span.offset, v, span.n * sizeof(*v));
	}
	residual_close(&q);
	statedir_close(&s);
	return r;
}

/* Check the balance of one step. The sum of two f32 is exact in long double. */
static void
check(struct balance *b, int exact)
{
	size_t i;

	for (i = 0; i < N; i++) {
		long double left = (long double)b->a[i] - b->dec[i];

		if (b->a[i] != b->g[i] + b->e0[i] ||
		    b->e1[i] != (float)left || (exact && b->e1[i] != left))
			b->lost++;
		b->sum_g[i] += (double)b->g[i];
		b->sum_dec[i] += (double)b->dec[i];
		b->max = fmax(b->max, fabs((double)b->a[i]));
	}
	memcpy(b->e0, b->e1, sizeof(b->e0));
}

static int
step(struct feedback *f, const struct codec_plan *pl, uint64_t t, int exact,
    struct balance *b, struct err *e)
{
	static unsigned char copy[8192];
	struct writer_opts o = { "test", NULL, 0 };
	struct reader *in = NULL;
	struct writer *w = NULL;
	struct io *wire;
	uint32_t k;
	int r;

	gradient(t, b->g);
	if ((r = announce(t, copy, sizeof(copy), &in, e)) == 0)
		r = feedback_begin(f, reader_shard(in), reader_schema(in), e);
	for (k = 0; k < schema.ngroups && r == 0; k++)
		r = group(f, in, pl, k, b, e);
	if (r == 0 && (r = io_create_mem(&wire, e)) == 0 &&
	    (r = writer_open(&w, wire, &o, e)) == 0)
		r = feedback_commit(f, t, w, e);
	writer_free(w);
	reader_free(in);
	if (r == 0 && (r = load(b->e1, e)) == 0)
		check(b, exact);
	return r;
}

static void
clean(void)
{
	static const char *const names[] = { "residual", "lock", "" };
	char path[128];
	size_t i;

	for (i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)(i < 2 ? unlink(path) : rmdir(path));
	}
}

static void
run(const char *codec, int exact)
{
	struct feedback_opts o = { .gamma = 1, .sync = IO_SYNC_NONE };
	struct balance *b = calloc(1, sizeof(*b));
	struct feedback *f = NULL;
	struct codec_plan pl;
	struct err e = ERR_INIT;
	double worst = 0, allow;
	uint64_t t;
	size_t i;
	int r;

	(void)snprintf(dir, sizeof(dir), "/tmp/ace-conserve.%ld",
	    (long)getpid());
	if ((r = codec_parse(codec, &pl, &e)) == 0)
		r = feedback_open(&f, dir, &o, &e);
	for (t = 1; t <= STEPS && r == 0; t++)
		r = step(f, &pl, t, exact, b, &e);
	ok(r == 0 && b->lost == 0, "%s: dec + e' = e + g, %s, %d steps (%s)",
	    codec, exact ? "bit for bit" : "within one rounding", STEPS, ERR_MSG(&e));
	for (i = 0; i < N; i++)
		worst = fmax(worst, fabs(b->sum_g[i] - b->sum_dec[i] -
		    (double)b->e0[i]));
	allow = ldexp(b->max, -23) * (double)STEPS;
	ok(r == 0 && b->max > 0 && worst <= allow,
	    "%s: the sums of all steps within %.3g (%.3g allowed)", codec,
	    worst, allow);
	feedback_free(f);
	clean();
	free(b);
}

int
main(void)
{
	static const char *const exact[] = {
		"f32", "f16", "bf16", "lossless", "lossless:bf16"
	};
	static const char *const lossy[] = {
		"q8", "q4", "sign", "topk:0.01", "topk:0.3", "qsgd:31",
		"qsgd:127", "ecq:0.01", "ecq:1", "tcq:0.5", "topk:0.3:q4", "chunk:8/64",
		"topk:0.2:q2", "tern:mse", "lowrank:4"
	};
	size_t i;

	schema = model_of(N / 25, 25, G);
	for (i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		run(exact[i], 1);
	for (i = 0; i < sizeof(lossy) / sizeof(lossy[0]); i++)
		run(lossy[i], 0);
	schema_release(&schema);
	return done_testing();
}
