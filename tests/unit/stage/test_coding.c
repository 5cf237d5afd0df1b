/*
 * More groups than fit the budget: which are left out; and a million groups take seconds
 * and no extra memory.
 */
#include <sys/resource.h>
#include <time.h>

#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "base/pool.h"
#include "format/shard.h"
#include "stage/coding.h"

enum { SIZE = 2, MANY = 1 << 20, SECONDS = 100, KIB = 400 << 10 };

/* the sanitizer adds memory */
#ifdef __SANITIZE_ADDRESS__
#define ROOM 3
#else
#define ROOM 1
#endif

static struct schema schema = SCHEMA_INIT;
static struct shard shard;
static struct coding coding;

static void
model(uint64_t values)
{
	schema_release(&schema);
	schema = model_of(values, 0, SIZE);
}

/* Of n groups hold every `every'-th one, from `every' - 1 on; values have 16 sizes. */
static int
hold_some(uint32_t n, uint32_t every, enum codec_id codec)
{
	float own[SIZE], *a, *u;
	uint32_t g;
	int r = coding_begin(&coding, &schema, &shard, NULL);

	for (g = every - 1; g < n && r == 0; g += every) {
		a = own;
		if ((r = coding_next(&coding, SIZE, &a, &u, NULL)) < 0)
			break;
		a[0] = (float)(1 + g * 7 % 16);
		a[1] = -a[0];
		r = coding_put(&coding, g, 0, a, NULL, SIZE, NULL, NULL);
		coding.g[g / every].plan = (struct codec_plan){ codec, 0, 0 };
	}
	return r;
}

static int
hold(uint32_t n, enum codec_id codec)
{
	return hold_some(n, 1, codec);
}

static size_t
sent(void)
{
	size_t i, n = 0;

	for (i = 0; i < coding.n; i++)
		n += coding.g[i].code.len != 0;
	return n;
}

/* Of groups 1, 3, 5, ... every second one has a large weight: if a third of the groups
 * fit, these are sent whatever the values. */
static void
weighs(void)
{
	enum { N = 64 };
	static float weight[N];
	size_t i, wrong = 0;
	int r;

	for (i = 0; i < N; i++)
		weight[i] = i % 4 == 3 ? 1e6f : 1;
	model((uint64_t)N * SIZE);
	if ((r = hold_some(N, 2, CODEC_F16)) == 0) {
		coding.weight = weight;
		r = coding_fit(&coding, 100, 400, NULL);
	}
	for (i = 0; i < coding.n; i++)
		wrong += i % 2 == 0 && coding.g[i].code.len != 0;
	ok(r == 0 && sent() >= 8 && wrong == 0, "what weighs more is "
	    "sent: %zu, %zu others", sent(), wrong);
}

static double
seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long
peak(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

int
main(void)
{
	struct pool *pool;
	double from;
	size_t all, some;
	long kib;

	shard_init(&shard);
	(void)pool_new(&pool, 1, NULL);
	(void)coding_open(&coding, NULL, pool, NULL);

	/* in f16 the two values of a group take 4 bytes */
	model((uint64_t)1600 * SIZE);
	ok(hold(1600, CODEC_F16) == 0 && coding_fit(&coding, 100, 100000,
	    NULL) == 0 && sent() == 1600, "all find room");
	some = 100 + 64 + (4 + 4) * 800;
	ok(hold(1600, CODEC_F16) == 0 && coding_fit(&coding, 100, some,
	    NULL) == 0 && coding.dropped > 0, "some are left out");
	all = sent();
	ok(all >= 790 && all + coding.dropped == 1600, "as few as will do: %zu "
	    "are sent", all);
	ok(hold(1600, CODEC_F16) == 0 && coding_fit(&coding, 100, some,
	    NULL) == 0 && sent() == all, "the same again the same");

	weighs();

	model((uint64_t)MANY * SIZE);
	from = seconds();
	kib = peak();
	ok(hold(MANY, CODEC_Q8) == 0 && coding_fit(&coding, 100, MANY, NULL) ==
	    0 && coding.dropped > MANY / 2, "a million, of which few find room");
	ok(sent() + coding.dropped == MANY, "%zu are sent", sent());
	from = seconds() - from;
	ok(from < (double)SECONDS, "in seconds: %.1f", from);
	ok(peak() - kib < KIB * ROOM, "%ld MiB for them", (peak() - kib) >> 10);
	coding_close(&coding);
	pool_free(pool);
	schema_release(&schema);
	shard_release(&shard);
	return done_testing();
}
