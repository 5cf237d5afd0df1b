/*
 * Make models for make bench TOPICS=patches, and measure the bytes of other methods.
 *
 *   bench-patches train SEED DIR TEXT     train with the example trainer and write to
 *       DIR: old, and new0 to new3, which are 1 step of rate 1e-6 later, 1 of 1e-5,
 *       4 of 3e-6 and 8 of 1e-5.  All are bf16; fp8-... and nvfp4-... are quantised
 *       as DeepSeek and NVIDIA do, q8_0-... are GGUF files quantised as llama.cpp does
 *   bench-patches synthetic RATE N DIR    N weights, before and after a step like Adam's
 *   bench-patches beside OLD NEW SIZE XOR    write the exclusive or of the values, which
 *       have SIZE bytes, to XOR; print the percentage that changed, and the bytes if each
 *       change takes an index of 4 bytes and the value
 *   bench-patches coder OLD NEW    for bf16 models, print the times of a copy, a hash and
 *       the coder, and lower bounds: the coder, 2 copies and hashes (3 to apply)
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

enum { BLOCK = 128, PART = 16, Q8 = 32, Q8_BYTES = 34, ALIGN = 32 };

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

/* Make a safetensors file in two passes over the tensors: first their names, then
 * their bytes. */
struct file {
	FILE *f;
	char *text;
	size_t len, at;
	int bytes;		/* 1: the second pass */
};

static void
tensor(struct file *o, const char *name, const char *dtype, size_t rows,
    size_t cols, const void *p, size_t n)
{
	if (o->bytes && fwrite(p, 1, n, o->f) != n)
		fail("write");
	if (o->bytes)
		return;
	o->text = realloc(o->text, o->len + 300);
	o->len += (size_t)sprintf(o->text + o->len, "%s\"%s\":{\"dtype\":\"%s\","
	    "\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}", o->len > 0 ? "," :
	    "{", name, dtype, rows, cols, o->at, o->at + n);
	o->at += n;
}

static uint16_t
bf16(float x)
{
	uint32_t u = bytes_u32(x);

	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Round to the nearest of the 127 magnitudes of f8e4m3. */
static unsigned char
f8(float x)
{
	float a = fminf(fabsf(x), 448);
	int e;
	unsigned m;

	(void)frexpf(a, &e);
	e = e < -5 ? -5 : e;		/* subnormal below 2^-6 */
	m = (unsigned)lrintf(ldexpf(a, 4 - e));
	m += (unsigned)(e + 5) * 8;	/* 8 if normal: rounding up carries into the exponent */
	return (unsigned char)((m > 0x7e ? 0x7e : m) | (x < 0 ? 0x80 : 0));
}

static float
f8_value(unsigned char c)
{
	unsigned e = c >> 3 & 15, m = c & 7;

	return e == 0 ? ldexpf((float)m, -9) : ldexpf((float)(8 + m), (int)e - 10);
}

/* Return the code of the nearest of 0 0.5 1 1.5 2 3 4 6. */
static unsigned
f4(float x)
{
	static const float above[] = { .25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5 };
	unsigned k = 0;

	while (k < 7 && fabsf(x) > above[k])
		k++;
	return k | (x < 0 ? 8u : 0u);
}

static void
as_bf16(struct file *o, const struct tensor *t, const float *x)
{
	unsigned char *p = room(2 * t->n);
	size_t i;

	for (i = 0; i < t->n; i++)
		bytes_set16(p + 2 * i, bf16(x[i]));
	tensor(o, t->name, "BF16", t->ndim > 1 ? t->dim[0] : 1,
	    t->ndim > 1 ? t->dim[1] : t->n, p, 2 * t->n);
	free(p);
}

/* Quantise blocks of 128x128 with one f32 scale each. Vectors are not quantised. */
static void
as_fp8(struct file *o, const struct tensor *t, const float *x)
{
	size_t rows = t->dim[0], cols = t->dim[1], i, j, b, wide, high;
	unsigned char *p, *s;
	char name[64];
	float *most;

	if (t->ndim < 2) {
		as_bf16(o, t, x);
		return;
	}
	wide = (cols + BLOCK - 1) / BLOCK;
	high = (rows + BLOCK - 1) / BLOCK;
	p = room(t->n);
	s = room(4 * wide * high);
	most = room(wide * high * sizeof(*most));
	for (i = 0; i < rows; i++)
		for (j = 0; j < cols; j++) {
			b = i / BLOCK * wide + j / BLOCK;
			most[b] = fmaxf(most[b], fabsf(x[i * cols + j]));
		}
	for (b = 0; b < wide * high; b++) {
		most[b] = most[b] > 0 ? most[b] / 448 : 1;
		bytes_set32(s + 4 * b, bytes_u32(most[b]));
	}
	for (i = 0; i < rows; i++)
		for (j = 0; j < cols; j++)
			p[i * cols + j] = f8(x[i * cols + j] /
			    most[i / BLOCK * wide + j / BLOCK]);
	tensor(o, t->name, "F8_E4M3", rows, cols, p, t->n);
	(void)sprintf(name, "%s_scale", t->name);
	tensor(o, name, "F32", high, wide, s, 4 * wide * high);
	free(most);
	free(s);
	free(p);
}

/* Quantise blocks of sixteen values with one f8e4m3 scale each and one f32 scale
 * for the tensor; a byte holds two values. */
static void
as_nvfp4(struct file *o, const struct tensor *t, const float *x)
{
	size_t i, k, parts = t->n / PART;
	unsigned char *p, *s, all[4];
	float most = 0, part, scale;
	char name[64];

	if (t->ndim < 2 || t->n % PART != 0) {
		as_bf16(o, t, x);
		return;
	}
	p = room(t->n / 2);
	s = room(parts);
	for (i = 0; i < t->n; i++)
		most = fmaxf(most, fabsf(x[i]));
	most = most > 0 ? most / (448 * 6) : 1;
	for (i = 0; i < parts; i++) {
		for (part = 0, k = 0; k < PART; k++)
			part = fmaxf(part, fabsf(x[i * PART + k]));
		s[i] = f8(part / 6 / most);
		scale = f8_value(s[i]) * most;
		for (k = 0; k < PART; k++)
			p[(i * PART + k) / 2] |= (unsigned char)(f4(scale > 0 ?
			    x[i * PART + k] / scale : 0) << k % 2 * 4);
	}
	bytes_set32(all, bytes_u32(most));
	tensor(o, t->name, "U8", t->dim[0], t->dim[1] / 2, p, t->n / 2);
	(void)sprintf(name, "%s_scale", t->name);
	tensor(o, name, "F8_E4M3", t->dim[0], t->dim[1] / PART, s, parts);
	(void)sprintf(name, "%s_scale_2", t->name);
	tensor(o, name, "F32", 1, 1, all, 4);
	free(s);
	free(p);
}

static void
put(const char *dir, const char *name, const struct tensor *t, size_t n,
    const float *theta, void (*as)(struct file *, const struct tensor *, const float *))
{
	struct file o = { 0 };
	unsigned char head[8];
	char path[4096];
	size_t i;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((o.f = fopen(path, "wb")) == NULL)
		fail(path);
	for (i = 0; i < n; i++)
		as(&o, &t[i], theta + t[i].at);
	o.text[o.len++] = '}';
	bytes_set64(head, o.len);
	if (fwrite(head, 1, 8, o.f) != 8 || fwrite(o.text, 1, o.len, o.f) != o.len)
		fail(path);
	o.bytes = 1;
	for (i = 0; i < n; i++)
		as(&o, &t[i], theta + t[i].at);
	if (fclose(o.f) != 0)
		fail(path);
	free(o.text);
}

/* ---- GGUF ---- */

/* Append text to the file's head, which has room for it. */
struct gguf {
	unsigned char *p;
	size_t n;
};

static void
gguf_number(struct gguf *g, uint64_t v, size_t size)
{
	for (; size > 0; size--, v >>= 8)
		g->p[g->n++] = (unsigned char)v;
}

static void
gguf_text(struct gguf *g, const char *s)
{
	gguf_number(g, strlen(s), 8);
	memcpy(g->p + g->n, s, strlen(s));
	g->n += strlen(s);
}

/* Convert to f16 a number that is not negative, not subnormal and not too large. */
static uint16_t
f16(float x)
{
	uint32_t u = bytes_u32(x);

	u += 0xfff + (u >> 13 & 1);
	return u < 0x38800000 ? 0 : (uint16_t)((u - 0x38000000) >> 13);
}

/* Quantise blocks of 32 to an f16 scale and 32 numbers of 8 bits, rounded as ggml
 * does. Vectors are f32. */
static size_t
gguf_values(const struct tensor *t, const float *x, unsigned char *p)
{
	size_t i, k;
	float most, scale;

	if (t->ndim < 2 || t->dim[1] % Q8 != 0) {
		for (i = 0; i < t->n; i++)
			bytes_set32(p + 4 * i, bytes_u32(x[i]));
		return 4 * t->n;
	}
	for (i = 0; i < t->n; i += Q8, p += Q8_BYTES) {
		for (most = 0, k = 0; k < Q8; k++)
			most = fmaxf(most, fabsf(x[i + k]));
		scale = most / 127;
		bytes_set16(p, f16(scale));
		for (k = 0; k < Q8; k++)
			p[2 + k] = (unsigned char)(signed char)lrintf(roundf(
			    scale > 0 ? x[i + k] / scale : 0));
	}
	return t->n / Q8 * Q8_BYTES;
}

static void
put_gguf(const char *dir, const char *name, const struct tensor *t, size_t n,
    const float *theta)
{
	struct gguf g = { room(n * 128 + 256), 0 };
	unsigned char *all;
	char path[4096];
	size_t i, k, at = 0, size, blocks;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/q8_0-%s", dir, name);
	memcpy(g.p, "GGUF", 4);
	g.n = 4;
	gguf_number(&g, 3, 4);
	gguf_number(&g, n, 8);
	gguf_number(&g, 1, 8);
	gguf_text(&g, "general.architecture");
	gguf_number(&g, 8, 4);
	gguf_text(&g, "bench");
	for (i = size = 0; i < n; size += t[i++].n)
		;
	all = room(4 * size + n * ALIGN);
	for (i = 0; i < n; i++) {
		blocks = t[i].ndim > 1 && t[i].dim[1] % Q8 == 0;
		gguf_text(&g, t[i].name);
		gguf_number(&g, t[i].ndim, 4);
		for (k = t[i].ndim; k > 0; k--)
			gguf_number(&g, t[i].dim[k - 1], 8);
		gguf_number(&g, blocks ? 8 : 0, 4);
		gguf_number(&g, at, 8);
		at += gguf_values(&t[i], theta + t[i].at, all + at);
		at = (at + ALIGN - 1) / ALIGN * ALIGN;
	}
	g.n = (g.n + ALIGN - 1) / ALIGN * ALIGN;
	if ((f = fopen(path, "wb")) == NULL ||
	    fwrite(g.p, 1, g.n, f) != g.n || fwrite(all, 1, at, f) != at || fclose(f) != 0)
		fail(path);
	free(all);
	free(g.p);
}

static void
put_all(const char *dir, const char *name, const struct tensor *t, size_t n,
    const float *theta)
{
	char other[64];

	put(dir, name, t, n, theta, as_bf16);
	(void)snprintf(other, sizeof(other), "fp8-%s", name);
	put(dir, other, t, n, theta, as_fp8);
	(void)snprintf(other, sizeof(other), "nvfp4-%s", name);
	put(dir, other, t, n, theta, as_nvfp4);
	put_gguf(dir, name, t, n, theta);
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
	const struct shape shape = { 4, 128, 4, CONTEXT };
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
	put_all(dir, "old", t.m->tensor, t.m->ntensors, t.m->theta);
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
		put_all(dir, name, t.m->tensor, t.m->ntensors, t.m->theta);
	}
	for (k = 0; k < 3; k++)
		free(kept[k]);
	optim_free(t.o);
	model_free(t.m);
	data_free(&t.d);
	free(t.text);
}

/* ---- synthetic ---- */

/* Draw weights from N(0, 0.02), and a change of about the rate, clipped as Adam's is. */
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
	put(dir, "old", &t, 1, x, as_bf16);
	for (i = 0; i < n; i++) {
		pair(1, (uint32_t)i, &a, &b, &u);
		x[i] -= (float)(rate * fmax(-1, fmin(1, b)));
	}
	put(dir, "new", &t, 1, x, as_bf16);
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
	/* the whole GGUF file, since its head is short */
	text = memcmp(head, "GGUF", 4) == 0 ? 0 : 8 + bytes_le64(head);
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
beside(const char *old, const char *new, size_t size, const char *out)
{
	size_t n, m, i, k = 0;
	unsigned char *a = values(old, &n), *b = values(new, &m);
	FILE *f = fopen(out, "wb");

	if (f == NULL || n != m)
		fail(out);
	for (i = 0; i + size <= n; i += size)
		k += memcmp(a + i, b + i, size) != 0;
	for (i = 0; i < n; i++)
		a[i] ^= b[i];
	if (fwrite(a, 1, n, f) != n || fclose(f) != 0)
		fail(out);
	(void)printf("%.3g %zu\n", 100.0 * (double)k * (double)size / (double)n,
	    k * (4 + size));
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

	alloc_keep();			/* as our programs do */
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
	else if (argc == 6 && strcmp(argv[1], "beside") == 0)
		beside(argv[2], argv[3], strtoull(argv[4], NULL, 10), argv[5]);
	else if (argc == 4 && strcmp(argv[1], "coder") == 0)
		coder(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
