/* Compare the contraction that the state stores with values computed by hand. */
#include "../inside.h"
#include "../test.h"
#include "base/err.h"
#include "device/contraction.h"

static struct statedir state = STATE_INIT;
static struct err e = ERR_INIT;
static struct shard sh;

/* Return the number under a key of the memory; -1 if there is none or it cannot be read. */
static double
said(const char *key)
{
	double v = -1;

	(void)learned_number(&state, CONTRACTION_FILE, key, &v, &e);
	return v;
}

static int
saved(struct contraction *c, double alpha, double share)
{
	sh.step++;
	return contraction_save(c, &state, &sh, &e) == 0 &&
	    said(CONTRACTION_ALPHA) == alpha && said(CONTRACTION_SHARE) == share;
}

TEST(test_contraction)
{
	struct contraction c = CONTRACTION_INIT;

	shard_init(&sh);
	ok(statedir_open(&state, "S", &e) == 0, "a state");
	contraction_group(&c, 0, 0, 4, 1);
	ok(contraction_save(&c, &state, &sh, &e) == 0 &&
	    said(CONTRACTION_ALPHA) < 0, "of a shard of zeros no contraction is saved");
	c = (struct contraction)CONTRACTION_INIT;
	contraction_group(&c, 25, 16, 4, 4);
	ok(system("head -c 1000 /dev/zero >S/" CONTRACTION_FILE) == 0 && saved(&c, 0.36, 0.25),
	    "a damaged file is replaced");
	ok(c.energy == 25 && c.lost == 16 && c.values == 4 && c.bytes == 4,
	    "energy 25, loss 16");
	ok(saved(&c, 0.36, 0.25), "1 - 16 / 25 kept, in a quarter of the bytes");
	contraction_group(&c, 25, 25, 4, 0);
	ok(c.energy == 50 && c.lost == 41 && c.values == 8 && c.bytes == 4,
	    "all energy of a group that was not sent is lost");
	ok(saved(&c, 0.18, 0.125), "1 - 41 / 50, in an eighth");
	contraction_group(&c, 25, 33 * 33 + 16, 4, 28);
	ok(c.lost == 41 + 33 * 33 + 16 && saved(&c, 0, 0.666666667),
	    "an error larger than the values keeps 0, not less");
	(void)saved(&c, 0, 0.666666667);
	ok(c.growing == 2 && contraction_save(&c, &state, &sh, &e) == 0 && c.growing == 2 &&
	    said(CONTRACTION_GROWING) == 2, "two such shards in a row, the second sent twice");
	contraction_group(&c, 1e6, 0, 4, 0);
	(void)saved(&c, 0.9, 0.5);
	ok(c.growing == 0 && said(CONTRACTION_GROWING) < 0, "a shard that keeps energy resets it");
	c = (struct contraction)CONTRACTION_INIT;
	contraction_group(&c, 25, 25, 4, 0);
	ok(saved(&c, 0, 0) && c.growing == 0, "no sent groups: not counted");
	ok(e.code == ERR_OK, "no error: %s", ERR_MSG(&e));
	statedir_close(&state);
}
