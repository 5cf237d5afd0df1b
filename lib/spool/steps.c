#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/compare.h"
#include "base/scan.h"
#include "spool/steps.h"

struct steps_scan {
	struct steps *to;
	uint64_t from;
};

static int
steps_each(void *arg, const char *name, struct err *e)
{
	struct steps_scan *c = arg;
	struct steps *x = c->to;
	uint64_t step;
	int k;

	if (name[strspn(name, "0123456789")] != '\0' ||
	    (step = strtoull(name, NULL, 10)) < c->from)
		return 0;
	if ((k = alloc_grow(&x->step, &x->cap, x->n + 1, sizeof(*x->step),
	    e)) < 0)
		return k;
	x->step[x->n++] = step;
	return 0;
}

int
steps_list(struct steps *x, const struct inbox *s, const char *run,
    const char *below, uint64_t from, struct err *e)
{
	struct steps_scan c = { x, from };
	char *dir = inbox_path(s, run, NULL, below, e);
	size_t i, n = 0;
	int k = dir != NULL ? scan(dir, steps_each, &c, e) : -ERR_SYS;

	alloc_free(dir);
	if (k < 0 || x->n == 0)
		return k;
	qsort(x->step, x->n, sizeof(*x->step), compare_u64);
	for (i = 0; i < x->n; i++)
		if (i == 0 || x->step[i] != x->step[i - 1])
			x->step[n++] = x->step[i];
	x->n = n;
	return 0;
}

void
steps_release(struct steps *x)
{
	alloc_free(x->step);
	memset(x, 0, sizeof(*x));
}
