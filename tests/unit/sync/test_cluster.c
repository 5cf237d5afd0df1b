
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/cluster.h"

enum { MOST = 7, CASES = 300 };

/* Return the total wait if device i, with the time t[i], is in set part[i]. */
static int64_t
waited(const int64_t *t, size_t n, const size_t *part)
{
	int64_t top[MOST] = { 0 }, sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (t[i] > top[part[i]])
			top[part[i]] = t[i];
	for (i = 0; i < n; i++)
		sum += top[part[i]] - t[i];
	return sum;
}

/* Return the least wait over all partitions of n devices into exactly k sets in which the first
 * i devices are in sets part[0..i), of which `used' differ; INT64_MAX: there is none. */
static int64_t
brute(const int64_t *t, size_t n, size_t k, size_t *part, size_t i,
    size_t used)
{
	int64_t best = INT64_MAX, v;
	size_t g;

	if (i == n)
		return used == k ? waited(t, n, part) : INT64_MAX;
	for (g = 0; g <= used && g < k; g++) {
		part[i] = g;
		v = brute(t, n, k, part, i + 1, g == used ? used + 1 : used);
		best = v < best ? v : best;
	}
	return best;
}

TEST(test_brute)
{
	int64_t t[MOST], idle, lambda, least, v;
	size_t part[MOST], tier[MOST], n, k, i, chosen;
	int bad = 0, own = 0;
	uint32_t c, r[4];

	for (c = 0; c < CASES; c++) {
		rng_block(5, c, 0, 0, r);
		n = 1 + r[0] % MOST;
		lambda = r[1] % 30;
		for (i = 0; i < n; i++) {
			rng_block(5, c, 1, (uint32_t)i, r);
			t[i] = r[0] % (c % 3 == 0 ? 5 : 100);
		}
		least = INT64_MAX;
		for (k = 1; k <= n; k++) {
			v = brute(t, n, k, part, 0, 0) + (int64_t)k * lambda;
			least = v < least ? v : least;
		}
		(void)cluster_tiers(t, n, 64, lambda, tier, &idle, &chosen,
		    NULL);
		bad += idle + (int64_t)chosen * lambda != least;
		own += waited(t, n, tier) != idle;
	}
	ok(bad == 0, "tiers: as good as all partitions");
	ok(own == 0, "tiers: the reported wait is right");
}

/* Compare with the recurrence without halving, at sizes beyond brute force. */
TEST(test_halves)
{
	enum { N = 400, K = 6 };
	static int64_t t[N], d[K + 1][N + 1], p[N + 1];
	static size_t tier[N];
	size_t i, j, k, chosen;
	int64_t v, idle, lambda, least;
	uint32_t r[4];
	int bad = 0, many = 0;

	for (i = 0; i < N; i++) {
		rng_block(6, 0, 0, (uint32_t)i, r);
		t[i] = (i > 0 ? t[i - 1] : 0) + r[0] % 1000 * (r[1] % 10 == 0);
		p[i + 1] = p[i] + t[i];
	}
	for (k = 1; k <= K; k++)
		for (j = k; j <= N; j++) {
			d[k][j] = INT64_MAX;
			for (i = k - 1; i < (k > 1 ? j : 1); i++) {
				v = d[k - 1][i] + (int64_t)(j - i) * t[j - 1] -
				    (p[j] - p[i]);
				d[k][j] = v < d[k][j] ? v : d[k][j];
			}
		}
	for (lambda = 1; lambda < (int64_t)1 << 40; lambda *= 2) {
		(void)cluster_tiers(t, N, K, lambda, tier, &idle, &chosen, NULL);
		for (least = INT64_MAX, k = 1; k <= K; k++) {
			v = d[k][N] + (int64_t)k * lambda;
			least = v < least ? v : least;
		}
		bad += idle + (int64_t)chosen * lambda != least;
		many |= 1 << chosen;
	}
	ok(bad == 0, "halves: the whole recurrence's optimum");
	ok((many & (many - 1)) != 0, "which occurs with several numbers of tiers");
	t[0] = INT64_MAX / 2;
	ok(cluster_tiers(t, N, 2, 0, tier, &idle, &k, NULL) == -ERR_DATA,
	    "no overflow");
	t[0] = -1;
	ok(cluster_tiers(t, N, 2, 0, tier, &idle, &k, NULL) == -ERR_USAGE,
	    "a negative time is refused");
	ok(cluster_tiers(t, 1, 2, -1, tier, &idle, &k, NULL) == -ERR_USAGE &&
	    cluster_tiers(t, 1, 2, INT64_MAX, tier, &idle, &k, NULL) ==
	    -ERR_USAGE, "invalid prices of a tier");
	ok(cluster_tiers(t, 0, 2, 0, tier, &idle, &k, NULL) == -ERR_USAGE &&
	    cluster_tiers(t, N, 0, 0, tier, &idle, &k, NULL) == -ERR_USAGE,
	    "no devices and no tiers are refused");
}

static int
same(const size_t *a, const size_t *b, size_t n)
{
	return memcmp(a, b, n * sizeof(*a)) == 0;
}

TEST(test_ties)
{
	const int64_t alike[] = { 5, 5, 5, 5 }, steps[] = { 0, 2, 4, 6 };
	size_t tier[4], k = 9;
	int64_t idle;

	ok(cluster_tiers(alike, 4, 4, 0, tier, &idle, &k, NULL) == 0 &&
	    k == 1 && idle == 0, "one tier if more save nothing");
	/* idle time 12 in one tier, 4 in two, 2 in three, 0 in four */
	ok(cluster_tiers(steps, 4, 4, 8, tier, &idle, &k, NULL) == 0 &&
	    k == 1, "one tier if two save only their cost");
	ok(cluster_tiers(steps, 4, 4, 7, tier, &idle, &k, NULL) == 0 &&
	    k == 2, "two tiers if the second one saves more than its cost");
	ok(cluster_tiers(steps, 4, 4, 2, tier, &idle, &k, NULL) == 0 &&
	    k == 2 && idle == 4, "of equally good numbers of tiers the least");
}

TEST(test_groups)
{
	/* points on a line: 0, 1, 10, 12, 30 */
	static const double x[] = { 0, 1, 10, 12, 30 };
	size_t g[5], k, i, j;
	double dist[25];

	for (i = 0; i < 5; i++)
		for (j = 0; j < 5; j++)
			dist[i * 5 + j] = fabs(x[i] - x[j]);
	(void)cluster_linkage(dist, 5, 0.5, g, &k, NULL);
	ok(k == 5, "linkage: no pair is within the distance");
	(void)cluster_linkage(dist, 5, 2, g, &k, NULL);
	ok(k == 3 && same(g, (const size_t[]){ 0, 0, 1, 1, 2 }, 5),
	    "linkage: two pairs and a single device");
	/* the mean of 10, 12, 9, 11 is 10.5 */
	(void)cluster_linkage(dist, 5, 10.4, g, &k, NULL);
	ok(k == 3, "linkage: below the mean distance, two clusters stay apart");
	(void)cluster_linkage(dist, 5, 10.6, g, &k, NULL);
	ok(k == 2 && same(g, (const size_t[]){ 0, 0, 0, 0, 1 }, 5),
	    "linkage: above it they join");
	(void)cluster_linkage(dist, 5, 1e9, g, &k, NULL);
	ok(k == 1, "linkage: one cluster of all");
	ok(cluster_linkage(dist, 0, 1, g, &k, NULL) == -ERR_USAGE,
	    "no devices are refused");
}

/* Group by average linkage, by its definition; return the number of groups. */
static size_t
slow_linkage(const double *dist, size_t n, double theta, size_t *g)
{
	size_t i, j, a, b, ba = 0, bb = 0, count, groups = n;
	double sum, least;

	for (i = 0; i < n; i++)
		g[i] = i;
	for (;;) {
		least = INFINITY;
		for (a = 0; a < n; a++)
			for (b = a + 1; b < n; b++) {
				sum = 0;
				count = 0;
				for (i = 0; i < n; i++)
					for (j = 0; j < n; j++)
						if (g[i] == a && g[j] == b) {
							sum += dist[i * n + j];
							count++;
						}
				if (count > 0 && sum / (double)count < least) {
					least = sum / (double)count;
					ba = a;
					bb = b;
				}
			}
		if (!(least <= theta))
			return groups;
		groups--;
		for (i = 0; i < n; i++)
			if (g[i] == bb)
				g[i] = ba;
	}
}

TEST(test_linkage)
{
	enum { N = 14, M = 3 };
	double x[N * M], dist[N * N];
	size_t g[N], slow[N], k, i, j, least = N, most = 0;
	int bad = 0, sound = 0;
	uint32_t c, r[4];

	for (c = 0; c < 100; c++) {
		for (i = 0; i < N * M; i++) {
			rng_block(9, c, 0, (uint32_t)i, r);
			x[i] = rng_unit(r[0]) - 0.5;
		}
		memcpy(x + M, x, M * sizeof(*x));
		cluster_cosine(x, N, M, dist);
		(void)cluster_linkage(dist, N, 0.7, g, &k, NULL);
		bad += slow_linkage(dist, N, 0.7, slow) != k;
		least = k < least ? k : least;
		most = k > most ? k : most;
		for (i = 0; i < N; i++)
			for (j = 0; j < N; j++)
				bad += (g[i] == g[j]) != (slow[i] == slow[j]);
		for (i = 0; i < N * N; i++)
			sound += !(dist[i] >= 0 && dist[i] <= 2 && dist[1] == 0);
	}
	ok(bad == 0 && least > 1 && most > least && most < N,
	    "linkage: equal to its definition, with %zu to %zu groups", least, most);
	ok(sound == 0, "cosine: from 0, for equal rows, to 2");
	memset(x, 0, sizeof(x));
	x[0] = 1;
	cluster_cosine(x, 2, 1, dist);
	ok(dist[1] == 1 && dist[0] == 0, "cosine: a zero row");
}
