/*
 * Make models for make bench TOPICS=patches, and measure the bytes of other methods.
 *
 *   bench-patches train SEED DIR TEXT     train with the example trainer and write to
 *       DIR: old, and new0 to new3, which are 1 step of rate 1e-6 later, 1 of 1e-5,
 *       4 of 3e-6 and 8 of 1e-5.  All are bf16
 *   bench-patches synthetic RATE N DIR    DIR/old: N weights, a multiple of 1024; DIR/new: a
 *       step like Adam's later
 *   bench-patches beside OLD NEW XOR    write the exclusive or of the values, which are
 *       bf16, to XOR; print the percentage that changed, and the bytes if each change
 *       takes an index of 4 bytes and the value
 *   bench-patches coder OLD NEW    for bf16 models, print the times of a copy, a hash
 *       and the coder, and the least time of a patch: the coder, 2 copies and 2 hashes (3
 *       and 3 to apply)
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "bench.h"
#include "codec/exact.h"
#include "../examples/train_data.h"
#include "../examples/train_optim.h"

static void
fail(const char *what)
{
	perror(what);
	exit(4);
}

static void *
room(size_t n)
{
	void *p = calloc(n + 1, 1);

	if (p == NULL)
		fail("memory");
	return p;
}

static uint16_t
bf16(float x)
{
	uint32_t u = bytes_u32(x);

	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Write a model's weights in bf16 as a safetensors file. */
static void
put(const char *dir, const char *name, const struct tensor *t, size_t n,
    const float *theta)
{
	char *text = room(300 * n + 2), path[4096];
	unsigned char head[8], *p;
	size_t i, k, at = 0, len = 0;
	FILE *f;

	for (i = 0; i < n; at += 2 * t[i++].n)
		len += (size_t)sprintf(text + len, "%s\"%s\":{\"dtype\":\"BF16\","
		    "\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}", i > 0 ? "," :
		    "{", t[i].name, t[i].ndim > 1 ? t[i].dim[0] : 1,
		    t[i].ndim > 1 ? t[i].dim[1] : t[i].n, at, at + 2 * t[i].n);
	text[len++] = '}';
	bytes_set64(head, len);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "wb")) == NULL || fwrite(head, 1, 8, f) != 8 ||
	    fwrite(text, 1, len, f) != len)
		fail(path);
	for (i = 0; i < n; i++) {
		p = room(2 * t[i].n);
		for (k = 0; k < t[i].n; k++)
			bytes_set16(p + 2 * k, bf16(theta[t[i].at + k]));
		if (fwrite(p, 2, t[i].n, f) != t[i].n)
			fail(path);
		free(p);
	}
	if (fclose(f) != 0)
		fail(path);
	free(text);
}

/* ---- trained ---- */

struct training {
	struct data d;
	struct model *m;
	struct optim *o;
	struct optim_rule rule;
	uint64_t seed;
	size_t step;
	uint8_t *text;
};

enum { CONTEXT = 32, BATCH = 16 };

static void
steps(struct training *t, double rate, size_t n)
{
	const struct data_share all = { 0, 1, 0 };

	t->rule.rate = rate;
	for (; n > 0; n--, t->step++) {
		data_batch(&t->d, &all, BATCH, CONTEXT, t->seed, t->step, t->text);
		memset(t->m->grad, 0, t->m->n * sizeof(*t->m->grad));
		(void)model_loss(t->m, t->text, BATCH, NULL);
		model_backward(t->m, t->text, BATCH);
		optim_step(t->o, &t->rule, t->m);
	}
}

static void
train(uint64_t seed, const char *dir, char *text)
{
	static const struct { double rate; size_t steps; } later[] = {
		{ 1e-6, 1 }, { 1e-5, 1 }, { 3e-6, 4 }, { 1e-5, 8 }
	};
	const struct shape shape = { 4, 128, 4, CONTEXT, 0 };
	struct training t = { .seed = seed, .rule = { .beta1 = .9, .beta2 = .95,
	    .decay = .1, .clip = 1, .last = 1, .steps = 100000 } };
	float *kept[3], *live[3];
	const char *bad;
	size_t i, k, at, was;
	char name[16];

	if (data_read(&t.d, &text, 1, 0.05, &bad) < 0)
		fail(bad);
	t.text = room(BATCH * (CONTEXT + 1));
	if ((t.m = model_new(&shape, BATCH)) == NULL || (t.o = optim_new(t.m)) == NULL)
		fail("memory");
	model_init(t.m, seed);
	steps(&t, 3e-3, 150);
	steps(&t, 1e-5, 20);
	put(dir, "old", t.m->tensor, t.m->ntensors, t.m->theta);
	live[0] = t.m->theta;
	live[1] = t.o->m;
	live[2] = t.o->v;
	at = t.o->t;
	was = t.step;
	for (k = 0; k < 3; k++) {
		kept[k] = room(t.m->n * sizeof(float));
		memcpy(kept[k], live[k], t.m->n * sizeof(float));
	}
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 3; k++)
			memcpy(live[k], kept[k], t.m->n * sizeof(float));
		t.o->t = at;
		t.step = was;
		steps(&t, later[i].rate, later[i].steps);
		(void)snprintf(name, sizeof(name), "new%zu", i);
		put(dir, name, t.m->tensor, t.m->ntensors, t.m->theta);
	}
	for (k = 0; k < 3; k++)
		free(kept[k]);
	optim_free(t.o);
	model_free(t.m);
	data_free(&t.d);
	free(t.text);
}

/* ---- synthetic ---- */

/* Draw weights of deviation 0.02, and changes: `rate' times normal numbers cut to -1..1. */
static void
synthetic(double rate, size_t n, const char *dir)
{
	struct tensor t = { "w", 2, { n / 1024, 1024 }, 0, n, 1, 0 };
	float *x = room(n * sizeof(*x));
	double a, b, u;
	size_t i;

	for (i = 0; i < n; i++) {
		pair(1, (uint32_t)i, &a, &b, &u);
		x[i] = (float)(0.02 * a);
	}
	put(dir, "old", &t, 1, x);
	for (i = 0; i < n; i++) {
		pair(1, (uint32_t)i, &a, &b, &u);
		x[i] -= (float)(rate * fmax(-1, fmin(1, b)));
	}
	put(dir, "new", &t, 1, x);
	free(x);
}

/* ---- peers: what other programs send ---- */

static unsigned char *
values(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	unsigned char head[8], *p;
	uint64_t text;
	long end = 0;

	if (f == NULL || fread(head, 1, 8, f) != 8)
		fail(path);
	text = 8 + bytes_le64(head);
	if (fseek(f, 0, SEEK_END) != 0 || (end = ftell(f)) < 0 ||
	    fseek(f, (long)text, SEEK_SET) != 0)
		fail(path);
	*n = (size_t)end - (size_t)text;
	p = room(*n);
	if (fread(p, 1, *n, f) != *n)
		fail(path);
	(void)fclose(f);
	return p;
}

static void
beside(const char *old, const char *new, const char *out)
{
	size_t n, m, i, k = 0;
	unsigned char *a = values(old, &n), *b = values(new, &m);
	FILE *f = fopen(out, "wb");

	if (f == NULL || n != m)
		fail(out);
	for (i = 0; i + 2 <= n; i += 2)
		k += memcmp(a + i, b + i, 2) != 0;
	for (i = 0; i < n; i++)
		a[i] ^= b[i];
	if (fwrite(a, 1, n, f) != n || fclose(f) != 0)
		fail(out);
	(void)printf("%.3g %zu\n", 200.0 * (double)k / (double)n, k * 6);
	free(a);
	free(b);
}

static void
coder(const char *old, const char *new)
{
	unsigned char *a, *b, *c = room(16 * GROUP), hash[16], param;
	double at[5], took[4] = { 0 };
	struct buf body = BUF_INIT;
	struct err e = ERR_INIT;
	size_t n, i, k;
	int r, j;

	alloc_keep();			/* keep freed memory, as our programs do */
	a = values(old, &n);
	b = values(new, &n);
	for (i = 0; i < n; i += k, body.n = 0) {
		k = n - i < 16 * GROUP ? n - i : 16 * GROUP;
		at[0] = now();
		memcpy(c, b + i, k);
		at[1] = now();
		hash_128(b + i, k, hash);
		at[2] = now();
		r = exact_put(EXACT_BF16, a + i, b + i, k / 2, &body, &param, &e);
		at[3] = now();
		if (r < 0 || (r > 0 && exact_get(param, EXACT_BF16, a + i, body.p,
		    body.n, c, k / 2, &e) < 0))
			fail(new);
		at[4] = now();
		for (j = 0; j < 4; j++)
			took[j] += 1e3 * (at[j + 1] - at[j]);
	}
	(void)printf("    a copy %.0f ms, a hash %.0f, the coder alone %.0f to make and %.0f "
	    "to apply: bounds %.0f and %.0f\n", took[0], took[1], took[2], took[3], took[2] +
	    2 * (took[0] + took[1]), took[3] + 3 * (took[0] + took[1]));
	free(a);
	free(b);
	free(c);
	buf_release(&body);
}

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "train") == 0)
		train(strtoull(argv[2], NULL, 10), argv[3], argv[4]);
	else if (argc == 5 && strcmp(argv[1], "synthetic") == 0)
		synthetic(atof(argv[2]), strtoull(argv[3], NULL, 10), argv[4]);
	else if (argc == 5 && strcmp(argv[1], "beside") == 0)
		beside(argv[2], argv[3], argv[4]);
	else if (argc == 4 && strcmp(argv[1], "coder") == 0)
		coder(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
