/*
 * attack KIND BAD FACTOR FILE... >all: add attackers between honest devices and the
 * cloud.
 *
 * Each FILE is the stream of one device.  For each step, attack reads all shards and
 * writes them as one stream, with the shards of BAD attackers after the honest ones.
 * The attackers know the honest shards of the same step.
 *
 *   none    every file is honest; BAD and FACTOR are 0
 *   sign    the attacker's own gradient, times -FACTOR
 *   large   noise with FACTOR times the norm of the honest mean
 *   little  the honest mean minus FACTOR standard deviations, value by value
 *           (a little is enough; Baruch et al. 2019)
 *   inner   the honest mean times -FACTOR (inner product manipulation; Xie et
 *           al. 2019)
 *   loud    the negated honest mean, scaled to FACTOR times the median norm of the
 *           honest shards: with 1.9 just within norm-ratio:2
 *   mimic   a copy of the first honest device's shard (Karimireddy et al. 2022)
 *   replay  the first honest device's shard of FACTOR steps ago, or its first one
 *   fixed   one direction in all steps, with FACTOR times the median norm of the
 *           honest shards
 *   edge    the previous honest mean p, minus the honest mean scaled to FACTOR times
 *           the median distance of honest shards from p: with 1, about the radius to
 *           which the rule `center' clips
 *   free    as large, with a small FACTOR: free riders that hide that they compute
 *           nothing (Fraboni et al. 2021)
 *   label   the attacker's own gradient, from wrong labels
 *   sybil   as label, from one attacker under BAD names (Fung et al. 2020)
 *   heavy   as sign, and each attacker states the weight 8
 *
 * With sign, label and heavy, the last BAD files are the attackers' own gradients; with
 * sybil, the last file is the attacker's.  With the other kinds all files are honest.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <aceg.h>

#include "fail.h"

/* What one attacker knows when it computes its values for a step. */
struct view {
	size_t honest, n;	/* number of honest devices; number of values of a shard */
	float **x;		/* f32[n] of each file */
	size_t own;		/* index of the file that this attacker computed */
	double factor;
	uint64_t seed;		/* differs by attacker and step */
	float **old;		/* [steps] f32[n], earlier shards of the first honest device */
	size_t steps;		/* steps in old; 0 unless the kind is replay */
	const float *last;	/* f32[n], the honest mean of the step before; 0 in the first */
};

static double
mean(const struct view *v, size_t j)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < v->honest; i++)
		sum += (double)v->x[i][j];
	return sum / (double)v->honest;
}

static void
own(const struct view *v, float *out)
{
	memcpy(out, v->x[v->own], v->n * sizeof *out);
}

static void
sign(const struct view *v, float *out)
{
	size_t j;

	for (j = 0; j < v->n; j++)
		out[j] = (float)(-v->factor * (double)v->x[v->own][j]);
}

/* Return a nearly normal number of variance 1: the sum of twelve uniform numbers, less 6. */
static double
noise(uint64_t *state)
{
	double sum = -6;
	uint64_t z;
	int i;

	for (i = 0; i < 12; i++) {	/* splitmix64 */
		z = *state += UINT64_C(0x9e3779b97f4a7c15);
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		sum += (double)((z ^ z >> 31) >> 11) * 0x1p-53;
	}
	return sum;
}

static void
large(const struct view *v, float *out)
{
	double norm = 0, m;
	uint64_t state = v->seed;
	size_t j;

	for (j = 0; j < v->n; j++) {
		m = mean(v, j);
		norm += m * m;
	}
	norm = v->factor * sqrt(norm / (double)v->n);
	for (j = 0; j < v->n; j++)
		out[j] = (float)(norm * noise(&state));
}

static void
little(const struct view *v, float *out)
{
	double m, d, s;
	size_t i, j;

	for (j = 0; j < v->n; j++) {
		m = mean(v, j);
		for (s = 0, i = 0; i < v->honest; i++) {
			d = (double)v->x[i][j] - m;
			s += d * d;
		}
		out[j] = (float)(m - v->factor * sqrt(s / (double)v->honest));
	}
}

static void
inner(const struct view *v, float *out)
{
	size_t j;

	for (j = 0; j < v->n; j++)
		out[j] = (float)(-v->factor * mean(v, j));
}

static int
by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the norm of x - from, both f32[n]; from may be NULL. */
static double
norm_of(const float *x, const float *from, size_t n)
{
	double d, sum = 0;
	size_t j;

	for (j = 0; j < n; j++) {
		d = (double)x[j] - (from != NULL ? (double)from[j] : 0);
		sum += d * d;
	}
	return sqrt(sum);
}

/* Scale out to the norm |f| m, and negate it if f < 0.  m is the median of the honest shards'
 * distances from the point `from' f32[n]; from NULL: zeros. */
static void
stretch(const struct view *v, const float *from, double f, float *out)
{
	double *norm = calloc(v->honest, sizeof *norm), median = 0, own;
	size_t i, j;

	for (i = 0; norm != NULL && i < v->honest; i++)
		norm[i] = norm_of(v->x[i], from, v->n);
	if (norm != NULL) {
		qsort(norm, v->honest, sizeof *norm, by_size);
		median = norm[(v->honest - 1) / 2];
	}
	free(norm);
	own = norm_of(out, NULL, v->n);
	for (j = 0; j < v->n && own > 0; j++)
		out[j] = (float)(f * median / own * (double)out[j]);
}

static void
means(const struct view *v, float *out)
{
	size_t j;

	for (j = 0; j < v->n; j++)
		out[j] = (float)mean(v, j);
}

static void
loud(const struct view *v, float *out)
{
	means(v, out);
	stretch(v, NULL, -v->factor, out);
}

static void
edge(const struct view *v, float *out)
{
	size_t j;

	means(v, out);
	stretch(v, v->last, -v->factor, out);
	for (j = 0; j < v->n; j++)
		out[j] += v->last[j];
}

static void
fixed(const struct view *v, float *out)
{
	uint64_t state = 1;
	size_t j;

	for (j = 0; j < v->n; j++)
		out[j] = (float)noise(&state);
	stretch(v, NULL, v->factor, out);
}

static void
replay(const struct view *v, float *out)
{
	const size_t ago = (size_t)fmax(v->factor, 1);

	memcpy(out, v->steps == 0 ? v->x[0] : v->old[v->steps > ago ?
	    v->steps - ago : 0], v->n * sizeof *out);
}

static void
mimic(const struct view *v, float *out)
{
	memcpy(out, v->x[0], v->n * sizeof *out);
}

enum computed { NOBODY, ONE, EACH };

static const struct kind {
	const char *name;
	enum computed computed;	/* attackers that compute their own gradient */
	double weight;
	void (*values)(const struct view *v, float *out);
} kinds[] = {
	{ "none", NOBODY, 1, NULL },
	{ "sign", EACH, 1, sign },
	{ "large", NOBODY, 1, large },
	{ "little", NOBODY, 1, little },
	{ "inner", NOBODY, 1, inner },
	{ "loud", NOBODY, 1, loud },
	{ "mimic", NOBODY, 1, mimic },
	{ "replay", NOBODY, 1, replay },
	{ "fixed", NOBODY, 1, fixed },
	{ "edge", NOBODY, 1, edge },
	{ "free", NOBODY, 1, large },
	{ "label", EACH, 1, own },
	{ "sybil", ONE, 1, own },
	{ "heavy", EACH, 8, sign },
};

struct attack {
	const struct kind *kind;
	size_t bad, files, honest;
	double factor;
	char **file;
	struct ace_reader **in;
	struct ace_writer *out;
	struct ace_shard *shard;	/* the present shard of each file */
	float **x;			/* values of each shard */
	float *mine, *last;
	float **old;
	size_t n, steps;
};

/* When the first shard is read, allocate the arrays of values and write the tensors. */
static int
room(struct attack *a, struct ace_error *e)
{
	const struct ace_tensor *t;
	size_t count, i, n = 0;

	if (a->n > 0)
		return 0;
	t = ace_tensors(a->in[0], &count);
	for (i = 0; i < count; i++)
		n += t[i].numel;
	for (i = 0; i < a->files; i++)
		if ((a->x[i] = malloc((n + 1) * sizeof(float))) == NULL)
			return fail(e, 4, "out of memory for array", "values");
	a->last = calloc(n + 1, sizeof(float));
	if (a->last == NULL || (a->mine = malloc((n + 1) * sizeof(float))) == NULL)
		return fail(e, 4, "out of memory for array", "values");
	a->n = n;
	return ace_write_tensors_of(a->out, a->in[0], e);
}

/* Read the values of file i's present shard into a->x[i]. */
static int
take(struct attack *a, size_t i, struct ace_error *e)
{
	struct ace_group g;
	size_t n = 0;
	int r;

	while ((r = ace_read_group(a->in[i], &g, e)) > 0) {
		if (g.n > a->n - n)
			return fail(e, 3, "mismatch: the model differs from that "
			    "of the first shard, in file", a->file[i]);
		memcpy(a->x[i] + n, g.value, g.n * sizeof(float));
		n += g.n;
	}
	if (r == 0 && n != a->n)
		return fail(e, 3, "mismatch: the model differs from that "
		    "of the first shard, in file", a->file[i]);
	return r;
}

/* Read all shards of the next step. Return 1, 0 when all streams ended, or an error. */
static int
read_step(struct attack *a, struct ace_error *e)
{
	size_t i;
	int r, more = 0;

	for (i = 0; i < a->files; i++) {
		if ((r = ace_read_shard(a->in[i], &a->shard[i], e)) < 0)
			return r;
		if (i == 0)
			more = r;
		if (r != more || (r > 0 &&
		    a->shard[i].step != a->shard[0].step))
			return fail(e, 3, "mismatch: expected exactly the steps of the "
			    "first file, in file", a->file[i]);
		if (more && ((r = room(a, e)) < 0 || (r = take(a, i, e)) < 0))
			return r;
	}
	return more;
}

static int
write_shard(struct attack *a, const struct ace_shard *s, const float *x,
    struct ace_error *e)
{
	int r = ace_write_shard(a->out, s, e);

	if (r == 0)
		r = ace_write_values(a->out, x, a->n, e);
	return r < 0 ? r : ace_write_end(a->out, e);
}

/* Store the data of this step that `replay' and `edge' need later. */
static int
remember(struct attack *a, const struct view *v, struct ace_error *e)
{
	float **old;

	means(v, a->last);
	if (a->kind->values != replay)
		return 0;
	old = realloc(a->old, (a->steps + 1) * sizeof *old);
	if (old == NULL)
		return fail(e, 4, "out of memory for array", "steps");
	a->old = old;
	if ((old[a->steps] = malloc((a->n + 1) * sizeof(float))) == NULL)
		return fail(e, 4, "out of memory for array", "steps");
	memcpy(old[a->steps++], a->x[0], a->n * sizeof(float));
	return 0;
}

static int
write_step(struct attack *a, struct ace_error *e)
{
	struct view v = { .honest = a->honest, .n = a->n, .x = a->x,
	    .factor = a->factor, .old = a->old, .steps = a->steps,
	    .last = a->last };
	struct ace_shard s;
	size_t i;
	int r;

	for (i = 0; i < a->honest; i++)
		if ((r = write_shard(a, &a->shard[i], a->x[i], e)) < 0)
			return r;
	for (i = 0; i < a->bad; i++) {
		v.own = a->honest + (a->kind->computed == EACH ? i : 0);
		v.seed = a->shard[0].step * a->bad + i;
		a->kind->values(&v, a->mine);
		s = a->shard[0];
		s.weight = a->kind->weight;
		(void)snprintf(s.device, sizeof s.device, "attacker%zu",
		    i + 1);
		if ((r = write_shard(a, &s, a->mine, e)) < 0)
			return r;
	}
	return remember(a, &v, e);
}

static int
run(struct attack *a, char **file, struct ace_error *e)
{
	size_t i;
	int fd, r;

	a->in = calloc(a->files, sizeof *a->in);
	a->shard = calloc(a->files, sizeof *a->shard);
	a->x = calloc(a->files, sizeof *a->x);
	if (a->in == NULL || a->shard == NULL || a->x == NULL)
		return fail(e, 4, "out of memory for array", "devices");
	for (i = 0; i < a->files; i++) {
		if ((fd = open(file[i], O_RDONLY)) < 0)
			return fail(e, 4, "cannot open", file[i]);
		if ((a->in[i] = ace_reader_new(fd, e)) == NULL)
			return -e->code;
	}
	if ((a->out = ace_writer_new(1, NULL, e)) == NULL)
		return -e->code;
	while ((r = read_step(a, e)) > 0)
		if ((r = write_step(a, e)) < 0)
			return r;
	return r < 0 ? r : ace_writer_close(a->out, e);
}

/* Parse the arguments.  Return NULL, or a message that says what is wrong. */
static const char *
settle(struct attack *a, int argc, char **argv)
{
	char *end1 = "", *end2 = "";
	size_t i, computed;

	if (argc < 5)
		return "usage: attack KIND BAD FACTOR FILE... >out";
	for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			a->kind = &kinds[i];
	if (a->kind == NULL)
		return "KIND is unknown: see the head of attack.c";
	a->bad = strtoul(argv[2], &end1, 10);
	a->factor = strtod(argv[3], &end2);
	a->file = argv + 4;
	a->files = (size_t)argc - 4;
	if (*end1 != '\0' || *end2 != '\0' || a->bad > 10000 ||
	    !isfinite(a->factor) || (a->bad > 0) == (a->kind == kinds))
		return "BAD or FACTOR is not valid: expected BAD 0 for KIND none, else 1 to "
		    "10000, and a number FACTOR";
	computed = a->kind->computed == EACH ? a->bad :
	    a->kind->computed == ONE;
	if (a->files <= computed)
		return "no honest device is left: give more FILEs";
	a->honest = a->files - computed;
	return NULL;
}

int
main(int argc, char **argv)
{
	struct ace_error e = { 0, "" };
	struct attack a = { 0 };
	const char *why = settle(&a, argc, argv);
	size_t i;
	int r;

	if (why != NULL) {
		(void)fprintf(stderr, "attack: %s\n", why);
		return 2;
	}
	if ((r = run(&a, argv + 4, &e)) < 0)
		(void)fprintf(stderr, "attack: %s\n", e.message);
	ace_writer_free(a.out);
	for (i = 0; i < a.files; i++) {
		if (a.in != NULL)
			ace_reader_free(a.in[i]);
		if (a.x != NULL)
			free(a.x[i]);
	}
	free(a.in);
	free(a.x);
	free(a.shard);
	for (i = 0; i < a.steps; i++)
		free(a.old[i]);
	free(a.old);
	free(a.mine);
	free(a.last);
	return r < 0 ? e.code : 0;
}
