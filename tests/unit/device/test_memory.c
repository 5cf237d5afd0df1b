#include <fcntl.h>

#include "../tap.h"
#include "base/err.h"
#include "device/dense.h"
#include "device/memory.h"

static void
there_and_back(const struct statedir *s)
{
	enum { N = 70000 };	/* more than one group */
	static float x[N];
	struct memory h = MEMORY_INIT, g;
	struct err e = ERR_INIT;
	const float *y;
	float two[2] = { 1.5f, -2 };
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)i * 0.25f;
	ok(memory_load(&g, s, "score", &e) == 0 && g.n == 0,
	    "no file: nothing, no error");
	ok(memory_put(&h, "m1", x, N, &e) == 0 &&
	    memory_put(&h, "w", two, 2, &e) == 0 &&
	    text_set(&h.kv, "model", "abc", &e) == 0 &&
	    memory_save(&h, s, "score", NULL, "test", &e) == 0,
	    "saved %s", ERR_MSG(&e));
	ok(memory_load(&g, s, "score", &e) == 1, "loaded %s", ERR_MSG(&e));
	y = memory_row(&g, "m1", N);
	ok(y != NULL && memcmp(x, y, sizeof(x)) == 0, "the long row");
	y = memory_row(&g, "w", 2);
	ok(y != NULL && memcmp(two, y, sizeof(two)) == 0, "the short row");
	ok(memory_row(&g, "w", 3) == NULL && memory_row(&g, "v", 2) == NULL,
	    "another length, another name: not there");
	ok(text_get(&g.kv, "model") != NULL &&
	    strcmp(text_get(&g.kv, "model"), "abc") == 0, "the key");
	memory_release(&g);
	memory_release(&h);
}

/* A number among the keys: there, not there, or none. */
static void
numbers(const struct statedir *s)
{
	static const char *const bad[] = { "-1", "nan", "inf", "2x", "" };
	struct memory h = MEMORY_INIT;
	struct err e = ERR_INIT;
	double v = 7;
	size_t i;
	float x = 1;

	ok(memory_number(s, "score", "k", &v, &e) == 0, "no file, no number");
	ok(memory_put(&h, "w", &x, 1, &e) == 0 &&
	    text_set(&h.kv, "k", "0", &e) == 0 &&
	    memory_save(&h, s, "score", NULL, "test", &e) == 0 &&
	    memory_number(s, "score", "k", &v, &e) == 1 && v == 0 &&
	    memory_number(s, "score", "other", &v, &e) == 0,
	    "0 is a number, another key is none");
	for (i = 0; i < 5; i++) {
		err_clear(&e);
		(void)text_set(&h.kv, "k", bad[i], &e);
		(void)memory_save(&h, s, "score", NULL, "test", &e);
		ok(memory_number(s, "score", "k", &v, &e) == -ERR_DATA &&
		    strncmp(ERR_MSG(&e), "corrupt: k in '", 15) == 0 &&
		    strstr(ERR_MSG(&e), "/score'") != NULL,
		    "'%s': %s", bad[i], ERR_MSG(&e));
	}
	memory_release(&h);
}

static void
lists(void)
{
	static const double v[3] = { 0.1, -1e-300, 12345678.9012345678 };
	struct memory h = MEMORY_INIT;
	struct err e = ERR_INIT;
	double w[4] = { 0 };

	ok(memory_list(&h, "l", w, 3, &e) == 0, "no list");
	ok(memory_put_list(&h, "l", v, 3, &e) == 0 &&
	    memory_list(&h, "l", w, 3, &e) == 1 &&
	    memcmp(v, w, sizeof(v)) == 0, "three numbers, exactly");
	ok(memory_list(&h, "l", w, 2, &e) == -ERR_DATA &&
	    memory_list(&h, "l", w, 4, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "corrupt: l", 10) == 0,
	    "neither two nor four: %s", ERR_MSG(&e));
	ok(memory_put_list(&h, "one", v, 1, &e) == 0 &&
	    memory_list(&h, "one", w, 1, &e) == 1 && w[0] == 0.1, "one");
	memory_release(&h);
}

/* Whose it is; and what is of another kind is none of these files. */
static void
whose(const struct statedir *s)
{
	struct schema sc = SCHEMA_INIT;
	struct schema_tensor t = { .name = (char *)(uintptr_t)"w", .ndim = 1,
	    .dim = { 1 } };
	struct memory h = MEMORY_INIT;
	struct err e = ERR_INIT;
	struct writer *w = NULL;
	const struct shard *of;
	struct shard sh;
	struct dense d;
	float x = 1;

	shard_init(&sh);
	sh.step = 1ull << 40;
	ok(shard_set_run(&sh, "run", &e) == 0 &&
	    shard_set_device(&sh, "edge1", &e) == 0 &&
	    memory_put(&h, "w", &x, 1, &e) == 0 &&
	    memory_save(&h, s, "score", &sh, "ace-test", &e) == 0 &&
	    dense_open(&d, s, "score", SHARD_HISTORY, &e) == 0 && d.r != NULL,
	    "saved for a shard %s", ERR_MSG(&e));
	of = reader_shard(d.r);
	ok(of->step == sh.step && strcmp(shard_run(of), "run") == 0 &&
	    strcmp(shard_device(of), "edge1") == 0 &&
	    of->kind == SHARD_HISTORY, "it says which");
	dense_close(&d);
	memory_release(&h);
	ok(schema_add(&sc, &t, &e) == 0 && schema_finish(&sc, &e) == 0 &&
	    dense_create(&w, s, "score", &sh, SHARD_RESIDUAL, NULL, &sc,
	    &e) == 0 && writer_send(w, NULL, &e) == 0 &&
	    writer_end(w, IO_SYNC_NONE, &e) == 0, "another kind");
	writer_free(w);
	ok(memory_load(&h, s, "score", &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "corrupt: no history") != NULL &&
	    strstr(ERR_MSG(&e), "score'") != NULL, "%s", ERR_MSG(&e));
	schema_release(&sc);
	shard_release(&sh);
}

static void
damage(const struct statedir *s)
{
	struct memory h;
	struct err e = ERR_INIT;
	char *path = statedir_path(s, "score", &e);
	char c;
	int fd, k;

	fd = open(path, O_RDWR);
	ok(fd >= 0 && pread(fd, &c, 1, 700) == 1 && (c = (char)(c ^ 1), 1) &&
	    pwrite(fd, &c, 1, 700) == 1, "one bit flipped");
	k = memory_load(&h, s, "score", &e);
	ok(k == -ERR_DATA && strncmp(ERR_MSG(&e), "corrupt", 7) == 0 &&
	    strstr(ERR_MSG(&e), "score'") != NULL && h.n == 0, "refused: %s", ERR_MSG(&e));
	if (fd >= 0)
		(void)close(fd);
	(void)unlink(path);
	free(path);
}

int
main(void)
{
	char dir[] = "/tmp/history.XXXXXX";
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;
	char *path;

	if (mkdtemp(dir) == NULL || statedir_open(&s, dir, &e) < 0)
		return 1;
	numbers(&s);
	lists();
	whose(&s);
	path = statedir_path(&s, "score", &e);
	(void)unlink(path);
	free(path);
	there_and_back(&s);
	damage(&s);
	statedir_close(&s);
	(void)rmdir(dir);
	return done_testing();
}
