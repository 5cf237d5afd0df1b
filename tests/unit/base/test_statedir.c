/* State directories: permissions, renames, the lock, removal of leftover files; scan. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../inside.h"
#include "../test.h"
#include "base/at.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/statedir.h"

static struct err e;

static void
put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0)
		abort();
}

static int
there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Return statedir_open's result for a directory with this mode. */
static int
opened(mode_t mode)
{
	struct statedir s = STATE_INIT;
	int r;

	err_clear(&e);
	if (chmod("S", mode) < 0)
		abort();
	r = statedir_open(&s, "S", &e);
	statedir_close(&s);
	return r;
}

TEST(test_open)
{
	struct statedir s = STATE_INIT;
	struct stat st;
	mode_t was = umask(0);

	ok(statedir_open(&s, "S", &e) == 0 && stat("S", &st) == 0 &&
	    (st.st_mode & 07777) == 0700, "made with mode 0700");
	(void)umask(was);
	statedir_close(&s);
	ok(opened(0755) == 0, "others may read it");
	ok(opened(0720) == -ERR_REFUSED && strcmp(ERR_MSG(&e),
	    "directory 'S' can be changed by other users (mode 720): if all files "
	    "are yours, run chmod go-w on it") == 0,
	    "not the group write: %s", ERR_MSG(&e));
	ok(opened(0702) == -ERR_REFUSED, "nor all: %s", ERR_MSG(&e));
	if (geteuid() == 0) {
		ok(chown("S", 65534, (gid_t)-1) == 0 &&
		    opened(0700) == -ERR_REFUSED && strcmp(ERR_MSG(&e),
		    "directory 'S' belongs to user 65534, but the program runs as user 0: run "
		    "it as that user, or use another directory") == 0,
		    "nor may it be somebody else's: %s", ERR_MSG(&e));
		ok(chown("S", 0, (gid_t)-1) == 0, "given back");
	}
	(void)chmod("S", 0700);
	put("file");
	err_clear(&e);
	ok(statedir_open(&s, "file", &e) == -ERR_SYS && strcmp(ERR_MSG(&e),
	    "directory 'file': Not a directory") == 0, "a file: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(statedir_open(&s, "no/S", &e) == -ERR_SYS, "nowhere: %s", ERR_MSG(&e));
}

/* A state stays usable when its directory is renamed after opening. */
TEST(test_moved)
{
	struct statedir s = STATE_INIT, t = STATE_INIT;
	char path[STATE_PATH];
	int fd;

	err_clear(&e);
	ok(mkdir("other", 0700) == 0 && symlink("S", "link") == 0 &&
	    statedir_open_here(&s, "link", "link", &e) == -ERR_REFUSED,
	    "a link that nobody named: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(statedir_open(&s, "link//", &e) == 0, "one of ours that was named: %s",
	    ERR_MSG(&e));
	ok(statedir_open(&t, "link", &e) == 0, "and once more: %s", ERR_MSG(&e));
	statedir_close(&t);
	ok(unlink("link") == 0 && rename("S", "was") == 0 &&
	    symlink("other", "link") == 0, "the directory is renamed");
	ok(statedir_lock(&s, STATE_LOCK, &e) == 0 && there("was/lock") && !there("other/lock"),
	    "the lock is where the folder is: %s", ERR_MSG(&e));
	statedir_path(&s, "one", path);
	ok(strcmp(path, "link/one") == 0, "its paths keep the first name");
	fd = openat(AT(path), O_WRONLY | O_CREAT, 0600);
	ok(fd >= 0 && renameat(AT(path), AT("link/two")) == 0 &&
	    there("was/two") && !there("other/two"), "and so is what is made there");
	ok(unlinkat(AT("link/two"), 0) == 0 && faccessat(AT("link/two"), F_OK,
	    0) < 0, "and what is removed");
	ok(at_dir("links/two") == AT_FDCWD && at_dir("lin") == AT_FDCWD &&
	    at_dir("link") >= 0 && strcmp(at_name("link//"), ".") == 0,
	    "other names are other names");
	(void)close(fd);
	statedir_close(&s);
	ok(at_dir("link/two") == AT_FDCWD, "a closed state has no names");
	(void)unlink("was/lock");
	ok(rename("was", "S") == 0 && unlink("link") == 0 && rmdir("other") == 0,
	    "the names are restored");
}

TEST(test_lock)
{
	struct statedir a = STATE_INIT, b = STATE_INIT;

	err_clear(&e);
	put("S/residual.new-abcdef");
	put("S/residual");
	put("S/residual.new-abcde");
	put("S/residual.old-abcdef");
	ok(statedir_open(&a, "S", &e) == 0 && statedir_open(&b, "S", &e) == 0 &&
	    there("S/residual.new-abcdef"), "to open it changes nothing");
	ok(statedir_lock(&a, STATE_LOCK, &e) == 0 && !there("S/residual.new-abcdef"),
	    "what a killed program left goes: %s", ERR_MSG(&e));
	ok(there("S/residual") && there("S/residual.new-abcde") &&
	    there("S/residual.old-abcdef"), "what has another name stays");
	ok(statedir_lock(&b, STATE_LOCK, &e) == -ERR_REFUSED && strcmp(ERR_MSG(&e),
	    "'S' is in use by another process: wait for it, or end it") == 0,
	    "one has it at a time: %s", ERR_MSG(&e));
	statedir_close(&b);
	err_clear(&e);
	ok(statedir_open(&b, "S", &e) == 0 &&
	    statedir_lock(&b, "other", &e) == 0, "locks of two names are independent");
	statedir_close(&b);
	statedir_close(&a);
	ok(statedir_open(&b, "S", &e) == 0 && statedir_lock(&b, STATE_LOCK, &e) == 0,
	    "the lock is free afterwards");
	statedir_close(&b);
	(void)unlink("S/lock");
	ok(symlink("../away", "S/lock") == 0 && statedir_open(&b, "S", &e) == 0 &&
	    statedir_lock(&b, STATE_LOCK, &e) == -ERR_SYS && !there("away"),
	    "a link in the place of the lock is not followed: %s", ERR_MSG(&e));
	statedir_close(&b);
	(void)unlink("S/lock");
	err_clear(&e);
	ok(mkfifo("S/lock", 0600) == 0 && statedir_open(&b, "S", &e) == 0 &&
	    statedir_lock(&b, STATE_LOCK, &e) == -ERR_REFUSED,
	    "nor is a FIFO a lock: %s", ERR_MSG(&e));
	statedir_close(&b);
	(void)unlink("S/lock");
}

TEST(test_prune)
{
	static const char *const stay[] = { "S/history", "S/history.",
	    "S/history.1a", "S/historys.1", "S/history-1", "S/residual.1" };
	static const char *const go[] = { "S/history.1", "S/history.12",
	    "S/history.18446744073709551615" };
	struct statedir s = STATE_INIT;
	size_t i, left = 0, gone = 0;

	err_clear(&e);
	for (i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		put(stay[i]);
	for (i = 0; i < sizeof(go) / sizeof(go[0]); i++)
		put(go[i]);
	put("S/history.7");
	put("S/history.8");
	ok(statedir_open(&s, "S", &e) == 0, "a state");
	statedir_prune(&s, 0, NULL, NULL);
	ok(there("S/history.7") && there("S/history.8"), "later steps stay");
	statedir_prune(&s, UINT64_MAX, "history.7", "history.8");
	for (i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		left += there(stay[i]) != 0;
	for (i = 0; i < sizeof(go) / sizeof(go[0]); i++)
		gone += !there(go[i]);
	ok(left == sizeof(stay) / sizeof(stay[0]),
	    "files that are not for a step stay");
	ok(gone == sizeof(go) / sizeof(go[0]), "files for a step are removed");
	ok(there("S/history.7") && there("S/history.8"),
	    "except for the two named steps");
	statedir_prune(&s, 8, NULL, NULL);
	ok(!there("S/history.7") && !there("S/history.8"), "without named steps all are removed");
	statedir_close(&s);
}

static int
counts(void *arg, const char *path, const char *name, struct err *err)
{
	int *n = arg;

	(void)err;
	*n += strncmp(path, "d/", 2) == 0 && strcmp(path + 2, name) == 0;
	return strcmp(name, "stop") == 0 ? 17 : 0;
}

TEST(test_scan)
{
	int n = 0;

	err_clear(&e);
	ok(mkdir("d", 0700) == 0, "a directory");
	ok(scan("d", 0, counts, &n, &e) == 0 && n == 0, "without names");
	put("d/.hidden");
	put("d/a");
	put("d/b");
	ok(scan("d", 0, counts, &n, &e) == 0 && n == 2,
	    "names that begin with a dot are skipped");
	ok(scan("d/", 1, counts, &n, &e) == 0 && n == 5, "with hidden names");
	ok(scan("none", 0, counts, &n, &e) == 0 && n == 5,
	    "a directory that is not there has no names");
	ok(scan("file", 0, counts, &n, &e) == -ERR_SYS && strcmp(ERR_MSG(&e),
	    "'file': Not a directory") == 0, "a file: %s", ERR_MSG(&e));
	(void)unlink("d/a");
	(void)unlink("d/b");
	put("d/stop");
	ok(scan("d", 0, counts, &n, &e) == 17, "the result of a call is returned");
}
