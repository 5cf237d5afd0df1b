/*
 * Error feedback's targets with gamma other than 1: rejected shards return undiminished,
 * only the residual decays.
 */
#include "base/err.h"
#include "sync/compensate.h"

#include "../tap.h"

enum { N = 5 };

static const float g[N] = { 1, -2, 3, 0, 8 }, e[N] = { 4, 4, -8, 2, 0 };
static const float u[N] = { 16, 0, -4, 8, 2 };
static const float back1[N] = { 32, 0, 1, -64, 128 };
static const float back2[N] = { 0, 256, 2, 512, -1 };

static void
target(enum compensate_kind kind, const char *name, const float want[N])
{
	static const float *const back[] = { back1, back2 };
	struct compensate_from from = { g, e, u, back, 2 };
	struct err why = ERR_INIT;
	struct compensate c = { kind, 0.5f, 0.25f, 0.5f, kern_get(&why) };
	float a[N], kept[N];

	compensate_target(&c, &from, N, a, kept);
	ok(memcmp(a, want, sizeof(a)) == 0,
	    "%s: the residual by gamma, what was rejected as it was", name);
}

/* Momentum is reset for values that are sent, and kept for values that are not. */
TEST(mask)
{
	static const float dec[N] = { 2, 0, -1, 0, 4 };
	static const float want_u[N] = { 0, 0, 0, 8, 0 };
	static const float want_a[N] = { 14, 1, 6, 2, -4 };
	float a[N] = { 16, 1, 5, 2, 0 }, kept[N];
	struct err why = ERR_INIT;
	struct compensate c = { COMPENSATE_MOMENTUM, 1, 0.25f, 0, kern_get(&why) };

	memcpy(kept, u, sizeof(kept));
	compensate_settle(&c, a, kept, dec, N);
	ok(memcmp(kept, want_u, sizeof(kept)) == 0,
	    "momentum is kept where nothing was sent, and only there");
	ok(memcmp(a, want_a, sizeof(a)) == 0, "the residual is what was not sent");
}

/* The receiver's result for a group, sent or not, equals the sender's. */
TEST(receive)
{
	struct err why = ERR_INIT;
	const struct kern *kern = kern_get(&why);
	struct compensate c = { COMPENSATE_CACHE, 1, 0.25f, 0.5f, kern };
	float h[2] = { 8, -4 }, a[2] = { 5, 6 }, x[2] = { 3, 7 }, zero[2] = { 0, 0 };

	compensate_receive(&c, h, 1, x, 2);
	ok(x[0] == 3 && x[1] == 7, "cache: the receiver takes the values that were sent");
	compensate_receive(&c, h, 0, zero, 2);
	ok(zero[0] == 4 && zero[1] == -2, "cache: what was not is rho h");
	compensate_settle(&c, a, h, NULL, 2);
	ok(h[0] == 4 && h[1] == -2 && a[0] == 1 && a[1] == 8,
	    "cache: and so for the sender, who keeps the rest");
}

int
main(void)
{
	static const float ef[N] = { 35, 256, 2, 449, 135 };
	static const float momentum[N] = { 39, 256, 1, 451, 135.5f };

	target(COMPENSATE_EF, "ef", ef);
	target(COMPENSATE_MOMENTUM, "momentum", momentum);
	target(COMPENSATE_CACHE, "cache", ef);
	run_tests();
	return done_testing();
}
