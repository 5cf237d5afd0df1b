#include <float.h>

#include "../test.h"
#include "codec/stat.h"

TEST(test_stat)
{
	/* the largest value is in bin 0, [4,8); bin 1 is [2,4), and so on */
	static const float x[] = {
		4, -7.9f, 3.9f, 2, 1, 0, -0.0f, 0x1p-27f, 0x1p-28f, 0x1p-29f,
		1e-40f
	};
	static const float tiny[] = { 0x1p-127f, -0x1p-128f, 0x1p-149f };
	static const float under[] = { 0x1p-126f, 0x1p-127f, -0x1p-128f };
	static const float bad[] = { 1, 2, INFINITY, NAN };
	static const float huge[] = { 3e38f, -3e38f };
	static const float low[] = { -3e38f, -3e38f, -3e38f, -3e38f };
	static const float high[] = { 3e38f, 3e38f };
	struct stat_group s;
	uint32_t total = 0;
	size_t i;

	ok(stat_group_of(x, 11, &s) == 0, "all values are finite");
	ok(s.n == 11 && s.nonzero == 9 && s.max_abs == 7.9f, "counts of values");
	ok(s.hist[0] == 2 && s.hist[1] == 2 && s.hist[2] == 1, "bins by powers of two");
	ok(s.hist[29] == 1 && s.hist[30] == 1 && s.hist[31] == 2,
	    "the last bin has all smaller values");
	for (i = 0; i < STAT_BINS; i++)
		total += s.hist[i];
	ok(total == s.nonzero, "the bins sum to the non-zero values");
	ok(stat_group_of(tiny, 3, &s) == 0 && s.hist[0] == 1 &&
	    s.hist[1] == 1 && s.hist[22] == 1, "octaves of subnormals");
	ok(stat_group_of(under, 3, &s) == 0 && s.hist[0] == 1 &&
	    s.hist[1] == 1 && s.hist[2] == 1, "and of those below a number");
	ok(stat_group_of(bad, 4, &s) == 3, "position of the first value that is not finite");
	ok(stat_group_of(huge, 2, &s) == 0 && isfinite(s.sumsq) &&
	    isfinite(s.sumabs), "huge values stay finite");
	ok(stat_group_of(low, 4, &s) == 0 && s.sum == -FLT_MAX &&
	    s.sumabs == FLT_MAX, "a sum below all f32 values becomes the lowest one");
	ok(stat_group_of(high, 2, &s) == 0 && s.sum == FLT_MAX,
	    "a sum above all f32 values becomes the largest one");
	ok(stat_group_of(NULL, 0, &s) == 0 && s.n == 0 && s.max_abs == 0,
	    "an empty group");
}
