/* The tensor table: groups, limits and differences. */
#include "base/err.h"
#include "format/schema.h"

#include "../test.h"

static struct err e;

/* Add an f32 tensor of the first ndim dimensions of a, b and c. */
static int
add(struct schema *s, const char *name, unsigned ndim, uint64_t a, uint64_t b,
    uint64_t c)
{
	struct schema_tensor t;

	memset(&t, 0, sizeof(t));
	t.name = (char *)(uintptr_t)name;
	t.ndim = (uint8_t)ndim;
	t.dim[0] = a;
	t.dim[1] = b;
	t.dim[2] = c;
	err_clear(&e);
	return schema_add(s, &t, &e);
}

static int
word(int r, const char *w)
{
	return r == -ERR_DATA && strncmp(ERR_MSG(&e), w, strlen(w)) == 0;
}

/* Add four tensors: 10x20 in 4 groups of at most 64, an empty one, a scalar, and 3x5. */
static void
sample(struct schema *s)
{
	s->group_size = 64;
	(void)add(s, "embed", 2, 10, 20, 0);
	(void)add(s, "empty", 2, 0, 7, 0);
	(void)add(s, "scalar", 0, 0, 0, 0);
	(void)add(s, "last", 2, 3, 5, 0);
	(void)schema_finish(s, &e);
}

TEST(test_groups)
{
	static const struct schema_span want[] = {
		{ 0, 20, 0, 0, 64 }, { 0, 20, 64, 64, 64 }, { 0, 20, 128, 128, 64 },
		{ 0, 20, 192, 192, 8 }, { 2, 1, 0, 200, 1 }, { 3, 5, 0, 201, 15 }
	};
	struct schema s = SCHEMA_INIT;
	struct schema_span span;
	unsigned g, bad = 0;

	sample(&s);
	ok(s.n == 4 && s.ngroups == 6 && s.total == 216, "6 groups, 216 "
	    "elements");
	for (g = 0; g < 6; g++) {
		schema_span(&s, g, &span);
		bad += span.tensor != want[g].tensor ||
		    span.cols != want[g].cols || span.first != want[g].first ||
		    span.offset != want[g].offset || span.n != want[g].n;
	}
	ok(bad == 0, "each group begins at its offset");
	schema_release(&s);
	s.group_size = 64;
	(void)add(&s, "vector", 1, 70, 0, 0);
	schema_span(&s, 1, &span);
	ok(span.cols == 70 && span.offset == 64 && span.n == 6,
	    "a vector is one row");
	schema_release(&s);
}

/* Values beyond the limits are refused; values at the limits are not. */
TEST(test_limits)
{
	const struct schema_tensor t = { .name = (char []){ "w" }, .dtype = SCHEMA_NDTYPE };
	struct schema s = SCHEMA_INIT;
	char name[300];

	memset(name, 'x', sizeof(name));
	name[256] = '\0';
	ok(word(add(&s, name, 0, 0, 0, 0), "unsupported"), "256 bytes of name");
	name[255] = '\0';
	ok(add(&s, name, 0, 0, 0, 0) == 0, "255 bytes of name");
	ok(word(add(&s, "a\nb", 0, 0, 0, 0), "unsupported"), "a line break");
	ok(word(add(&s, "w", 9, 1, 1, 1), "limit"), "9 dimensions");
	ok(word(add(&s, "w", 2, (uint64_t)1 << 40, 2, 0), "limit"),
	    "2^41 elements");
	ok(word(add(&s, "w", 3, (uint64_t)1 << 32, (uint64_t)1 << 32,
	    (uint64_t)1 << 32), "limit"), "a product that overflows");
	ok(add(&s, "z", 3, (uint64_t)1 << 40, (uint64_t)1 << 40, 0) == 0,
	    "a zero makes any product zero: %s", ERR_MSG(&e));
	/* one element (with the name of 255 bytes) exists already */
	ok(add(&s, "most", 1, ((uint64_t)1 << 40) - 1, 0, 0) == 0,
	    "2^40 elements in all");
	ok(word(add(&s, "more", 1, 1, 0, 0), "limit"), "2^40 + 1 in all");
	err_clear(&e);
	ok(word(schema_add(&s, &t, &e), "unsupported"), "unknown dtype");
	schema_release(&s);
	s.group_size = 0;
	ok(word(add(&s, "w", 0, 0, 0, 0), "limit"), "groups of 0");
	s.group_size = SCHEMA_MAX_GROUP + 1;
	ok(word(add(&s, "w", 0, 0, 0, 0), "limit"), "groups of 2^20 + 1");
	s.group_size = 1;
	ok(word(add(&s, "w", 1, (uint64_t)1 << 33, 0, 0), "limit"),
	    "2^33 groups");
	schema_release(&s);
	s.group_size = SCHEMA_MAX_GROUP;
	ok(SCHEMA_MAX_GROUP == 1048576 && add(&s, "w", 0, 0, 0, 0) == 0,
	    "groups of 1048576: %s", ERR_MSG(&e));
	schema_release(&s);
}

/* Compare a with a model that has one tensor `embed', in both orders. want: words of why. */
static void
differs(const struct schema *a, uint8_t ndim, uint64_t rows, uint64_t cols,
    uint8_t dtype, const char *want)
{
	struct schema_tensor t = { .name = (char []){ "embed" }, .ndim = ndim,
	    .dim = { rows, cols }, .dtype = dtype };
	struct schema b = SCHEMA_INIT;
	char why[256] = "";

	b.group_size = 64;
	(void)schema_add(&b, &t, &e);
	(void)schema_finish(&b, &e);
	ok(schema_diff(a, &b, why) == 1 && strstr(why, want) != NULL, "%s", why);
	ok(schema_diff(&b, a, why) == 1 && strstr(why, want) != NULL,
	    "and in the other order");
	schema_release(&b);
}

TEST(test_diff)
{
	static const struct {
		uint32_t group;
		uint64_t rows, cols;	/* of embed */
		const char *also;	/* name of a second tensor, 0 by 7 */
		const char *says, *says_too;
	} t[] = {
		{ 32, 10, 20, NULL, "64 and 32", "" },
		{ 64, 20, 10, NULL, "'embed'", "" },
		{ 64, 10, 20, "leer", "'empty'", "'leer'" },
		{ 64, 10, 20, NULL, "4 and 1", "" }
	};
	struct schema a = SCHEMA_INIT, b = SCHEMA_INIT;
	char why[256] = "";
	size_t i;

	sample(&a);
	ok(schema_copy(&b, &a, &e) == 0 && schema_diff(&a, &b, why) == 0,
	    "a copy is the same");
	schema_release(&b);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		b.group_size = t[i].group;
		(void)add(&b, "embed", 2, t[i].rows, t[i].cols, 0);
		if (t[i].also != NULL)
			(void)add(&b, t[i].also, 2, 0, 7, 0);
		(void)schema_finish(&b, &e);
		ok(schema_diff(&a, &b, why) == 1 && strstr(why, t[i].says) != NULL &&
		    strstr(why, t[i].says_too) != NULL, "%s", why);
		schema_release(&b);
	}
	differs(&a, 1, 10, 0, SCHEMA_F32, "'embed' differs in shape");
	differs(&a, 2, 10, 20, SCHEMA_F16, "'embed' differs in dtype");
	schema_release(&a);
}

TEST(test_guess)
{
	static const struct {
		const char *name;
		uint8_t ndim;
		uint32_t kind;
		uint64_t roles;
	} want[] = {
		{ "h.0.ln_1.weight", 1, SCHEMA_NORM, SCHEMA_ROLE_DENSE },
		{ "fc.bias", 1, SCHEMA_BIAS, SCHEMA_ROLE_DENSE },
		{ "wte.weight", 2, SCHEMA_EMBEDDING, 0 },
		{ "conv1.weight", 4, SCHEMA_CONV, 0 },
		{ "fc.weight", 2, SCHEMA_WEIGHT, 0 },
		{ "alpha", 1, SCHEMA_OTHER, 0 },
		{ "h.0.ln.weight", 1, SCHEMA_NORM, SCHEMA_ROLE_DENSE },
		{ "bn1.running_mean", 1, SCHEMA_NORM, SCHEMA_ROLE_DENSE },
		{ "final_norm.weight", 1, SCHEMA_NORM, SCHEMA_ROLE_DENSE },
		{ "norm.bias", 1, SCHEMA_NORM, SCHEMA_ROLE_DENSE },
		{ "wpe.weight", 2, SCHEMA_EMBEDDING, 0 },
		{ "tok_emb.weight", 2, SCHEMA_EMBEDDING, 0 },
		{ "cube", 3, SCHEMA_WEIGHT, 0 }
	};
	struct schema_tensor t;
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		memset(&t, 0, sizeof(t));
		t.name = (char *)(uintptr_t)want[i].name;
		t.ndim = want[i].ndim;
		t.dim[0] = t.dim[1] = t.dim[2] = t.dim[3] = 3;
		schema_guess(&t);
		ok(t.kind == want[i].kind && t.roles == want[i].roles,
		    "%s is %s", t.name, schema_kind_name(t.kind));
	}
	memset(&t, 0, sizeof(t));
	t.name = (char []){ "row" };
	t.ndim = 3;
	t.dim[0] = t.dim[1] = 1;
	t.dim[2] = 9;
	schema_guess(&t);
	ok(t.kind == SCHEMA_OTHER, "a tensor with one dimension above 1 is a vector");
}
