/*
 * Error feedback's targets with gamma other than 1: rejected shards return undiminished,
 * only the residual decays.
 */
#include "base/err.h"
#include "sync/compensate.h"

#include "../test.h"

enum { N = 5 };

TEST(target)
{
	static const float g[N] = { 1, -2, 3, 0, 8 }, e[N] = { 4, 4, -8, 2, 0 };
	static const float back1[N] = { 32, 0, 1, -64, 128 };
	static const float back2[N] = { 0, 256, 2, 512, -1 };
	static const float *const back[] = { back1, back2 };
	static const float want[N] = { 35, 256, 2, 449, 135 };
	static const float alone[N] = { 2, 2, -4, 1, 0 };
	struct compensate_from from = { g, e, back, 2 };
	struct err why = ERR_INIT;
	const struct kern *kern = kern_get(&why);
	float a[N];

	compensate_target(kern, 0.5f, &from, N, a);
	ok(memcmp(a, want, sizeof(a)) == 0,
	    "the residual by gamma, what was rejected as it was");
	from = (struct compensate_from){ NULL, e, NULL, 0 };
	compensate_target(kern, 0.5f, &from, N, a);
	ok(memcmp(a, alone, sizeof(a)) == 0, "without a gradient, the residual alone");
}

TEST(absent)
{
	const float h[2] = { 8, -4 };
	float r[2];

	compensate_absent(0.5f, h, r, 2);
	ok(r[0] == 4 && r[1] == -2, "cache: what was not sent is rho h");
}
