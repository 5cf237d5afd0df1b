#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "base/err.h"
#include "device/memory.h"

static void
there_and_back(const struct state *s)
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

static void
damage(const struct state *s)
{
	struct memory h;
	struct err e = ERR_INIT;
	char *path = state_path(s, "score", &e);
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
	struct state s = STATE_INIT;
	struct err e = ERR_INIT;

	if (mkdtemp(dir) == NULL || state_open(&s, dir, &e) < 0)
		return 1;
	there_and_back(&s);
	damage(&s);
	state_close(&s);
	(void)rmdir(dir);
	return done_testing();
}
