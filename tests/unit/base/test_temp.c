/* Temporary files: where they are, that none is left behind, and their permissions. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "names.h"
#include "../tap.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"

static struct err e;

/* Return the directory of an open file, removed or not, with a trailing slash. */
static const char *
place(int fd)
{
	static char to[256];
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	if (strrchr(to, '/') != NULL)
		strrchr(to, '/')[1] = '\0';
	return to;
}

static void
test_nameless(const char *dir)
{
	char want[64];
	struct stat st;
	int fd = -1;

	(void)snprintf(want, sizeof(want), "%s/t/", dir);
	(void)setenv("TMPDIR", "t", 1);
	ok(mkdir("t", 0700) == 0 && temp_open(&fd, &e) == 0 &&
	    strcmp(place(fd), want) == 0, "in TMPDIR: %s", place(fd));
	ok(names_in("t") == 0 && fstat(fd, &st) == 0 && st.st_nlink == 0 &&
	    (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0,
	    "without a name, and not for programs that are started");
	(void)close(fd);
	(void)setenv("TMPDIR", "", 1);
	ok(temp_open(&fd, &e) == 0 && strcmp(place(fd), "/tmp/") == 0,
	    "where it says nothing, in /tmp: %s", place(fd));
	(void)close(fd);
	(void)unsetenv("TMPDIR");
	ok(temp_open(&fd, &e) == 0 && strcmp(place(fd), "/tmp/") == 0,
	    "and where there is none: %s", place(fd));
	(void)close(fd);
	(void)setenv("TMPDIR", "nowhere", 1);
	ok(temp_open(&fd, &e) == -ERR_SYS && strncmp(ERR_MSG(&e),
	    "'nowhere/ace.", 13) == 0, "nowhere: %s", ERR_MSG(&e));
	err_clear(&e);
}

/* Return the mode of "file" when created under this umask. */
static unsigned
mode_under(mode_t mask)
{
	const mode_t was = umask(mask);
	struct temp t = { 0 };
	struct stat st = { 0 };
	int fd;

	if (temp_begin(&t, "file", &fd, &e) == 0) {
		if (temp_commit(&t, fd, 0, "file", &e) == 0)
			(void)stat("file", &st);
		temp_drop(&t);
	}
	(void)umask(was);
	return st.st_mode & 07777;
}

TEST(test_place)
{
	struct temp t = { 0 };
	int fd = -1;

	ok(mode_under(022) == 0644 && unlink("file") == 0 &&
	    mode_under(0) == 0666 && unlink("file") == 0 &&
	    mode_under(077) == 0600 && unlink("file") == 0 &&
	    mode_under(022) == 0644, "a new file has the mode that others would "
	    "have there");
	ok(names_in(".") == 2, "and its name alone");
	ok(mkdir("sub", 0700) == 0 && temp_begin(&t, "sub/x", &fd, &e) == 0 &&
	    strncmp(t.name, "sub/x.new-", 10) == 0 && access(t.name, F_OK) == 0,
	    "beside the one it becomes");
	temp_sweep("sub");
	ok(access(t.name, F_OK) == 0, "while it is written nobody sweeps it away");
	ok(mkdir("sub/x", 0700) == 0 && temp_commit(&t, fd, 0, "x", &e) == -ERR_SYS,
	    "it cannot be placed there: %s", ERR_MSG(&e));
	ok(access(t.name, F_OK) == 0, "it is still there");
	temp_sweep("sub");
	ok(access(t.name, F_OK) != 0, "and is swept when nobody has it");
	temp_drop(&t);
	err_clear(&e);
	ok(temp_begin(&t, "sub/y", &fd, &e) == 0 && close(fd) == 0 &&
	    names_in("sub") == 2, "one more");
	temp_drop(&t);
	ok(names_in("sub") == 1, "is removed when it is dropped");
}

/* A replacement keeps the permissions of the file it replaces. */
TEST(test_rights)
{
	static const mode_t modes[] = { 0600, 0640, 0666, 0755, 0444, 0400 };
	struct temp t = { 0 };
	struct stat st;
	int fd, good = 1;
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		good = good && chmod("file", modes[i]) == 0 &&
		    temp_begin(&t, "file", &fd, &e) == 0 &&
		    fstat(fd, &st) == 0 && (st.st_mode & 07777) == modes[i] &&
		    temp_commit(&t, fd, 0, "file", &e) == 0 &&
		    stat("file", &st) == 0 && (st.st_mode & 07777) == modes[i];
		temp_drop(&t);
	}
	ok(good, "a file that is replaced keeps its mode");
	ok(chmod("file", 0644) == 0 && umask(022) == 022, "the umask is as it was");
	if (geteuid() != 0)
		return;
	ok(chown("file", 65534, 65533) == 0 && chmod("file", 0640) == 0 &&
	    temp_begin(&t, "file", &fd, &e) == 0 &&
	    temp_commit(&t, fd, 0, "file", &e) == 0 && stat("file", &st) == 0 &&
	    st.st_uid == 65534 && st.st_gid == 65533 &&
	    (st.st_mode & 07777) == 0640, "and its owner and its group");
	temp_drop(&t);
	ok(unlink("file") == 0 && mode_under(022) == 0644, "one of ours again");
}

static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

/* Create files in a child that a signal ends. Return how it ended; *names: how many names
 * are left in "sub". */
static int
ended_by(int sig, int *names)
{
	struct temp t = { 0 }, u = { 0 };
	int fd, status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)temp_begin(&t, "sub/a", &fd, &e);
		(void)temp_begin(&u, "sub/b", &fd, &e);
		temp_drop(&u);
		(void)mkdir("sub/tree", 0700);
		(void)close(open("sub/tree/f", O_CREAT | O_WRONLY, 0600));
		temp_enter("sub/tree");
		if (fork() == 0)
			(void)raise(sig);	/* a forked child removes none of them */
		(void)wait(NULL);
		_exit(names_in("sub") == *names + 2 ? raise(sig) : 99);
	}
	(void)waitpid(pid, &status, 0);
	*names = names_in("sub");
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

TEST(test_signals)
{
	const int had = names_in("sub");
	int names, r;
	size_t i;

	for (i = 0; i < ENDS; i++) {
		names = had;
		r = ended_by(ends[i], &names);
		ok(r == ends[i] && names == had, "signal %d: ended by %d, "
		    "nothing is left", ends[i], r);
	}
}

/* Check where the links of path lead. */
static int
leads(const char *path, const char *want)
{
	char *to;
	int good = temp_target(path, &to, &e) == 0 && strcmp(to, want) == 0;

	alloc_free(to);
	return good;
}

TEST(test_target)
{
	char *to;

	ok(leads("none", "none") && leads("file", "file"),
	    "what is no link, and what is not there");
	ok(symlink("../file", "sub/link") == 0 &&
	    leads("sub/link", "sub/../file"), "a link from where it stands");
	ok(symlink("/etc/passwd", "sub/whole") == 0 &&
	    leads("sub/whole", "/etc/passwd"), "one that is a whole path");
	ok(symlink("link", "sub/again") == 0 &&
	    leads("sub/again", "sub/../file"), "a link to a link");
	ok(temp_folder("sub///", &to, &e) == 0 && strcmp(to, "sub") == 0,
	    "a folder with slashes after it");
	alloc_free(to);
	ok(symlink("sub", "folder") == 0 && temp_folder("folder/", &to, &e) == 0 &&
	    strcmp(to, "sub") == 0 && unlink("folder") == 0, "a link to one");
	alloc_free(to);
	ok(temp_folder("//", &to, &e) == 0 && strcmp(to, "/") == 0, "the root");
	alloc_free(to);
	ok(temp_target("file/x", &to, &e) == -ERR_SYS && to == NULL,
	    "a file is no directory: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(symlink("loop", "loop") == 0 && temp_target("loop", &to, &e) < 0 &&
	    strstr(ERR_MSG(&e), "'loop': ") != NULL, "a link to itself: %s",
	    ERR_MSG(&e));
}

int
main(void)
{
	char dir[] = "/tmp/ace-test.XXXXXX", rm[64];
	size_t i;

	/* a shell that starts this in the background ignores some of them */
	for (i = 0; i < ENDS; i++)
		(void)signal(ends[i], SIG_DFL);
	if (mkdtemp(dir) == NULL || chdir(dir) < 0)
		return 1;
	test_nameless(dir);
	run_tests();
	(void)snprintf(rm, sizeof(rm), "rm -r %s", dir);
	ok(system(rm) == 0, "cleaned up");
	return done_testing();
}
