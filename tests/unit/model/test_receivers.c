/*
 * The list of receivers: lines by name, saved and read; receipts, also of unknown
 * receivers; a damaged file.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "../inside.h"
#include "../test.h"
#include "base/err.h"
#include "base/pack.h"
#include "model/receivers.h"

static struct err e;

#define A32 "0123456789abcdef0123456789abcdef"
#define Z32 "00000000000000000000000000000000"

static void
put(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n || close(fd) != 0)
		abort();
}

static size_t
get(const char *path, char *text, size_t most)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, most);

	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* Open the list in S with this text; return what receivers_open returns. */
static int
opened(struct receivers *b, const char *text, size_t n)
{
	(void)mkdir("S", 0700);
	put("S/models", text, n);
	err_clear(&e);
	*b = (struct receivers)RECEIVERS_INIT;
	return receivers_open(b, "S", 0, &e);
}

TEST(test_lines)
{
	static const char *const names[] = { "m", "a", "z", "host 1", "b", "m",
	    "\xc3\xa4" };
	struct receivers b = RECEIVERS_INIT, c = RECEIVERS_INIT;
	struct receivers_line *l;
	size_t i;
	int good = 1;

	ok(!receivers_there("S"), "none yet");
	ok(receivers_open(&b, "S", 1, &e) == 0 && b.n == 0, "opened: %s", ERR_MSG(&e));
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		l = receivers_line(&b, names[i], &e);
		if (l == NULL)
			abort();
		good &= strcmp(l->name, names[i]) == 0;
		if (l->has.step == 0) {
			l->has.step = i + 1;
			l->has.time = 100 + i;
			l->sent.step = UINT64_MAX - i;
			l->sent.time = 7;
			memset(l->has.hash, (int)i + 1, MODEL_HASH);
			memset(l->sent.hash, 0xf0 + (int)i, MODEL_HASH);
		}
	}
	ok(good && b.n == 6, "each name has one line");
	for (i = 1; i < b.n; i++)
		good &= strcmp(b.p[i - 1].name, b.p[i].name) < 0;
	ok(good, "by name");
	ok(receivers_save(&b, &e) == 0 && receivers_there("S"), "saved: %s", ERR_MSG(&e));
	receivers_close(&b);
	ok(receivers_open(&c, "S", 0, &e) == 0 && c.n == 6, "read: %s", ERR_MSG(&e));
	l = receivers_line(&c, "m", &e);
	ok(l != NULL && l->has.step == 1 && l->has.time == 100 &&
	    l->sent.step == UINT64_MAX && l->sent.time == 7 &&
	    l->has.hash[0] == 1 && l->has.hash[15] == 1 &&
	    l->sent.hash[15] == 0xf0, "as it was");
	l = receivers_line(&c, "host 1", &e);
	ok(c.n == 6 && l != NULL && l->has.step == 4, "a name with a blank");
	receivers_close(&c);
}

TEST(test_names)
{
	char name[SHARD_NAME + 2];
	struct receivers b = RECEIVERS_INIT;

	memset(name, 'x', sizeof(name));
	name[SHARD_NAME] = '\0';
	ok(receivers_name(name, &e) == 0, "as long as a device's");
	name[SHARD_NAME] = 'x';
	name[SHARD_NAME + 1] = '\0';
	ok(receivers_name(name, &e) == -ERR_USAGE, "no longer");
	ok(receivers_name("", &e) == -ERR_USAGE, "not none");
	ok(receivers_name("a\nb", &e) == -ERR_USAGE, "no line's end");
	ok(receivers_name("a\033[2J", &e) == -ERR_USAGE, "nothing for a terminal");
	ok(receivers_line(&b, "a\nb", &e) == NULL && b.n == 0, "nor a line for one");
	receivers_close(&b);
}

TEST(test_receipts)
{
	struct receipt r = { .step = 3, .version = 9 };
	unsigned char hash[MODEL_HASH];
	const struct receivers_line *l = NULL;
	struct receivers b = RECEIVERS_INIT;
	const uint64_t from = (uint64_t)time(NULL);

	(void)unlink("S/models");
	ok(receivers_open(&b, "S", 1, &e) == 0 && receivers_line(&b, "edge1", &e) != NULL &&
	    receivers_line(&b, "edge2", &e) != NULL, "two: %s", ERR_MSG(&e));
	memset(hash, 0xc5, sizeof(hash));
	receivers_receipt(&r, "edge2", hash);
	ok(receivers_take(&b, &r, &l, &e) == 1 && l == &b.p[1] &&
	    l->has.step == 9 && l->has.time >= from &&
	    memcmp(l->has.hash, hash, MODEL_HASH) == 0,
	    "the version is the model's step: %s", ERR_MSG(&e));
	ok(b.p[0].has.time == 0, "nobody else's");
	receivers_close(&b);
	b = (struct receivers)RECEIVERS_INIT;
	ok(receivers_open(&b, "S", 1, &e) == 0 && b.n == 2 && b.p[1].has.step == 9 &&
	    memcmp(b.p[1].has.hash, hash, MODEL_HASH) == 0, "it is on disk");
	receivers_receipt(&r, "edge3", hash);
	ok(receivers_take(&b, &r, &l, &e) == 0 && b.n == 2, "nothing was sent to it");
	receivers_receipt(&r, "edge1", hash);
	r.reason[31] = '\0';
	ok(receivers_take(&b, &r, &l, &e) == 0, "31 digits are no model");
	receivers_receipt(&r, "edge1", hash);
	strcat(r.reason, "0");
	ok(receivers_take(&b, &r, &l, &e) == 0, "nor 33");
	receivers_receipt(&r, "edge1", hash);
	r.reason[5] = 'C';
	ok(receivers_take(&b, &r, &l, &e) == 0 && b.p[0].has.time == 0,
	    "nor large ones");
	receivers_close(&b);
}

TEST(test_lock)
{
	struct receivers b = RECEIVERS_INIT;
	int fd[2], status;
	char c;
	pid_t pid;

	if (pipe(fd) < 0 || receivers_open(&b, "S", 1, &e) < 0)
		abort();
	if ((pid = fork()) == 0) {
		struct receivers other = RECEIVERS_INIT;

		receivers_close(&b);	/* the lock stays with the parent */
		status = receivers_open(&other, "S", 0, &e) < 0 ||
		    write(fd[1], "r", 1) != 1;
		receivers_close(&other);
		status |= receivers_open(&other, "S", 1, &e) < 0 ||
		    write(fd[1], "w", 1) != 1;
		_exit(status);
	}
	ok(read(fd[0], &c, 1) == 1 && c == 'r', "a reader does not wait");
	(void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
	ok(read(fd[0], &c, 1) < 0, "who changes them does");
	(void)fcntl(fd[0], F_SETFL, 0);
	receivers_close(&b);
	ok(read(fd[0], &c, 1) == 1 && c == 'w' && waitpid(pid, &status, 0) == pid &&
	    status == 0, "until they are closed");
}

TEST(test_lies)
{
	static const char *const lie[] = { "\n", "has\n",
	    "has " A32 " 1 2 sent " A32 " 3 4\n",
	    "has " A32 " 1 2 sent " A32 " 3 4 \n",
	    "has " A32 "0 1 2 sent " A32 " 3 4 x\n",
	    "has 0123456789abcdef 1 2 sent " A32 " 3 4 x\n",
	    "has 0123456789ABCDEF0123456789abcdef 1 2 sent " A32 " 3 4 x\n",
	    "has " A32 " 1 2 sent " Z32 "f 3 4 x\n",
	    "has " A32 " one 2 sent " A32 " 3 4 x\n",
	    "had " A32 " 1 2 sent " A32 " 3 4 x\n",
	    "has " A32 " 1 2 sent " A32 " 3 4 x\033\n" };
	static const char good[] = "has " A32 " 1 2 sent " Z32 " 0 0 edge1\n"
	    "has " Z32 " 0 0 sent " Z32 " 0 0 edge 2\n";
	struct receivers b;
	size_t i, wrong = 0, end = strcspn(good, "\n");
	char text[512];
	int r;

	ok(opened(&b, good, strlen(good)) == 0 && b.n == 2, "%s", ERR_MSG(&e));
	receivers_close(&b);
	for (i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
		ok(opened(&b, lie[i], strlen(lie[i])) == -ERR_DATA &&
		    strstr(ERR_MSG(&e), "corrupt: 'S/models', line 1 does not "
		    "describe a receiver: remove that line") != NULL, "%s", ERR_MSG(&e));
		receivers_close(&b);
		(void)snprintf(text, sizeof(text), "%s%s", good, lie[i]);
		ok(opened(&b, text, strlen(text)) == -ERR_DATA &&
		    strstr(ERR_MSG(&e), "corrupt: 'S/models', line 3 does not "
		    "describe a receiver: remove that line") != NULL, "behind two: %s", ERR_MSG(&e));
		receivers_close(&b);
	}
	/* of a truncated file the complete lines count; in the last one a name may be
	 * cut, a number may not */
	for (i = 0; i < strlen(good); i++) {
		r = opened(&b, good, i);
		wrong += r != (i == 0 || (i > end - 5 && i <= end + 1) ||
		    i > strlen(good) - 7 ? 0 : -ERR_DATA);
		receivers_close(&b);
	}
	is_u64(wrong, 0, "cut anywhere");
	ok(get("S/models", text, sizeof(text)) == strlen(good) - 1,
	    "reading changes nothing");
}

TEST(test_long)
{
	struct receivers b;
	int fd = open("S/models", O_WRONLY | O_TRUNC | O_CLOEXEC);

	ok(fd >= 0 && ftruncate(fd, (1 << 24) + 1) == 0 && close(fd) == 0, "16 MiB and 1");
	err_clear(&e);
	b = (struct receivers)RECEIVERS_INIT;
	ok(receivers_open(&b, "S", 0, &e) == -ERR_DATA &&
	    strcmp(ERR_MSG(&e), "limit: 'S/models' is too long") == 0, "%s",
	    ERR_MSG(&e));
	receivers_close(&b);
}
