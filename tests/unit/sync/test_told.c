/*
 * What groups are foretold to take: asked on a grid, with a straight line
 * between its points.
 */
#include <math.h>

#include "../tap.h"
#include "base/err.h"
#include "sync/told.h"

enum { MANY = 3 * TOLD_ASKED };

static uint32_t order[MANY], values[MANY];
static unsigned asked, wrong;

/* The rate falls as f rises; groups from 100 on tell nothing. */
static double
foretell(void *arg, size_t i, size_t slot, double f)
{
	asked++;
	wrong += arg != &asked || order[slot] != i;
	return i >= 100 ? -1 : values[i] / (8 * f);
}

static struct told
open_told(size_t k)
{
	struct told t = { .k = k, .order = order, .values = values,
	    .foretell = foretell, .arg = &asked };
	size_t i;

	for (i = 0; i < k; i++) {
		order[i] = (uint32_t)((7 * i) % k);
		values[i] = (uint32_t)(1000 + 10 * i);
	}
	asked = wrong = 0;
	if (told_open(&t, NULL) < 0)
		ok(0, "out of memory");
	return t;
}

int
main(void)
{
	struct told t = open_told(10);
	double a = told_bytes(&t, 3, 0.1), b = told_bytes(&t, 3, 0.2), c;
	unsigned before = asked;

	ok(a > b && b > 0, "fewer bytes where it is coarser");
	c = told_bytes(&t, 3, 0.15);
	ok(fabs(c - (a + b) / 2) < 1e-9 && asked == before,
	    "a straight line between two points, which nobody is asked for");
	a = told_bytes(&t, 3, 2.0);
	b = told_bytes(&t, 3, 6.0);
	c = told_bytes(&t, 3, -6.0) / told_bytes(&t, 3, -2.0);
	ok(b > 0 && b < a / 10 && c > 10, "on and on beyond the grid");
	ok(wrong == 0, "each slot is one group's");
	told_close(&t);

	t = open_told(MANY);
	a = told_value(&t, 0);
	ok(asked <= 2 * TOLD_ASKED && wrong == 0, "of many groups some are "
	    "asked");
	ok(a > 0 && a < 1.1 && told_value(&t, 0.5) < a,
	    "and tell what a value takes");
	told_close(&t);
	return done_testing();
}
