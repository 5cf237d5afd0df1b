/*
 * Stored patches: listed by file name; the newest model, the shortest way to it, when a
 * whole model is due, and which files are removed.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "../inside.h"
#include "../test.h"
#include "base/alloc.h"
#include "base/err.h"
#include "model/store.h"

static struct err e;

static void
put(const char *path, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || close(fd) != 0)
		abort();
}

static void
limits(const char *text)
{
	FILE *f = fopen("S/limits", "w");

	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

/* Hash of model i; model 0: none. */
static void
model(unsigned char hash[MODEL_HASH], unsigned i)
{
	memset(hash, (int)i, MODEL_HASH);
}

static void
fresh(struct store *s, const char *text)
{
	if (system("rm -rf S && mkdir -m 700 S") != 0)
		abort();
	err_clear(&e);
	*s = (struct store)STORE_INIT;
	if (store_create("S", &e) < 0)
		abort();
	if (text != NULL)
		limits(text);
	if (store_open(s, "S", &e) < 0)
		abort();
}

static void
again(struct store *s)
{
	store_close(s);
	if (store_open(s, "S", &e) < 0)
		abort();
}

/* Store a patch from one model to another, of this many bytes. */
static int
add(struct store *s, unsigned from, unsigned to, size_t bytes)
{
	struct way w = { .step = to, .whole = from == 0 };
	char *draft = store_draft(s, &e);
	int r;

	model(w.before, from);
	model(w.after, to);
	put(draft, bytes);
	r = store_add(s, &w, &e);
	if (access(draft, F_OK) == 0)
		abort();
	alloc_free(draft);
	return r;
}

/* Return the way from a model, as digits of the patches' numbers; "-": none. */
static const char *
way(struct store *s, unsigned from)
{
	static char text[64];
	unsigned char hash[MODEL_HASH];
	size_t *list, n, i;
	int r;

	model(hash, from);
	r = store_way(s, from == 0 ? NULL : hash, &list, &n, &e);
	for (i = 0; i < n; i++)
		text[i] = (char)('0' + s->w.p[list[i]].nth);
	text[n] = '\0';
	alloc_free(list);
	return r == 1 ? text : r == 0 ? "-" : "failed";
}

/* Return the numbers of the stored files. */
static const char *
there(struct store *s)
{
	static char text[64];
	size_t i;

	again(s);
	for (i = 0; i < s->w.n; i++)
		text[i] = (char)('0' + s->w.p[i].nth);
	text[i] = '\0';
	return text;
}

#define IS(is, want) do { \
	const char *has = is; \
	ok(strcmp(has, want) == 0, "%s: '%s'", want, has); \
} while (0)

TEST(test_list)
{
	static const char *const strange[] = { "x", ".next2", "00000009.aceg",
	    "9.11111111111111111111111111111111.22222222222222222222222222222222.2.aceg",
	    "00000009.11111111111111111111111111111111.2222222222222222222222222222222.2.aceg",
	    "00000009.11111111111111111111111111111111.22222222222222222222222222222222.2.aceg~",
	    "00000009.1111111111111111111111111111111A.22222222222222222222222222222222.2.aceg",
	    "00000009.11111111111111111111111111111111.22222222222222222222222222222222.02.aceg" };
	unsigned char hash[MODEL_HASH];
	struct store s;
	char path[256];
	size_t i;
	int fd;

	fresh(&s, NULL);
	ok(store_newest(&s) == NULL && s.limits.patches == 64 &&
	    s.limits.anchor == 16 && s.limits.bytes == 0, "empty, with what is "
	    "the default");
	IS(way(&s, 1), "-");
	ok(add(&s, 1, 2, 10) == 0 && add(&s, 0, 2, 100) == 0 &&
	    add(&s, 2, 3, 20) == 0, "three: %s", ERR_MSG(&e));
	again(&s);
	ok(s.w.n == 3 && s.w.p[0].nth == 1 && s.w.p[0].bytes == 10 &&
	    s.w.p[0].step == 2 && !s.w.p[0].whole && s.w.p[1].whole &&
	    s.w.p[1].bytes == 100 && s.w.p[2].bytes == 20 &&
	    store_newest(&s) == &s.w.p[2], "names say all of it");
	ok(access("S/patches/00000002.00000000000000000000000000000000."
	    "02020202020202020202020202020202.2.aceg", F_OK) == 0, "which are these");
	model(hash, 2);
	ok(store_known(&s, hash) == &s.w.p[1], "the last that makes a model");
	model(hash, 1);
	ok(store_known(&s, hash) == NULL, "none makes the first");
	fd = store_fd(&s, 2, &e);
	ok(fd >= 0 && lseek(fd, 0, SEEK_END) == 20, "opened");
	(void)close(fd);
	for (i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
		(void)snprintf(path, sizeof(path), "S/patches/%s", strange[i]);
		put(path, 5);
	}
	put("S/patches/00000008.01010101010101010101010101010101."
	    "02020202020202020202020202020202.2.aceg", 0);
	again(&s);
	is_u64(s.w.n, 3, "what has no such name is not ours, nor what is empty");
	store_close(&s);
}

TEST(test_way)
{
	struct store s;

	fresh(&s, NULL);
	(void)add(&s, 1, 2, 10);
	(void)add(&s, 0, 2, 100);
	(void)add(&s, 2, 3, 20);
	(void)add(&s, 3, 4, 200);
	(void)add(&s, 0, 4, 90);
	IS(way(&s, 4), "");
	IS(way(&s, 1), "5");		/* 230 bytes, or 90 */
	IS(way(&s, 9), "5");
	IS(way(&s, 0), "5");
	(void)add(&s, 2, 5, 30);	/* overwrites what came before */
	IS(way(&s, 2), "6");
	IS(way(&s, 1), "16");
	IS(way(&s, 4), "26");		/* no way back except from a whole model */
	IS(way(&s, 0), "26");
	store_close(&s);
}

TEST(test_twice)
{
	struct store s;

	fresh(&s, NULL);
	(void)add(&s, 1, 2, 10);
	(void)add(&s, 1, 2, 10);
	IS(there(&s), "1");
	/* a whole model is another way to the same one */
	(void)add(&s, 0, 2, 50);
	(void)add(&s, 0, 2, 60);
	IS(there(&s), "12");
	(void)add(&s, 2, 1, 10);
	(void)add(&s, 1, 2, 10);
	IS(there(&s), "1234");		/* again: it was no longer the newest */
	store_close(&s);
}

static int
due(struct store *s)
{
	int is = 0;

	return store_due(s, &is, &e) < 0 ? -1 : is;
}

TEST(test_due)
{
	struct store s;
	unsigned i;

	fresh(&s, "anchor 3\n");
	(void)add(&s, 1, 2, 10);
	ok(due(&s) == 1, "there is none");
	(void)add(&s, 0, 2, 100);
	ok(due(&s) == 0, "just made");
	for (i = 2; i < 4; i++)
		(void)add(&s, i, i + 1, 10);
	ok(due(&s) == 0, "2 patches of 3");
	(void)add(&s, 4, 5, 10);
	ok(due(&s) == 1, "3 of 3");
	store_close(&s);

	fresh(&s, "anchor 9\n");
	(void)add(&s, 0, 2, 100);
	(void)add(&s, 2, 3, 99);
	ok(due(&s) == 0, "99 bytes of 100");
	(void)add(&s, 3, 4, 1);
	ok(due(&s) == 1, "as many as it has");
	store_close(&s);

	fresh(&s, "anchor 0\n");
	(void)add(&s, 1, 2, 10);
	ok(due(&s) == 0, "anchor 0: never");
	store_close(&s);

	/* so that the way fits into the limits */
	fresh(&s, "anchor 9\npatches 3\n");
	(void)add(&s, 0, 2, 100);
	(void)add(&s, 2, 3, 1);
	ok(due(&s) == 0, "one patch, of three files");
	(void)add(&s, 3, 4, 1);
	ok(due(&s) == 1, "two");
	store_close(&s);
}

TEST(test_prune)
{
	struct store s;
	unsigned i;

	fresh(&s, "patches 4\n");
	(void)add(&s, 1, 2, 10);
	(void)add(&s, 0, 2, 100);
	for (i = 2; i < 5; i++)
		(void)add(&s, i, i + 1, 10);
	ok(store_prune(&s, &e) == 0, "%s", ERR_MSG(&e));
	IS(there(&s), "2345");
	(void)add(&s, 5, 6, 10);
	(void)store_prune(&s, &e);
	IS(there(&s), "23456");		/* all of them are on the way */
	(void)add(&s, 0, 6, 100);
	(void)store_prune(&s, &e);
	IS(there(&s), "4567");
	store_close(&s);

	fresh(&s, "bytes 130\n");
	(void)add(&s, 1, 2, 10);
	(void)add(&s, 0, 2, 100);
	(void)add(&s, 2, 3, 20);
	(void)store_prune(&s, &e);
	IS(there(&s), "123");		/* 130 does not exceed 130 */
	limits("bytes 129\n");
	again(&s);
	(void)store_prune(&s, &e);
	IS(there(&s), "23");
	store_close(&s);

	fresh(&s, "bytes 1\nanchor 0\n");
	(void)add(&s, 1, 2, 10);
	(void)add(&s, 2, 3, 20);
	(void)store_prune(&s, &e);
	IS(there(&s), "2");		/* the last one, though no way leads to it */
	store_close(&s);
}

TEST(test_made_again)
{
	struct store s;

	fresh(&s, "patches 7\n");
	(void)add(&s, 1, 2, 10);
	put("S/patches/.next", 3);
	ok(store_create("S", &e) == 0, "%s", ERR_MSG(&e));
	again(&s);
	ok(s.limits.patches == 7 && s.w.n == 1, "limits and files stay");
	limits("patches 1\n");
	store_close(&s);
	ok(store_open(&s, "S", &e) == -ERR_USAGE, "%s", ERR_MSG(&e));
	store_close(&s);
	ok(store_open(&s, "nowhere", &e) == 0 && store_newest(&s) == NULL,
	    "where nothing was kept yet");
	store_close(&s);
}
