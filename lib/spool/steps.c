#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/compare.h"
#include "base/scan.h"
#include "spool/ledger.h"
#include "spool/steps.h"

struct steps_scan {
	struct steps *to;
	uint64_t from;
};

int
steps_add(struct steps *x, uint64_t step, struct err *e)
{
	int k = alloc_grow(&x->step, &x->cap, x->n + 1, sizeof(*x->step), e);

	if (k == 0)
		x->step[x->n++] = step;
	return k;
}

/* In ascending order, each once. */
static void
steps_sort(struct steps *x)
{
	size_t i, n = 0;

	if (x->n == 0)
		return;
	qsort(x->step, x->n, sizeof(*x->step), compare_u64);
	for (i = 0; i < x->n; i++)
		if (i == 0 || x->step[i] != x->step[i - 1])
			x->step[n++] = x->step[i];
	x->n = n;
}

int
steps_text(struct steps *x, const char *text, uint64_t from, struct err *e)
{
	uint64_t step;
	char *end;
	int k = 0;

	for (; *text != '\0' && k == 0; text = *end != '\0' ? end + 1 : end) {
		step = strtoull(text, &end, 10);
		if (end != text && step >= from)
			k = steps_add(x, step, e);
	}
	steps_sort(x);
	return k;
}

static int
steps_each(void *arg, const char *name, struct err *e)
{
	struct steps_scan *c = arg;
	struct steps *x = c->to;
	uint64_t step;

	if (name[strspn(name, "0123456789")] != '\0' ||
	    (step = strtoull(name, NULL, 10)) < c->from)
		return 0;
	return steps_add(x, step, e);
}

int
steps_list(struct steps *x, const struct inbox *s, const char *run,
    const char *below, uint64_t from, struct err *e)
{
	struct steps_scan c = { x, from };
	char *dir = inbox_path(s, run, NULL, below, e);
	int k = dir != NULL ? scan(dir, steps_each, &c, e) : -ERR_SYS;

	alloc_free(dir);
	if (k == 0)
		steps_sort(x);
	return k;
}

void
steps_release(struct steps *x)
{
	alloc_free(x->step);
	memset(x, 0, sizeof(*x));
}
