/*
 * Shares of a budget for segments. A share never exceeds what is left, even with an absurd
 * memory. All shares together are nearly the whole budget. The memory records the plan.
 */
#include <math.h>
#include <unistd.h>

#include "../inside.h"
#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "device/learned.h"
#include "device/shares.h"
#include "format/shard.h"

enum { N = 8 };

static const struct codec_plan step_of_1 = { CODEC_ECQ, 0, 1 };
static const struct codec_plan step_of_2 = { CODEC_ECQ, 0, 2 };

/* End a shard: each group was planned as p and coded by c in len bytes. */
static void
save(const struct statedir *s, uint64_t step, const struct codec_plan *p,
    const struct codec_plan *c, size_t len)
{
	struct schema sc = model_of(N * 16, 0, 16);
	struct shares sh = { 0 };
	struct err e = ERR_INIT;
	struct shard d;
	size_t g;

	shard_init(&d);
	d.step = step;
	(void)shard_set_run(&d, "run", &e);
	(void)shard_set_device(&d, "edge1", &e);
	ok(shares_begin(&sh, s, &d, N, &e) == 0, "begun %s", ERR_MSG(&e));
	for (g = 0; g < N; g++) {
		sh.of[g].plan = *p;
		shares_coded(&sh, g, c, len, 16);
	}
	ok(shares_save(&sh, s, &d, &sc, &e) == 0, "saved %s", ERR_MSG(&e));
	shares_release(&sh);
	shard_release(&d);
	schema_release(&sc);
}

static void
begin(struct shares *sh, const struct statedir *s, uint64_t step)
{
	struct err e = ERR_INIT;
	struct shard d;

	shard_init(&d);
	d.step = step;
	ok(shares_begin(sh, s, &d, N, &e) == 0, "begun %s", ERR_MSG(&e));
	shard_release(&d);
}

/* Spend the share of each group in turn. Return the total, or -1 if a share exceeds what
 * is left. */
static double
spend(struct shares *sh, uint64_t room)
{
	const uint64_t all = room;
	uint64_t get;
	size_t g;

	for (g = 0; g < N; g++) {
		get = shares_part(sh, sh->of[g].bytes, room);
		if (get > room)
			return -1;
		room -= get;
		sh->left -= sh->of[g].bytes;
	}
	return (double)(all - room);
}

static void
remembered(const struct statedir *s)
{
	static const uint64_t room[] = { 0, 1, 99, 4000, 1 << 20 };
	struct shares sh = { 0 };
	double got;
	size_t i;

	begin(&sh, s, 0);
	ok(!sh.known && shares_part(&sh, sh.of[0].bytes, 1000) == 0,
	    "without measurements there is no share");
	save(s, 0, &step_of_1, &step_of_1, 500);
	begin(&sh, s, 1);
	ok(sh.known && sh.of[3].plan.codec == CODEC_ECQ && sh.of[3].plan.arg == 1.0f &&
	    sh.of[3].bytes == 500, "the plan and the bytes of the shard before");
	begin(&sh, s, 0);
	ok(!sh.known, "a repeated step uses the values from before it");
	for (i = 0; i < sizeof(room) / sizeof(*room); i++) {
		begin(&sh, s, 1);
		got = spend(&sh, room[i]);
		ok(got >= 0 && (room[i] < 4000 || got > 0.99 * (double)room[i]),
		    "of %llu bytes %.0f", (unsigned long long)room[i], got);
	}
	/* planned with step 2, coded with step 1: the plan takes fewer than 500 bytes */
	save(s, 1, &step_of_2, &step_of_1, 500);
	begin(&sh, s, 2);
	ok(sh.of[0].bytes < 500 && sh.of[0].bytes > 500 / 17.0 &&
	    sh.of[0].plan.arg == 2.0f, "coarser: %.0f bytes", sh.of[0].bytes);
	save(s, 2, &step_of_1, &step_of_2, 500);
	begin(&sh, s, 3);
	ok(sh.of[0].bytes > 500 && sh.of[0].bytes < 500 * 17.0, "finer: %.0f bytes",
	    sh.of[0].bytes);
	shares_release(&sh);
}

/* A memory with absurd values gives finite plans and shares of at most what is left. */
static void
absurd(const struct statedir *s)
{
	static const float bad[] = { NAN, INFINITY, -INFINITY, -1, 1e30f, 1e-30f, 0 };
	static const char *const row[] = { "codec", "param", "rate", "bytes" };
	static const float good[] = { CODEC_ECQ, 0, 1, 500 };
	struct shares sh = { 0 };
	size_t i, k, j, g;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		for (k = 0; k < 4; k++) {
			struct learned h = LEARNED_INIT;
			struct err e = ERR_INIT;
			float x[N];
			int r = 0;

			for (j = 0; j < 4 && r == 0; j++) {
				for (g = 0; g < N; g++)
					x[g] = j == k && g < N / 2 ? bad[i] : good[j];
				r = learned_put(&h, row[j], x, N, &e);
			}
			ok(r == 0 && learned_save(&h, s, SHARES_FILE, NULL, IO_SYNC_RENAME, &e) == 0,
			    "%s is %g", row[k], (double)bad[i]);
			begin(&sh, s, 9);
			ok(spend(&sh, 10000) >= 0, "a share is never above 1");
			for (g = 0, r = 1; g < N; g++)
				r = r && isfinite(sh.of[g].plan.arg) &&
				    isfinite(sh.of[g].bytes) && sh.of[g].bytes >= 0;
			ok(r, "numbers");
			learned_release(&h);
		}
	shares_release(&sh);
}

int
main(void)
{
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;

	if (statedir_open(&s, "S", &e) < 0)
		return 1;
	remembered(&s);
	absurd(&s);
	statedir_close(&s);
	return done_testing();
}
