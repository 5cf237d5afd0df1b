#include <fcntl.h>
#include <unistd.h>

#include "../inside.h"
#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "device/memory.h"
#include "format/reader.h"
#include "format/writer.h"

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
	    memory_save(&h, s, "score", NULL, &e) == 0 && h.n == 0,
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
	    strncmp(ERR_MSG(&e), "corrupt: key l ", 15) == 0,
	    "lists of two and of four numbers are refused: %s", ERR_MSG(&e));
	ok(memory_put_list(&h, "one", v, 1, &e) == 0 &&
	    memory_list(&h, "one", w, 1, &e) == 1 && w[0] == 0.1, "one");
	memory_release(&h);
}

static void
remove_file(const struct statedir *s, const char *name)
{
	struct err e = ERR_INIT;
	char *path = statedir_path(s, name, &e);

	(void)unlink(path);
	free(path);
}

static int
is_file(const struct statedir *s, const char *name)
{
	struct err e = ERR_INIT;
	char *path = statedir_path(s, name, &e);
	int there = access(path, F_OK) == 0;

	free(path);
	return there;
}

/* Make a file with a shard of that kind for each of these names. */
static void
file_of(const struct statedir *s, const char *file, uint32_t kind,
    const char *const *name, size_t n)
{
	struct schema sc = model_of(1, 0, 0);
	struct err e = ERR_INIT;
	char *path = statedir_path(s, file, &e);
	struct writer *w;
	struct shard sh;
	size_t i;
	int k;

	k = writer_file(&w, path, "test", &e);
	for (i = 0; i < n && k == 0; i++) {
		shard_init(&sh);
		sh.kind = kind;
		sh.step = i;
		if (name[i] != NULL)
			(void)text_set(&sh.kv, MEMORY_KEY, name[i], &e);
		k = writer_shard(w, &sh, &sc, &e);
		if (k >= 0)
			k = writer_send(w, NULL, &e);
		shard_release(&sh);
	}
	ok(k >= 0 && writer_end(w, IO_SYNC_NONE, &e) == 0, "%s", file);
	writer_free(w);
	schema_release(&sc);
	free(path);
}

/* A file that cannot be a history is refused. */
static void
no_memories(const struct statedir *s)
{
	static const struct {
		const char *says, *name[2];
		uint32_t kind;
		size_t n;
	} bad[] = {
		{ "corrupt: the shard is not of kind history", { "score" }, SHARD_RESIDUAL, 1 },
		{ "corrupt: a history has no name", { NULL }, SHARD_HISTORY, 1 },
		{ "corrupt: two histories are named 'score'", { "score", "score" },
		    SHARD_HISTORY, 2 },
	};
	struct memory h;
	struct err e;
	float x = 1;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e = (struct err)ERR_INIT;
		file_of(s, "memory", bad[i].kind, bad[i].name, bad[i].n);
		ok(memory_load(&h, s, "score", &e) == -ERR_DATA && h.n == 0 &&
		    strstr(ERR_MSG(&e), bad[i].says) != NULL &&
		    strstr(ERR_MSG(&e), "/memory'") != NULL, "%s", ERR_MSG(&e));
		err_clear(&e);
		ok(memory_put(&h, "w", &x, 1, &e) == 0 &&
		    memory_save(&h, s, "zero", NULL, &e) == 0,
		    "begun anew by who saves %s", ERR_MSG(&e));
	}
	remove_file(s, "memory");
	e = (struct err)ERR_INIT;
	file_of(s, MEMORY_LINK, SHARD_RESIDUAL, bad[0].name, 1);
	ok(memory_load(&h, s, MEMORY_LINK, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "corrupt: the shard is not of kind history") != NULL &&
	    strstr(ERR_MSG(&e), "/link'") != NULL, "%s", ERR_MSG(&e));
	remove_file(s, MEMORY_LINK);
}

/* Save a history of one number, after a step of edge1. */
static int
save(const struct statedir *s, const char *name, float x, uint64_t step,
    int again)
{
	struct memory h = MEMORY_INIT;
	struct err e = ERR_INIT;
	struct shard sh;
	int r;

	shard_init(&sh);
	sh.step = step;
	(void)shard_set_run(&sh, "run", &e);
	(void)shard_set_device(&sh, "edge1", &e);
	(void)memory_put(&h, "w", &x, 1, &e);
	r = again ? memory_save_again(&h, s, name, &sh, &e) :
	    memory_save(&h, s, name, &sh, &e);
	shard_release(&sh);
	return r;
}

/* Return the number of the history `name'; -1 if it is absent. */
static float
load(const struct statedir *s, const char *name)
{
	struct memory h;
	struct err e = ERR_INIT;
	float x = -1;

	if (memory_load(&h, s, name, &e) > 0)
		x = *memory_row(&h, "w", 1);
	memory_release(&h);
	return x;
}

/* Return the number that the history had before `step'; -1 if there was none. */
static float
before(const struct statedir *s, const char *name, uint64_t step)
{
	struct memory h;
	struct err e = ERR_INIT;
	float x = -1;

	if (memory_before(&h, s, name, step, &e) > 0)
		x = *memory_row(&h, "w", 1);
	memory_release(&h);
	return x;
}

/* List the histories in the file: name, device and step of each. */
static void
names(const struct statedir *s, char out[256])
{
	struct err e = ERR_INIT;
	char *path = statedir_path(s, "memory", &e);
	const struct shard *sh;
	struct reader *r;

	out[0] = '\0';
	if (reader_file(&r, path, NULL, &e) == 0)
		while (reader_to_shard(r, &e) > 0) {
			sh = reader_shard(r);
			(void)snprintf(out + strlen(out), 256 - strlen(out),
			    "%s %s/%llu ", text_get(&sh->kv, MEMORY_KEY),
			    shard_device(sh), (unsigned long long)sh->step);
		}
	reader_free(r);
	free(path);
}

/* Several histories saved in any order are together in the file. */
static void
together(const struct statedir *s)
{
	char is[256];

	ok(save(s, "score", 1, 5, 0) == 0 && save(s, "code", 2, 6, 0) == 0 &&
	    save(s, "policy", 3, 7, 0) == 0 && save(s, "code", 4, 8, 0) == 0,
	    "four saved");
	names(s, is);
	ok(strcmp(is, "code edge1/8 policy edge1/7 score edge1/5 ") == 0,
	    "files are sorted by name, each with its shard: %s", is);
	ok(load(s, "score") == 1 && load(s, "code") == 4 &&
	    load(s, "policy") == 3 && load(s, "none") == -1, "each as saved");
	ok(save(s, MEMORY_LINK, 9, 0, 0) == 0 && is_file(s, "link") &&
	    load(s, MEMORY_LINK) == 9, "the link has its own file");
	remove_file(s, "link");
	remove_file(s, "memory");
}

/* The values before a step that is repeated. */
static void
again(const struct statedir *s)
{
	ok(save(s, "score", 1, 1, 1) == 0 && before(s, "score", 1) == -1 &&
	    before(s, "score", 2) == 1, "before the first: nothing");
	ok(save(s, "score", 2, 2, 1) == 0 && before(s, "score", 2) == 1 &&
	    before(s, "score", 3) == 2, "before the second: the first");
	ok(save(s, "score", 3, 2, 1) == 0 && before(s, "score", 2) == 1 &&
	    load(s, "score") == 3, "and still when that came twice");
	ok(save(s, "score", 4, 3, 1) == 0 && before(s, "score", 3) == 3,
	    "before the third: the last value of the second");
	remove_file(s, "memory");
}

/* Histories saved with t.later set are written by memory_flush, all or none. */
static void
later(const struct statedir *s)
{
	struct memories m = { 0 };
	struct statedir t = *s;
	struct err e = ERR_INIT;
	char is[256];

	t.later = &m;
	ok(memory_flush(s, &e) == 0 && memory_flush(&t, &e) == 0 &&
	    !is_file(s, "memory"), "an empty memory makes no file");
	ok(save(&t, "score", 1, 1, 1) == 0 && save(&t, "code", 2, 1, 0) == 0 &&
	    save(&t, "code", 3, 1, 0) == 0 && !is_file(s, "memory"),
	    "nothing is written before the flush");
	ok(memory_flush(&t, &e) == 0 && m.n == 0 && load(s, "code") == 3 &&
	    load(s, "score") == 1, "both are written");
	ok(save(&t, "score", 4, 2, 1) == 0 && memory_flush(&t, &e) == 0 &&
	    before(s, "score", 2) == 1, "with their earlier values");
	names(s, is);
	ok(strcmp(is, "code edge1/1 score edge1/2 score.before edge1/1 ") == 0,
	    "%s", is);
	(void)save(&t, "code", 5, 1, 0);
	memory_release_all(&m);
	ok(memory_flush(&t, &e) == 0 && load(s, "code") == 3, "released values are dropped");
	remove_file(s, "memory");
}

/* A history of another version, and an obsolete file. */
static void
another_version(const struct statedir *s)
{
	const float *x;
	struct memory h;
	struct err e = ERR_INIT;

	ok(save(s, "score", 1, 1, 0) == 0 &&
	    memory_load(&h, s, "score", &e) == 1, "a memory of one number");
	ok(memory_need(&h, "level", 3, &x, &e) == -ERR_DATA && x == NULL &&
	    strstr(ERR_MSG(&e), "mismatch: row 'level' of 3 numbers is absent from 'memory' "
	    "of the state, which another version of ace wrote: remove that file "
	    "to begin anew") != NULL, "%s", ERR_MSG(&e));
	memory_release(&h);
	remove_file(s, "memory");
	err_clear(&e);
	file_of(s, "score", SHARD_HISTORY, (const char *const[]){ "score" }, 1);
	ok(memory_load(&h, s, "score", &e) == 0, "not read");
	remove_file(s, "score");
}

/* A flipped bit at each of four offsets is detected when history "code" is loaded. */
static void
damage(const struct statedir *s)
{
	static const off_t at[] = { 20, 300, 700, 1500 };
	struct memory h;
	struct err e;
	char *path = statedir_path(s, "memory", NULL), c;
	size_t i;
	int fd, k;

	(void)save(s, "code", 1, 1, 0);
	(void)save(s, "policy", 1, 1, 0);
	(void)save(s, "score", 1, 1, 0);
	fd = open(path, O_RDWR);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		e = (struct err)ERR_INIT;
		ok(fd >= 0 && pread(fd, &c, 1, at[i]) == 1 &&
		    (c = (char)(c ^ 1), 1) && pwrite(fd, &c, 1, at[i]) == 1,
		    "one bit flipped at %d", (int)at[i]);
		k = memory_load(&h, s, "code", &e);
		ok(k == -ERR_DATA && strstr(ERR_MSG(&e), "memory'") != NULL &&
		    h.n == 0, "refused: %s", ERR_MSG(&e));
		c = (char)(c ^ 1);
		(void)!pwrite(fd, &c, 1, at[i]);
	}
	ok(load(s, "code") == 1, "and right again");
	/* what a power cut leaves of unsynced data */
	e = (struct err)ERR_INIT;
	for (i = 0; i < 3; i++) {
		ok(ftruncate(fd, i == 2 ? 0 : 1400 - 600 * (off_t)i) == 0 &&
		    memory_load(&h, s, "score", &e) == 0 && h.n == 0 &&
		    e.code == ERR_OK, "cut: none");
	}
	if (fd >= 0)
		(void)close(fd);
	remove_file(s, "memory");
	free(path);
}

int
main(void)
{
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;

	if (statedir_open(&s, "S", &e) < 0)
		return 1;
	lists();
	remove_file(&s, "memory");
	there_and_back(&s);
	remove_file(&s, "memory");
	no_memories(&s);
	together(&s);
	again(&s);
	later(&s);
	another_version(&s);
	damage(&s);
	statedir_close(&s);
	return done_testing();
}
