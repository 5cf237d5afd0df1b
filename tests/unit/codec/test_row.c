/*
 * A private codec, added as examples/README.md says. Its row is all that the rest of the
 * program needs to name, code, turn and estimate with it.
 */
#include "../../normal.h"
#include "../test.h"
#include "base/err.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"

#include "measure.h"

/*
 * GRID: the nearest multiple of a step, one byte per value, clipped at 127 steps.
 * body := f32 step i8[n]
 */
enum { GRID = CODEC_PRIVATE + 7, TOP = 127 };

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	int r = arg_number(arg, 0, 1e30f, &plan->arg, e);

	return r == 0 && !(plan->arg > 0) ?
	    err_set(e, ERR_USAGE, "expected a step above 0") : r;
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	arg_print(plan->arg, buf);
}

static void
turn(struct codec_plan *plan, double f)
{
	plan->arg = (float)((double)plan->arg * f);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	(void)plan;
	return 4 + n;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	float step = in->plan->arg;
	double q;
	size_t i;

	(void)param;
	(void)e;
	bytes_put_f32(out->p + out->n, &step, 1);
	out->n += 4;
	for (i = 0; i < in->n; i++) {
		q = rint((double)in->x[i] / (double)step);
		q = fmin(fmax(q, -TOP), TOP);
		out->p[out->n++] = (unsigned char)(int)q;
	}
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	float step = bytes_f32(bytes_next32(b));
	const unsigned char *p = bytes_take(b, o->n);
	size_t i;

	if (b->bad || !(step > 0))
		return codec_corrupt("grid", "body too short, or no step", e);
	for (i = 0; i < o->n; i++)
		o->x[i] = (float)(int8_t)p[i] * step;
	return 0;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error)
{
	double step = (double)plan->arg, cut;
	unsigned i;

	(void)rate;		/* fixed size: known from the table */
	*error = 0;
	for (i = 0; i < m->points; i++) {
		cut = fmax(m->x[i] - (double)TOP * step, 0);
		*error += m->w[i] * (cut * cut + (m->x[i] < step / 2 ?
		    m->x[i] * m->x[i] : step * step / 12));
	}
}

static const struct codec_impl grid = {
	.name = "grid", .parse = parse, .format = format, .turn = turn,
	.bound = bound, .encode = encode, .decode = decode, .dense = 1,
	.fixed = 1, .estimate = estimated
};

/* ---- */

enum { N = 4096 };

static const struct codec_ctx ctx = { 1, 2, 3, 64, 0 };
static float x[N];

static void
fill(uint32_t seed, double sigma)
{
	uint32_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(sigma * normal(seed, 0, 0, i));
}

TEST(test_register)
{
	static struct codec_impl other[9];
	static char name[9][4];
	struct err e = ERR_INIT;
	struct codec_plan p;
	int i, n;

	ok(codec_parse("grid:0.1", &p, &e) == -ERR_USAGE &&
	    codec_name(GRID) == NULL &&
	    codec_decode(GRID, 0, &ctx, NULL, 0, x, 0, NULL) == -ERR_DATA,
	    "before it is there it is unknown");
	ok(codec_register(&grid, CODEC_PRIVATE - 1, NULL) == -ERR_USAGE &&
	    codec_register(&grid, CODEC_MAX, NULL) == -ERR_USAGE,
	    "a number outside the private range is refused");
	ok(codec_register(&grid, GRID, NULL) == 0, "a valid codec is added");
	other[0] = grid;
	other[0].name = "other";
	ok(codec_register(&grid, GRID + 1, NULL) == -ERR_USAGE &&
	    codec_register(&other[0], GRID, NULL) == -ERR_USAGE,
	    "neither name nor number can be added twice");
	other[0].name = "chunk";
	ok(codec_register(&other[0], GRID + 1, NULL) == -ERR_USAGE,
	    "nor the second name of another codec");
	other[0].name = "none";
	ok(codec_register(&other[0], GRID + 1, NULL) == -ERR_USAGE,
	    "nor an empty name");
	err_clear(&e);
	for (n = i = 0; i < 9; i++) {
		other[i] = grid;
		other[i].name = name[i];
		name[i][0] = 'x';
		name[i][1] = (char)('a' + i);
		n += codec_register(&other[i], i == 0 ? CODEC_PRIVATE :
		    GRID + 1 + (uint32_t)i, &e) == 0;
	}
	ok(n == 7 && codec_parse("xg:2", &p, NULL) == 0 &&
	    p.codec == GRID + 7 && codec_parse("xh:2", &p, NULL) < 0,
	    "there are eight of them: %s", ERR_MSG(&e));
}

TEST(test_name)
{
	struct codec_plan p;
	struct err e = ERR_INIT;
	char s[CODEC_TEXT];

	ok(codec_parse("grid:0.25", &p, NULL) == 0 && p.codec == GRID &&
	    strcmp(codec_format(&p, s), "grid:0.25") == 0 &&
	    strcmp(codec_name(GRID), "grid") == 0, "it has a name: %s", s);
	ok(codec_parse("grid:0", &p, &e) == -ERR_USAGE,
	    "and an argument: %s", ERR_MSG(&e));
}

TEST(test_trip)
{
	struct codec_plan p;
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	static float y[N];
	double worst = 0;
	uint8_t param = 9;
	size_t i;

	fill(1, 1);
	(void)codec_parse("grid:0.0625", &p, NULL);
	ok(codec_encode(&p, &ctx, x, N, &b, &param, &e) == 0 && param == 0 &&
	    b.n == codec_size(&p, &ctx, N) && codec_decode(GRID, param, &ctx,
	    b.p, b.n, y, N, &e) == 0, "values are coded and decoded");
	for (i = 0; i < N; i++)		/* not fmax: see farthest in test_limits */
		if (fabs((double)x[i] - (double)y[i]) > worst)
			worst = fabs((double)x[i] - (double)y[i]);
	ok(worst <= 0.03125, "within half a step: %g", worst);
	ok(codec_decode(GRID, 0, &ctx, b.p, b.n - 1, y, N, NULL) == -ERR_DATA &&
	    codec_decode(GRID, 0, &ctx, b.p, b.n, y, N - 1, NULL) ==
	    -ERR_DATA && codec_decode(GRID, 1, &ctx, b.p, b.n, y, N, &e) ==
	    -ERR_DATA, "a body that is too short or too long, a parameter "
	    "it does not have: %s", ERR_MSG(&e));
	b.p[3] = 0x7f, b.p[2] = 0x7f;		/* a step of 3.4e38 */
	ok(codec_decode(GRID, 0, &ctx, b.p, b.n, y, N, NULL) == -ERR_DATA,
	    "a body with a value that is not finite is refused");
	buf_release(&b);
}

TEST(test_estimated)
{
	struct measure c = MEASURE_INIT;
	struct codec_plan p, q;
	struct stat_group st;
	static struct estimate m;
	double error, was;
	int64_t rate;
	size_t len;

	(void)codec_parse("grid:0.5", &p, NULL);
	ok(codec_dense(&p) && !codec_sparse(&p) && codec_fixed(&p) &&
	    codec_param(&p) == 0 && !codec_after(&p) && codec_rate(&p),
	    "its properties");
	q = codec_turn(&p, 2);
	ok(q.codec == GRID && q.arg == 1, "its rate can be changed");
	fill(1, 1);
	(void)stat_group_of(x, N, &st);
	estimate_init(&m, &st, &ctx);
	estimate_coding(&m, &p, &rate, &error);
	(void)measure_group(&c, &p, &ctx, x, N, &len, &was, NULL);
	ok(rate == (int64_t)len && fabs(error - was) < 0.05 * was,
	    "estimated: %ld bytes, error %.4g; are %zu, %.4g", (long)rate, error,
	    len, was);
	measure_release(&c);
}
