/* Option tables: the values accepted, the fields set, the messages. */
#include "base/err.h"
#include "base/opt.h"

#include "../test.h"

enum animal { CAT, DOG, COW };

struct part {
	double gamma;
	uint64_t n;
};

struct all {
	int flag, sum, called;
	const char *text, *path, *heard;
	uint64_t n;
	unsigned small;
	double x, secs, rate;
	uint64_t size;
	enum animal animal;
	struct part part;
};

static struct err e;

static int
call(void *arg, const struct opt *row, const char *val, struct err *err)
{
	struct all *a = arg;

	a->called = row->value;
	a->heard = val;
	return val != NULL && strcmp(val, "bad") == 0 ?
	    err_set(err, ERR_USAGE, "--call '%s'", val) : 0;
}

static const char *
number(unsigned i)
{
	return i == 0 ? "zero" : i == 1 ? "one" : NULL;
}

static const char *const animals[] = { "cat", "dog", "cow", NULL };
static const struct opt part_rows[] = {
	{ 0, "gamma", "G", "times", OPT_F64(struct part, gamma, 0, 1), .def = "1" },
	{ 0, "n", "N", "so many", OPT_U64(struct part, n, 0, UINT64_MAX) },
	OPT_END
};
static const struct opt rows[] = {
	{ 'f', "flag", NULL, "a flag", OPT_FLAG(struct all, flag) },
	{ 0, "mean", NULL, "no sum", OPT_VALUE(struct all, sum, 0) },
	{ 0, "sum", NULL, "one", OPT_VALUE(struct all, sum, 2) },
	{ 't', "text", "TEXT", "some", OPT_TEXT(struct all, text), .def = "none" },
	{ 'o', "out", "FILE", "to FILE", OPT_PATH(struct all, path, OPT_WRITE) },
	{ 'n', "n", "N", "so many", OPT_U64(struct all, n, 3, 2000) },
	{ 0, "small", "N", "few", OPT_U64(struct all, small, 1, 8), .def = "2" },
	{ 0, "x", "X", "real", OPT_F64(struct all, x, -1, 1e9) },
	{ 0, "secs", "TIME", "later", OPT_TIME(struct all, secs), .lo.f = 0.1,
	    .def = "60s" },
	{ 0, "half", "RATE", "some", OPT_RATE(struct all, rate), .lo.f = 1e-300 },
	{ 0, "rate", "RATE", "fast", OPT_RATE(struct all, rate), .lo.f = 8,
	    .hi.f = 1e9 },
	{ 0, "size", "SIZE", "large", OPT_SIZE(struct all, size),
	    .set = call, .value = 7 },
	{ 0, "animal", "NAME", NULL, OPT_WORD(struct all, animal, animals),
	    .def = "dog" },
	{ 0, "call", "LIST", "what call makes of it", OPT_CALL(call),
	    .word = number, .several = 1, .value = 9 },
	{ 0, "hidden", NULL, NULL, OPT_CALL(call), .value = 11 },
	OPT_PART(part_rows, struct all, part),
	OPT_END
};

static int
take(struct all *a, const char *name, const char *val)
{
	const struct opt_place p = { opt_named(rows, name), a };

	err_clear(&e);
	return opt_take(&p, val, &e);
}

static int
refused(const char *name, const char *val, const char *why)
{
	struct all a = { 0 };

	return take(&a, name, val) == -ERR_USAGE && strcmp(ERR_MSG(&e), why) == 0;
}

TEST(test_take)
{
	struct all a = { .sum = 1 };

	ok(take(&a, "flag", NULL) == 0 && a.flag == 1, "a flag");
	ok(take(&a, "mean", NULL) == 0 && a.sum == 0, "a flag that sets 0");
	ok(take(&a, "sum", NULL) == 0 && a.sum == 2, "a flag that sets 2");
	ok(take(&a, "text", "words") == 0 && strcmp(a.text, "words") == 0,
	    "a text");
	ok(take(&a, "out", "a/b") == 0 && strcmp(a.path, "a/b") == 0, "a path");
	ok(take(&a, "n", "2000") == 0 && a.n == 2000, "a whole number");
	ok(take(&a, "small", "8") == 0 && a.small == 8, "a small whole number");
	ok(take(&a, "x", "-0.5") == 0 && a.x == -0.5, "a number");
	ok(take(&a, "secs", "250ms") == 0 && fabs(a.secs - 0.25) < 1e-12,
	    "a time");
	ok(take(&a, "rate", "5Mbit") == 0 && a.rate == 5e6, "a rate");
	ok(take(&a, "size", "64Ki") == 0 && a.size == 65536 && a.called == 7 &&
	    strcmp(a.heard, "64Ki") == 0, "a size, and then what set does");
	ok(take(&a, "animal", "cow") == 0 && a.animal == COW, "a word");
	ok(take(&a, "call", "one,zero") == 0 && a.called == 9 &&
	    strcmp(a.heard, "one,zero") == 0, "an option that only calls a function");
	ok(take(&a, "hidden", NULL) == 0 && a.called == 11, "one not shown");
}

TEST(test_refused)
{
	struct all a = { 0 };

	ok(refused("n", "2", "--n '2' is not a whole number from 3 to 2000"),
	    "%s", ERR_MSG(&e));
	ok(refused("small", "9", "--small '9' is not a whole number from 1 to "
	    "8"), "%s", ERR_MSG(&e));
	ok(refused("x", "-2", "--x '-2' is not a number from -1 to 1e+09"),
	    "%s", ERR_MSG(&e));
	ok(refused("secs", "50ms", "--secs '50ms': expected at least 0.1 s"), "%s",
	    ERR_MSG(&e));
	ok(refused("rate", "7bit", "--rate '7bit': expected at least 8 bit/s"), "%s",
	    ERR_MSG(&e));
	ok(refused("half", "0bit", "--half '0bit': expected more than 0"), "%s",
	    ERR_MSG(&e));
	ok(refused("rate", "2Gbit", "--rate '2Gbit': expected at most 1e+09 bit/s"), "%s",
	    ERR_MSG(&e));
	ok(refused("animal", "do", "--animal 'do': expected cat, dog or cow"), "%s",
	    ERR_MSG(&e));
	ok(refused("call", "bad", "--call 'bad'"), "%s", ERR_MSG(&e));
	a.called = 0;
	ok(take(&a, "size", "x") == -ERR_USAGE && a.called == 0,
	    "no call for a refused value");
}

TEST(test_tables)
{
	static const struct opt outer[] = {
		OPT_SHARED(part_rows), OPT_ROWS(rows), OPT_END };
	struct opt_place at[32];
	struct part shared;
	struct all a = { .n = 5 };
	size_t n = opt_list(at, 0, 32, outer, &a, &shared);

	ok(n == 19 && at[0].row == part_rows && at[0].base == &shared,
	    "rows for the struct that all share");
	ok(at[2].row == rows && at[2].base == &a, "rows for the same struct");
	ok(at[17].row == part_rows && at[17].base == &a.part,
	    "rows for a part of the struct");
	ok(opt_list(at, 0, 3, outer, &a, &shared) == 3, "no more tables than fit");
	ok(opt_list(at, 4, 32, NULL, &a, NULL) == 4, "no table");
	ok(opt_named(outer, "gamma") == part_rows &&
	    opt_named(outer, "flag") == rows && opt_named(rows, "no") == NULL,
	    "found by name");
	ok(opt_defaults(rows, &a, &e) == 0 && a.small == 2 && a.secs == 60 &&
	    a.animal == DOG && strcmp(a.text, "none") == 0, "defaults");
	ok(a.n == 5 && a.path == NULL && a.called == 0,
	    "a field without a default is unchanged");
}

static const char *
says(const char *name)
{
	static char text[128];

	opt_says(opt_named(rows, name), text, sizeof(text));
	return text;
}

/* Return what opt_row prints for an option. */
static const char *
row(const char *name)
{
	static char text[256];
	FILE *f = tmpfile();
	int was = dup(STDOUT_FILENO);
	size_t n;

	(void)fflush(stdout);
	if (f == NULL || was < 0 || dup2(fileno(f), STDOUT_FILENO) < 0)
		return "no file";
	opt_row(opt_named(rows, name));
	(void)fflush(stdout);
	(void)dup2(was, STDOUT_FILENO);
	(void)close(was);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	return text;
}

TEST(test_says)
{
	ok(strcmp(says("flag"), "a flag") == 0, "help alone");
	ok(strcmp(says("secs"), "later (default 60s)") == 0, "%s", says("secs"));
	ok(strcmp(says("small"), "few (1 to 8, default 2)") == 0, "%s",
	    says("small"));
	ok(strcmp(says("gamma"), "times (0 to 1, default 1)") == 0, "%s",
	    says("gamma"));
	ok(strcmp(says("n"), "so many") == 0 && strcmp(says("x"), "real") == 0,
	    "wide limits are not shown");
	ok(strcmp(says("animal"), "cat, dog or cow (default dog)") == 0, "%s",
	    says("animal"));
	ok(says("hidden")[0] == '\0', "one not shown");
	ok(strcmp(row("out"), "option\tout\to\tFILE\ttext\twrite\t\t\tto FILE\n")
	    == 0, "%s", row("out"));
	ok(strcmp(row("animal"), "option\tanimal\t\tNAME\tword\t\tdog\tcat dog "
	    "cow\tcat, dog or cow (default dog)\n") == 0, "%s", row("animal"));
	ok(strcmp(row("call"), "option\tcall\t\tLIST\tcall\t\t\t,zero one\t"
	    "what call makes of it\n") == 0, "%s", row("call"));
}
