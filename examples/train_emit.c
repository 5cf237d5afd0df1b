#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail.h"
#include "train_emit.h"

static double
now(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
set_cuts(struct emit *x, const char *cuts, struct ace_error *e)
{
	const size_t n = x->m->ntensors;
	const char *s;
	char *end, what[120];
	unsigned long row;

	memset(x->next_cut, strcmp(cuts, "all") == 0, n);
	s = strcmp(cuts, "all") == 0 || strcmp(cuts, "none") == 0 ? "" : cuts;
	for (; *s != '\0'; s = *end == ',' ? end + 1 : end) {
		row = strtoul(s, &end, 10);
		if (end == s || row < 1 || row > n ||
		    (*end != ',' && *end != '\0')) {
			(void)snprintf(what, sizeof what, "--cuts: expected all, none, or rows "
			    "of --profile from 1 to %zu separated by commas, found", n);
			return fail(e, 2, what, cuts);
		}
		x->next_cut[n - row] = 1;
	}
	memcpy(x->cut, x->next_cut, n);
	return 0;
}

void
emit_obey(struct emit *x, const char *cuts)
{
	struct ace_error e;

	(void)set_cuts(x, cuts, &e);
}

/* Send the next tensor, whose gradient is complete, and note the seconds since the last. */
static void
emit_ready(void *arg, size_t tensor)
{
	struct emit *x = arg;
	double t = now();

	x->took[x->next] = t - x->last;
	x->secs[x->next] += x->took[x->next];
	if (x->error == 0)
		x->error = link_tensor(x->link, tensor, x->m->grad,
		    x->cut[x->next], &x->why);
	x->next++;
	x->last = now();
}

int
emit_init(struct emit *x, struct link *link, struct model *m,
    const char *cuts, struct ace_error *e)
{
	memset(x, 0, sizeof *x);
	x->link = link;
	x->m = m;
	x->order = calloc(m->ntensors, sizeof *x->order);
	x->cut = calloc(m->ntensors, sizeof *x->cut);
	x->next_cut = calloc(m->ntensors, sizeof *x->next_cut);
	x->secs = calloc(m->ntensors, sizeof *x->secs);
	x->took = calloc(m->ntensors, sizeof *x->took);
	if (x->order == NULL || x->cut == NULL || x->next_cut == NULL ||
	    x->secs == NULL || x->took == NULL)
		return fail(e, 4, "out of memory for array", "cuts");
	model_order(m, x->order);
	link->order = x->order;
	return set_cuts(x, cuts, e);
}

int
emit_begin(struct emit *x, uint64_t round, uint64_t version, uint64_t samples,
    struct ace_error *e)
{
	int c = link_begin(x->link, ACE_GRADIENT, round, version, samples, e);

	/* write the times of the previous round, in the order in which the tensors are sent */
	if (c >= 0 && x->link->compute >= 0 && x->rounds > 0)
		c = ace_write_times(x->link->out, x->took, x->m->ntensors, e);
	if (c < 0)
		return c;
	x->next = 0;
	x->m->ready = emit_ready;
	x->m->arg = x;
	x->last = now();
	return 0;
}

int
emit_end(struct emit *x, struct ace_error *e)
{
	x->m->ready = NULL;
	x->rounds++;
	if (x->error < 0) {
		*e = x->why;
		return x->error;
	}
	return link_end(x->link, e);
}

int
emit_profile(const struct emit *x, const char *file, struct ace_error *e)
{
	const size_t n = x->m->ntensors;
	FILE *f = fopen(file, "w");
	size_t i;
	int bad;

	if (f == NULL)
		return fail(e, 4, "cannot open", file);
	(void)fprintf(f, "layer\tbytes\tbc\n");
	for (i = n; i-- > 0;)
		(void)fprintf(f, "%s\t%zu\t%.9f\n",
		    x->m->tensor[x->order[i]].name,
		    4 * x->m->tensor[x->order[i]].n,
		    x->secs[i] / (double)(x->rounds > 0 ? x->rounds : 1) +
		    1e-9);
	bad = ferror(f);
	return fclose(f) != 0 || bad ? fail(e, 4, "cannot write", file) : 0;
}

void
emit_release(struct emit *x)
{
	free(x->order);
	free(x->cut);
	free(x->next_cut);
	free(x->secs);
	free(x->took);
}
