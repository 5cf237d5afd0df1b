/*
 * Files of a step in a spool: shards of earlier steps, and files that change while they
 * are read.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/io.h"
#include "mean/gather.h"
#include "format/writer.h"

#include "../inside.h"
#include "../test.h"
#include "../model.h"

enum { FILES = 8 };

static struct err e;
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

/* Make file i with n shards. */
static void
make(int i, const struct spec *p, size_t n)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct writer *w;
	struct io *io;
	size_t k;

	(void)snprintf(paths[i], sizeof(paths[i]), "%d", i);
	path[i] = paths[i];
	(void)io_create(&io, path[i], 0, &e);
	(void)writer_open(&w, io, &o, &e);
	for (k = 0; k < n; k++)
		put(w, &p[k]);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
}

/* Read the next step: devices and first values, "b=2 a=1 c=3 ", then the result. */
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

/* Allow this process few open files, or as many as before. */
static void
few_files(int few)
{
	static struct rlimit was;
	struct rlimit now;

	if (few)
		(void)getrlimit(RLIMIT_NOFILE, &was);
	now = was;
	now.rlim_cur = few ? 32 : was.rlim_cur;
	(void)setrlimit(RLIMIT_NOFILE, &now);
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

/* A device's newest shard and its shards of earlier steps, which may be more than can be
 * open, are one contribution. */
TEST(test_earlier)
{
	enum { N = 40 };
	struct spec s = { NULL, "run", 0, 0, 8, 0 };
	struct reader_opts o = { .max_elements = 0 };
	static char of[N + 3][80];
	char *list[N + 3], out[256] = "";
	struct gather *g;
	size_t i;

	for (i = 0; i < N + 3; i++) {
		/* a: steps 60 to 99; b: 50 and 100; c: 99 */
		s.device = i < N ? "a" : i < N + 2 ? "b" : "c";
		s.step = i < N ? 60 + i * 7 % N : i == N ? 50 : i == N + 1 ? 100 : 99;
		s.value = i < N ? (float)(i + 1) : 1000.0f * (float)(i - N + 1);
		make(0, &s, 1);
		list[i] = of[i];
		(void)snprintf(of[i], sizeof(of[i]), "of-%zu", i);
		(void)rename(path[0], list[i]);
	}
	few_files(1);
	err_clear(&e);
	ok(gather_many(&g, 100, list, N + 3, 0, &o, &e) == 0 && step(g, out) == 1 &&
	    gather_count(g) == 3 && strstr(out, "a=820 ") != NULL &&
	    strstr(out, "b=3000 ") != NULL && strstr(out, "c=3000 ") != NULL &&
	    gather_shard(g, 0)->step == 100, "%s%s", out, ERR_MSG(&e));
	gather_free(g);
	/* a shard that is repeated or of another run is blamed */
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
	few_files(0);
}

/* A changed file is also blamed if more files exist than can be open. */
TEST(test_changed_late)
{
	enum { N = 20 };		/* a window has 16 */
	struct reader_opts o = { .max_elements = 0 };
	static char names[N][4], of[N][80];
	struct spec s = { NULL, "run", 3, 2, 8, 0 };
	char *list[N];
	struct gather *g;
	size_t i;

	for (i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "d%02zu", i);
		s.device = names[i];
		make(0, &s, 1);
		list[i] = of[i];
		(void)snprintf(of[i], sizeof(of[i]), "of-%zu", i);
		(void)rename(path[0], list[i]);
	}
	few_files(1);
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
	few_files(0);
}
