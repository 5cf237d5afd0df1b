#include <fcntl.h>
#include <unistd.h>

#include "../inside.h"
#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "device/learned.h"
#include "format/reader.h"
#include "format/writer.h"

static void
there_and_back(const struct statedir *s)
{
	enum { N = 70000 };	/* more than one group */
	static float x[N];
	struct learned h = LEARNED_INIT, g;
	struct err e = ERR_INIT;
	const float *y;
	float two[2] = { 1.5f, -2 };
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)i * 0.25f;
	ok(learned_load(&g, s, "score", &e) == 0 && g.n == 0,
	    "no file: nothing, no error");
	ok(learned_put(&h, "m1", x, N, &e) == 0 &&
	    learned_put(&h, "w", two, 2, &e) == 0 &&
	    text_set(&h.kv, "model", "abc", &e) == 0 &&
	    learned_save(&h, s, "score", NULL, IO_SYNC_RENAME, &e) == 0 && h.n == 0,
	    "saved %s", ERR_MSG(&e));
	ok(learned_load(&g, s, "score", &e) == 1, "loaded %s", ERR_MSG(&e));
	y = learned_row(&g, "m1", N);
	ok(y != NULL && memcmp(x, y, sizeof(x)) == 0, "the long row");
	y = learned_row(&g, "w", 2);
	ok(y != NULL && memcmp(two, y, sizeof(two)) == 0, "the short row");
	ok(learned_row(&g, "w", 3) == NULL && learned_row(&g, "v", 2) == NULL,
	    "another length, another name: not there");
	ok(text_get(&g.kv, "model") != NULL &&
	    strcmp(text_get(&g.kv, "model"), "abc") == 0, "the key");
	learned_release(&g);
	learned_release(&h);
}

static void
lists(void)
{
	static const double v[3] = { 0.1, -1e-300, 12345678.9012345678 };
	struct learned h = LEARNED_INIT;
	struct err e = ERR_INIT;
	double w[4] = { 0 };

	ok(learned_list(&h, "l", w, 3, &e) == 0, "no list");
	ok(learned_put_list(&h, "l", v, 3, &e) == 0 &&
	    learned_list(&h, "l", w, 3, &e) == 1 &&
	    memcmp(v, w, sizeof(v)) == 0, "three numbers, exactly");
	ok(learned_list(&h, "l", w, 2, &e) == -ERR_DATA &&
	    learned_list(&h, "l", w, 4, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "corrupt: key l ", 15) == 0,
	    "lists of two and of four numbers are refused: %s", ERR_MSG(&e));
	ok(learned_put_list(&h, "one", v, 1, &e) == 0 &&
	    learned_list(&h, "one", w, 1, &e) == 1 && w[0] == 0.1, "one");
	learned_release(&h);
}

static void
remove_file(const struct statedir *s, const char *name)
{
	char path[STATE_PATH];

	(void)unlink(statedir_path(s, name, path));
}

/* Write a file with n shards of this kind, of steps from 0 on. */
static void
file_of(const struct statedir *s, const char *file, uint32_t kind, size_t n)
{
	struct schema sc = model_of(1, 0, 0);
	struct err e = ERR_INIT;
	char path[STATE_PATH];
	struct writer *w;
	struct shard sh;
	size_t i;
	int k;

	k = writer_file(&w, statedir_path(s, file, path), "test", &e);
	for (i = 0; i < n && k == 0; i++) {
		shard_init(&sh);
		sh.kind = kind;
		sh.step = i;
		k = writer_shard(w, &sh, &sc, &e);
		if (k >= 0)
			k = writer_send(w, NULL, &e);
		shard_release(&sh);
	}
	ok(k >= 0 && writer_end(w, IO_SYNC_NONE, &e) == 0, "%s", file);
	writer_free(w);
	schema_release(&sc);
}

/* A file that is not a memory is refused when it is read, and replaced when one is saved. */
static void
no_memories(const struct statedir *s)
{
	static const struct {
		const char *says;
		uint32_t kind;
		size_t n;
	} bad[] = {
		{ "corrupt: the shard has kind residual, expected history", SHARD_RESIDUAL, 1 },
		{ "corrupt: the file has more than two shards", SHARD_HISTORY, 3 },
	};
	struct learned h;
	struct err e;
	float x = 1;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e = (struct err)ERR_INIT;
		file_of(s, "score", bad[i].kind, bad[i].n);
		ok(learned_load(&h, s, "score", &e) == -ERR_DATA && h.n == 0 &&
		    strstr(ERR_MSG(&e), bad[i].says) != NULL &&
		    strstr(ERR_MSG(&e), "/score'") != NULL, "%s", ERR_MSG(&e));
		err_clear(&e);
		ok(learned_put(&h, "w", &x, 1, &e) == 0 &&
		    learned_save(&h, s, "score", NULL, IO_SYNC_RENAME, &e) == 0 &&
		    learned_load(&h, s, "score", &e) == 1,
		    "begun anew by who saves %s", ERR_MSG(&e));
		learned_release(&h);
	}
	remove_file(s, "score");
}

/* Save a memory of one number after a step of edge1; again 1: by learned_save_again. */
static int
save(const struct statedir *s, const char *name, float x, uint64_t step,
    int again)
{
	struct learned h = LEARNED_INIT;
	struct err e = ERR_INIT;
	struct shard sh;
	int r;

	shard_init(&sh);
	sh.step = step;
	(void)shard_set_run(&sh, "run", &e);
	(void)shard_set_device(&sh, "edge1", &e);
	(void)learned_put(&h, "w", &x, 1, &e);
	r = again ? learned_save_again(&h, s, name, &sh, &e) :
	    learned_save(&h, s, name, &sh, IO_SYNC_RENAME, &e);
	shard_release(&sh);
	return r;
}

enum { NOW = 99 };

/* Return the memory's number before `step', with NOW the present one; -1 if there is none. */
static float
before(const struct statedir *s, const char *name, uint64_t step)
{
	struct learned h;
	struct err e = ERR_INIT;
	float x = -1;

	if (learned_before(&h, s, name, step, &e) > 0)
		x = *learned_row(&h, "w", 1);
	learned_release(&h);
	return x;
}

/* Each memory has its own file, in which the last one saved replaces the one before. */
static void
apart(const struct statedir *s)
{
	ok(save(s, "score", 1, 5, 0) == 0 && save(s, "code", 2, 6, 0) == 0 &&
	    save(s, "code", 4, 8, 0) == 0, "three saved");
	ok(before(s, "score", NOW) == 1 && before(s, "code", NOW) == 4 &&
	    before(s, "none", NOW) == -1,
	    "each as saved");
	remove_file(s, "score");
	remove_file(s, "code");
}

/* A repeated step finds the value from before its first save. */
static void
again(const struct statedir *s)
{
	ok(save(s, "score", 1, 1, 1) == 0 && before(s, "score", 1) == -1 &&
	    before(s, "score", 2) == 1, "before the first: nothing");
	ok(save(s, "score", 2, 2, 1) == 0 && before(s, "score", 2) == 1 &&
	    before(s, "score", 3) == 2, "before the second: the first");
	ok(save(s, "score", 3, 2, 1) == 0 && before(s, "score", 2) == 1 &&
	    before(s, "score", NOW) == 3, "and still when that came twice");
	ok(save(s, "score", 4, 3, 1) == 0 && before(s, "score", 3) == 3,
	    "before the third: the last value of the second");
	remove_file(s, "score");
}

/* A memory without the required row, as from another version, is refused. */
static void
another_version(const struct statedir *s)
{
	const float *x;
	struct learned h;
	struct err e = ERR_INIT;

	ok(save(s, "score", 1, 1, 0) == 0 &&
	    learned_load(&h, s, "score", &e) == 1, "a memory of one number");
	ok(learned_need(&h, "level", 3, &x, &e) == -ERR_DATA && x == NULL &&
	    strstr(ERR_MSG(&e), "/score': remove that file, to begin anew") != NULL &&
	    strstr(ERR_MSG(&e), "mismatch: row 'level' of 3 numbers is absent from '") != NULL,
	    "%s", ERR_MSG(&e));
	learned_release(&h);
	remove_file(s, "score");
}

/* A flipped bit is detected, also in the second shard; a truncated file counts as absent. */
static void
damage(const struct statedir *s)
{
	static const off_t at[] = { 20, 300, 600, 900 };
	struct learned h;
	struct err e;
	char path[STATE_PATH], c;
	size_t i;
	int fd, k;

	(void)save(s, "code", 2, 1, 1);
	(void)save(s, "code", 1, 2, 1);
	fd = open(statedir_path(s, "code", path), O_RDWR);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		e = (struct err)ERR_INIT;
		ok(fd >= 0 && pread(fd, &c, 1, at[i]) == 1 &&
		    (c = (char)(c ^ 1), 1) && pwrite(fd, &c, 1, at[i]) == 1,
		    "one bit flipped at %d", (int)at[i]);
		k = learned_load(&h, s, "code", &e);
		ok(k == -ERR_DATA && strstr(ERR_MSG(&e), "/code'") != NULL &&
		    h.n == 0, "refused: %s", ERR_MSG(&e));
		c = (char)(c ^ 1);
		(void)!pwrite(fd, &c, 1, at[i]);
	}
	ok(before(s, "code", NOW) == 1, "and right again");
	/* cut the file, as a power cut may do before the data is synced */
	e = (struct err)ERR_INIT;
	for (i = 0; i < 3; i++) {
		ok(ftruncate(fd, i == 2 ? 0 : 900 - 600 * (off_t)i) == 0 &&
		    learned_load(&h, s, "code", &e) == 0 && h.n == 0 &&
		    e.code == ERR_OK, "cut: none");
	}
	if (fd >= 0)
		(void)close(fd);
	remove_file(s, "code");
}

int
main(void)
{
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;

	if (statedir_open(&s, "S", &e) < 0)
		return 1;
	lists();
	there_and_back(&s);
	remove_file(&s, "score");
	no_memories(&s);
	apart(&s);
	again(&s);
	another_version(&s);
	damage(&s);
	statedir_close(&s);
	return done_testing();
}
