/*
 * lowrank: matrices of low rank are restored; the error of others is nearly the least.
 */
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

/* Set x[n] to a sum of `rank' outer products, each `fall' times the one before, in rows of
 * cols values; x[0] is in column `first'. */
static void
product(size_t n, size_t cols, size_t first, unsigned rank, double fall)
{
	size_t i, row, col;
	unsigned r;
	double v, f;

	for (i = 0; i < n; i++) {
		row = (first + i) / cols;
		col = (first + i) % cols;
		for (v = 0, f = 1, r = 0; r < rank; r++, f *= fall)
			v += f * normal(20 + r, 0, 0, (uint32_t)row) *
			    normal(60 + r, 0, 0, (uint32_t)col);
		t.x[i] = (float)(1e-3 * v);
	}
}

static void
exact(const char *spec, size_t n, uint32_t cols, uint64_t offset,
    unsigned rank, double most, size_t want)
{
	size_t len;

	t.ctx.cols = cols;
	t.ctx.offset = offset;
	product(n, cols, (size_t)(offset % cols), rank, 1);
	len = trip(&t, spec, n);
	ok(trip_nmse(&t, n) < most && len == want, "%s of rank %u in %zu of "
	    "%u columns from %lu: NMSE %.2g, %zu bytes", spec, rank, n, cols,
	    (unsigned long)offset, trip_nmse(&t, n), len);
}

/* On a falling spectrum with noise, compare the error with that of forty power iterations in
 * f64, to which PowerSGD's warm start converges. */
TEST(test_near_best)
{
	enum { ROWS = 256, COLS = 256, RANK = 4 };
	static double p[RANK][ROWS], q[RANK][COLS], d;
	double best = 0, all = 0;
	size_t i, j, r, s, k;

	t.ctx.cols = COLS;
	t.ctx.offset = 0;
	product(ROWS * COLS, COLS, 0, 12, 0.8);
	for (i = 0; i < ROWS * COLS; i++) {
		t.x[i] += (float)(5e-4 * normal(5, 0, 0, (uint32_t)i));
		all += (double)t.x[i] * (double)t.x[i];
	}
	for (r = 0; r < RANK; r++)
		for (j = 0; j < COLS; j++)
			q[r][j] = normal(6, 0, 0, (uint32_t)(r * COLS + j));
	for (k = 0; k < 40; k++) {
		for (r = 0; r < RANK; r++) {
			for (i = 0; i < ROWS; i++)
				for (p[r][i] = 0, j = 0; j < COLS; j++)
					p[r][i] += q[r][j] *
					    (double)t.x[i * COLS + j];
			for (s = 0; s <= r; s++) {
				for (d = 0, i = 0; i < ROWS; i++)
					d += p[r][i] * p[s][i];
				for (i = 0; i < ROWS; i++)
					p[r][i] = s == r ?
					    p[r][i] / sqrt(d) :
					    p[r][i] - d * p[s][i];
			}
		}
		for (r = 0, best = 0; r < RANK; r++)
			for (j = 0; j < COLS; j++) {
				for (q[r][j] = 0, i = 0; i < ROWS; i++)
					q[r][j] += p[r][i] *
					    (double)t.x[i * COLS + j];
				best += q[r][j] * q[r][j];
			}
	}
	best = 1 - best / all;
	(void)trip(&t, "lowrank:4", ROWS * COLS);
	ok(trip_nmse(&t, ROWS * COLS) < best * 1.03,
	    "two rounds: NMSE %.4f, the best %.4f",
	    trip_nmse(&t, ROWS * COLS), best);
}

/* Set t.x[n], rows of cols values, to the matrix of step k: noise plus twelve outer products,
 * whose right factors turn by 0.05 radians per step. */
static void
turned(size_t n, size_t cols, unsigned k)
{
	double angle = 0.05 * k, u, w;
	size_t i, row, col;
	unsigned r;

	for (i = 0; i < n; i++) {
		row = i / cols;
		col = i % cols;
		t.x[i] = (float)(0.5 * normal(200 + k, 0, 0, (uint32_t)i));
		for (r = 0; r < 12; r++) {
			u = normal(20 + r, 0, 0, (uint32_t)row);
			w = cos(angle) * normal(60 + r, 0, 0, (uint32_t)col) +
			    sin(angle) * normal(90 + r, 0, 0, (uint32_t)col);
			t.x[i] += (float)(pow(0.9, r) * u * w);
		}
	}
}

/* Code t.x into *now after the body `was', or NULL. Return the NMSE, or -1 on an error. */
static double
after(const char *spec, size_t n, const struct buf *was, struct buf *now)
{
	struct codec_last last = { 0 };
	struct codec_plan p;
	struct err e = ERR_INIT;

	if (codec_parse(spec, &p, &e) < 0)
		return -1;
	if (was != NULL) {
		last.codec = CODEC_LOWRANK;
		last.param = p.param;
		last.body = was->p;
		last.len = was->n;
	}
	now->n = 0;
	if (codec_encode_after(&p, &t.ctx, was != NULL ? &last : NULL, t.x, n,
	    NULL, now, &t.param, NULL, &e) < 0 || codec_decode(p.codec, t.param, &t.ctx,
	    now->p, now->n, t.y, n, &e) < 0)
		return -1;
	return trip_nmse(&t, n);
}

/* A start from the previous body (PowerSGD's warm start) has a smaller error than a cold start
 * and gives the same bytes again; a start from an invalid body is a cold one. */
static void
test_warm(const char *spec)
{
	enum { COLS = 128, M = 128 * COLS, STEPS = 10 };
	struct buf was = BUF_INIT, now = BUF_INIT, again = BUF_INIT, s;
	double cold = 0, warm = 0;
	unsigned k;
	int same = 1, worse = 0;

	t.ctx.cols = COLS;
	t.ctx.offset = 0;
	for (k = 0; k < STEPS; k++) {
		double c, w;

		turned(M, COLS, k);
		c = after(spec, M, NULL, &now);
		w = after(spec, M, k > 0 ? &was : NULL, &now);
		(void)after(spec, M, k > 0 ? &was : NULL, &again);
		same &= now.n == again.n && memcmp(now.p, again.p, now.n) == 0;
		worse += k > 0 && w >= c;
		cold += k > 0 ? c : 0;
		warm += k > 0 ? w : 0;
		s = was;
		was = now;
		now = s;
	}
	ok(warm < 0.995 * cold && worse == 0, "%s, %d steps of a matrix that "
	    "turns: NMSE %.4f warm, %.4f cold", spec, STEPS - 1,
	    warm / (STEPS - 1), cold / (STEPS - 1));
	ok(same, "the same bytes after the same body");
	(void)after(spec, M, NULL, &now);
	was.n--;
	(void)after(spec, M, &was, &again);
	same = now.n == again.n && memcmp(now.p, again.p, now.n) == 0;
	was.n++;
	memset(was.p, 0xff, was.n);
	(void)after(spec, M, &was, &again);
	ok(same && now.n == again.n && memcmp(now.p, again.p, now.n) == 0,
	    "an invalid body is not used as a warm start");
	memset(was.p, 0, was.n);
	ok(after(spec, M, &was, &again) < 1.01 * cold / (STEPS - 1),
	    "nor is a body of zeros");
	buf_release(&was);
	buf_release(&now);
	buf_release(&again);
}

TEST(test_edges)
{
	size_t i;

	t.ctx.cols = 1;
	t.ctx.offset = 0;
	t.x[0] = -5;
	ok(trip(&t, "lowrank:4", 1) == 6 && fabsf(t.y[0] + 5) < 0.05f,
	    "a single value");
	memset(t.x, 0, sizeof(t.x));
	ok(trip(&t, "lowrank:4", 1000) == 0 && t.y[5] == 0, "zeros");
	for (i = 0; i < 10000; i++)
		t.x[i] = 3.4e38f;
	ok(trip(&t, "lowrank:2", 10000) == 2 + 2 * 2 * 200 && t.y[0] > 3e38f &&
	    isfinite(t.y[0]), "huge values, in a square matrix");
	for (i = 0; i < 10000; i++)
		t.x[i] = 0x1p-140f;
	(void)trip(&t, "lowrank:2", 10000);
	ok(trip_nmse(&t, 10000) < 0.01, "subnormal values");
}

TEST(test_exact)
{
	exact("lowrank:1", 65536, 256, 0, 1, 2e-5, 2 + 2 * 512);
	exact("lowrank:3", 65536, 256, 65536, 3, 2e-5, 2 + 6 * 512);
	/* with its incomplete first row the matrix has rank 3 */
	exact("lowrank:2", 5000, 300, 1000, 2, 1e-2, 2 + 4 * (300 + 17));
	exact("lowrank:5", 1000, 3, 7, 3, 2e-5, 2 + 6 * (334 + 3));
	test_warm("lowrank:4");
}
