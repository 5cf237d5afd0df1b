/*
 * Shards of one step in lockstep: ordered by device whatever the order of
 * arrival, from several files or from one; disagreements by name.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/io.h"
#include "format/array.h"
#include "mean/gather.h"
#include "format/writer.h"

#include "../tap.h"
#include "../model.h"

enum { FILES = 8 };

static struct err e;
static char dir[] = "/tmp/ace-gather.XXXXXX";
static char paths[FILES][64];
static char *path[FILES];

struct spec {
	const char *device, *run;
	uint64_t step;
	float value;
	uint64_t dim;
	uint32_t flags;
};

static void
put(struct writer *w, const struct spec *p)
{
	struct schema sc = model_of(p->dim, 0, 4);
	struct shard s;
	float x[4] = { p->value, p->value, p->value, p->value };

	shard_init(&s);
	s.step = p->step;
	s.flags = p->flags;
	(void)shard_set_run(&s, p->run, &e);
	(void)shard_set_device(&s, p->device, &e);
	(void)writer_shard(w, &s, &sc, &e);
	/* group 1 is never sent */
	(void)writer_values(w, 0, x, 4, &e);
	(void)writer_send(w, NULL, &e);
	shard_release(&s);
	schema_release(&sc);
}

/* File i: n shards. */
static void
make(int i, const struct spec *p, size_t n)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct writer *w;
	struct io *io;
	size_t k;

	(void)snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	path[i] = paths[i];
	(void)io_create(&io, path[i], 0, &e);
	(void)writer_open(&w, io, &o, &e);
	for (k = 0; k < n; k++)
		put(w, &p[k]);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
}

/* The next step: devices and first values, "b=2 a=1 c=3 "; then what ended it. */
static int
step(struct gather *g, char out[256])
{
	const struct schema *sc;
	size_t i, n = 0;
	const float *x, *none;
	int r;

	out[0] = '\0';
	if ((r = gather_step(g, &e)) <= 0)
		return r;
	if ((r = gather_window(g, 0, &e)) < 0)
		return r;
	sc = gather_schema(g);
	for (i = 0; i < gather_count(g); i++) {
		if ((r = gather_group(g, i, 0, &x, NULL, &e)) < 0)
			return r;
		n += (size_t)snprintf(out + n, 256 - n, "%s=%g ",
		    shard_device(gather_shard(g, i)), (double)x[0]);
		if (sc->ngroups > 1 && ((r = gather_group(g, i, 1, &none,
		    NULL, &e)) < 0 || none != NULL))
			return r < 0 ? r : -99;
	}
	r = gather_finish(g, &e);
	return r < 0 ? r : 1;
}

/* Opens, takes one step. */
static int
once(char **list, size_t n, uint64_t expect, char out[256])
{
	struct reader_opts o = { .max_elements = 0 };
	struct gather *g;
	int r;

	err_clear(&e);
	out[0] = '\0';
	if ((r = gather_open(&g, list, n, 0, expect, -1, &o, &e)) == 0)
		r = step(g, out);
	gather_free(g);
	return r;
}

TEST(test_order)
{
	static const struct spec a[] = { { "a", "run", 3, 1, 8, 0 } };
	static const struct spec b[] = { { "b", "run", 3, 2, 8, 0 } };
	static const struct spec c[] = { { "c", "run", 3, 3, 8, 0 } };
	static const struct spec all[] = { { "c", "run", 3, 3, 8, 0 },
	    { "a", "run", 3, 1, 8, 0 }, { "b", "run", 3, 2, 8, 0 } };
	char first[256], other[256], *turned[3];

	make(0, a, 1);
	make(1, b, 1);
	make(2, c, 1);
	make(3, all, 3);
	ok(once(path, 3, 0, first) == 1 && strlen(first) == 12, "%s%s", first,
	    ERR_MSG(&e));
	turned[0] = path[2];
	turned[1] = path[0];
	turned[2] = path[1];
	ok(once(turned, 3, 3, other) == 1 && strcmp(first, other) == 0,
	    "the same in another order");
	ok(once(path + 3, 1, 0, other) == 1 && strcmp(first, other) == 0,
	    "the same from one input: %s%s", other, ERR_MSG(&e));
	ok(once(path + 3, 1, 3, other) == 1 && strcmp(first, other) == 0,
	    "three expected from one input");
	ok(once(path + 3, 1, 4, other) == -ERR_REFUSED, "four: %s", ERR_MSG(&e));
	ok(once(path, 3, 4, other) == -ERR_REFUSED, "four of three: %s",
	    ERR_MSG(&e));
}

TEST(test_refusals)
{
	static const struct spec a[] = { { "a", "run", 3, 1, 8, 0 } };
	static const struct spec run[] = { { "b", "walk", 3, 1, 8, 0 } };
	static const struct spec late[] = { { "b", "run", 4, 1, 8, 0 } };
	static const struct spec wide[] = { { "b", "run", 3, 1, 7, 0 } };
	static const struct spec saved[] = {
		{ "b", "run", 3, 1, 8, SHARD_RECOVERED } };
	char out[256], *same[2];

	make(0, a, 1);
	make(1, run, 1);
	ok(once(path, 2, 0, out) == -ERR_DATA && strstr(ERR_MSG(&e), "'walk'") !=
	    NULL && strstr(ERR_MSG(&e), "'run'") != NULL, "%s", ERR_MSG(&e));
	make(1, late, 1);
	ok(once(path, 2, 0, out) == -ERR_DATA && strstr(ERR_MSG(&e), "step 3") !=
	    NULL && strstr(ERR_MSG(&e), "step 4") != NULL, "%s", ERR_MSG(&e));
	make(1, wide, 1);
	ok(once(path, 2, 0, out) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "mismatch", 8) == 0 && strstr(ERR_MSG(&e), "'w'") != NULL,
	    "%s", ERR_MSG(&e));
	make(1, saved, 1);
	ok(once(path, 2, 0, out) == -ERR_REFUSED &&
	    strstr(ERR_MSG(&e), "recovered") != NULL, "%s", ERR_MSG(&e));
	same[0] = same[1] = path[0];
	ok(once(same, 2, 0, out) == -ERR_REFUSED, "%s", ERR_MSG(&e));
}

TEST(test_steps)
{
	static const struct spec a[] = { { "a", "run", 1, 1, 8, 0 },
	    { "a", "run", 2, 2, 8, 0 } };
	static const struct spec b[] = { { "b", "run", 1, 3, 8, 0 },
	    { "b", "run", 2, 4, 8, 0 } };
	static const struct spec mixed[] = { { "a", "run", 1, 1, 8, 0 },
	    { "b", "run", 1, 3, 8, 0 }, { "a", "run", 2, 2, 8, 0 },
	    { "b", "run", 2, 4, 8, 0 } };
	struct reader_opts o = { .max_elements = 0 };
	char one[256], two[256];
	struct gather *g;
	int i;

	make(0, a, 2);
	make(1, b, 2);
	make(2, mixed, 4);
	for (i = 0; i < 2; i++) {
		err_clear(&e);
		(void)gather_open(&g, path + 2 * i, i == 0 ? 2 : 1, 0, 0, -1, &o, &e);
		ok(step(g, one) == 1 && strstr(one, "a=1 ") != NULL &&
		    strstr(one, "b=3 ") != NULL, "step 1: %s%s", one, ERR_MSG(&e));
		ok(step(g, two) == 1 && strstr(two, "a=2 ") != NULL &&
		    strstr(two, "b=4 ") != NULL, "step 2: %s%s", two, ERR_MSG(&e));
		ok(step(g, one) == 0, "the end");
		gather_free(g);
	}
	make(1, b, 1);
	(void)gather_open(&g, path, 2, 0, 0, -1, &o, &e);
	ok(step(g, one) == 1 && step(g, two) == -ERR_REFUSED,
	    "one ends before the other: %s", ERR_MSG(&e));
	gather_free(g);
}

TEST(test_changed)
{
	static const struct spec a[] = { { "a", "run", 3, 2, 8, 0 } };
	static const struct spec b[] = { { "b", "run", 3, 2, 8, 0 } };
	struct reader_opts o = { .max_elements = 0 };
	struct gather *g;

	make(0, a, 1);
	err_clear(&e);
	ok(gather_many(&g, 3, path, 1, 0, &o, &e) == 0 && gather_step(g, &e) == 1,
	    "a file: %s", ERR_MSG(&e));
	make(0, b, 1);
	ok(gather_window(g, 0, &e) == -ERR_DATA && gather_blamed(g) == 1 &&
	    strstr(ERR_MSG(&e), path[0]) != NULL, "that becomes another: %s",
	    ERR_MSG(&e));
	gather_free(g);
}

/* Shards of earlier steps, of which a device may have more than are open at a time,
 * are one contribution with its own. */
TEST(test_earlier)
{
	enum { N = 40 };
	struct spec s = { NULL, "run", 0, 0, 8, 0 };
	struct reader_opts o = { .max_elements = 0 };
	static char of[N + 3][80];
	char *list[N + 3], out[256] = "";
	struct rlimit lim, low;
	struct gather *g;
	size_t i;

	for (i = 0; i < N + 3; i++) {
		/* a: steps 60 to 99; b: 50 and 100; c: 99 */
		s.device = i < N ? "a" : i < N + 2 ? "b" : "c";
		s.step = i < N ? 60 + i * 7 % N : i == N ? 50 : i == N + 1 ? 100 : 99;
		s.value = i < N ? (float)(i + 1) : 1000.0f * (float)(i - N + 1);
		make(0, &s, 1);
		list[i] = of[i];
		(void)snprintf(of[i], sizeof(of[i]), "%s/of-%zu", dir, i);
		(void)rename(path[0], list[i]);
	}
	(void)getrlimit(RLIMIT_NOFILE, &lim);
	low = lim;
	low.rlim_cur = 32;
	(void)setrlimit(RLIMIT_NOFILE, &low);
	err_clear(&e);
	ok(gather_many(&g, 100, list, N + 3, 0, &o, &e) == 0 && step(g, out) == 1 &&
	    gather_count(g) == 3 && strstr(out, "a=820 ") != NULL &&
	    strstr(out, "b=3000 ") != NULL && strstr(out, "c=3000 ") != NULL &&
	    gather_shard(g, 0)->step == 100, "%s%s", out, ERR_MSG(&e));
	gather_free(g);
	/* one of them twice, or of another run, is to blame */
	list[3] = list[4];
	ok(gather_many(&g, 100, list, N + 3, 0, &o, &e) == 0 &&
	    gather_step(g, &e) == -ERR_REFUSED && (gather_blamed(g) == 4 ||
	    gather_blamed(g) == 5), "%zu: %s", gather_blamed(g), ERR_MSG(&e));
	gather_free(g);
	list[3] = of[3];
	s = (struct spec){ "a", "other", 5, 1, 8, 0 };
	make(0, &s, 1);
	(void)rename(path[0], list[3]);
	err_clear(&e);
	ok(gather_many(&g, 100, list, N + 3, 0, &o, &e) == 0 &&
	    gather_step(g, &e) == -ERR_DATA && gather_blamed(g) == 4, "%zu: %s",
	    gather_blamed(g), ERR_MSG(&e));
	gather_free(g);
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	for (i = 0; i < N + 3; i++)
		(void)unlink(of[i]);
}

/* With more files than are open at a time, too, it is the one to blame. */
TEST(test_changed_late)
{
	enum { N = 20 };		/* a window has 16 */
	struct reader_opts o = { .max_elements = 0 };
	static char names[N][4], of[N][80];
	struct spec s = { NULL, "run", 3, 2, 8, 0 };
	char *list[N];
	struct rlimit lim, low;
	struct gather *g;
	size_t i;

	for (i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "d%02zu", i);
		s.device = names[i];
		make(0, &s, 1);
		list[i] = of[i];
		(void)snprintf(of[i], sizeof(of[i]), "%s/of-%zu", dir, i);
		(void)rename(path[0], list[i]);
	}
	(void)getrlimit(RLIMIT_NOFILE, &lim);
	low = lim;
	low.rlim_cur = 32;
	(void)setrlimit(RLIMIT_NOFILE, &low);
	err_clear(&e);
	ok(gather_many(&g, 3, list, N, 0, &o, &e) == 0 && gather_step(g, &e) == 1 &&
	    gather_windows(g) == 2, "two windows: %s", ERR_MSG(&e));
	s.device = "other";
	make(0, &s, 1);
	(void)rename(path[0], list[18]);
	ok(gather_window(g, 0, &e) == 0 && gather_window(g, 1, &e) == -ERR_DATA &&
	    gather_blamed(g) == 19 && strstr(ERR_MSG(&e), list[18]) != NULL,
	    "the 19th became another: %zu, %s", (size_t)gather_blamed(g),
	    ERR_MSG(&e));
	gather_free(g);
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	for (i = 0; i < N; i++)
		(void)unlink(list[i]);
}

TEST(test_members)
{
	static const struct spec b[] = { { "b", "run", 3, 2, 8, 0 } };
	static const struct spec a[] = { { "a", "run", 3, 1, 8, 0 } };
	struct reader_opts o = { .max_elements = 0 };
	struct array_names l = ARRAY_NAMES_INIT;
	struct buf b2 = BUF_INIT;
	struct gather *g;
	char out[256];

	make(0, b, 1);
	make(1, a, 1);
	err_clear(&e);
	(void)gather_open(&g, path, 2, 0, 0, -1, &o, &e);
	ok(step(g, out) == 1 && gather_members(g, &l, &e) == 0 &&
	    array_put_names(&l, &b2, &e) == 0 && l.n == 2 &&
	    strcmp(l.p[0], "a") == 0 && strcmp(l.p[1], "b") == 0,
	    "members, sorted");
	array_release(&l);
	ok(array_get_names(&l, b2.p, b2.n, &e) == 0 && l.n == 2 &&
	    strcmp(l.p[1], "b") == 0, "and back");
	array_release(&l);
	buf_release(&b2);
	gather_free(g);
}

/* A list: count, 0, and for each name its length and its bytes. */
TEST(test_members_wrong)
{
	static const struct {
		const char *what, *p;
		size_t n;
	} bad[] = {
		{ "no list", "\1\0\0\0\1\0\0\0\1\0a", 11 },
		{ "fewer than it says", "\2\0\0\0\0\0\0\0\1\0a", 11 },
		{ "more", "\1\0\0\0\0\0\0\0\1\0a\1\0b", 14 },
		{ "not sorted", "\2\0\0\0\0\0\0\0\1\0b\1\0a", 14 },
		{ "an empty name", "\1\0\0\0\0\0\0\0\0\0", 10 },
		{ "a name that is cut", "\1\0\0\0\0\0\0\0\2\0a", 11 },
		{ "a name that rings", "\1\0\0\0\0\0\0\0\1\0\7", 11 }
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct array_names l = ARRAY_NAMES_INIT;

		err_clear(&e);
		ok(array_get_names(&l, (const unsigned char *)bad[i].p,
		    bad[i].n, &e) == -ERR_DATA && strncmp(ERR_MSG(&e),
		    "corrupt", 7) == 0, "contributors, %s: %s", bad[i].what,
		    ERR_MSG(&e));
		array_release(&l);
	}
}

int
main(void)
{
	int i;

	if (mkdtemp(dir) == NULL)
		return 99;
	run_tests();
	for (i = 0; i < FILES; i++)
		if (path[i] != NULL)
			(void)unlink(path[i]);
	(void)rmdir(dir);
	return done_testing();
}
