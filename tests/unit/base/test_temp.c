/* Temporary files: where they are, that nothing is left of them, and what
 * becomes of them. */
#include <fcntl.h>
#include <sys/stat.h>

#include "names.h"
#include "../tap.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"

static struct err e;

/* The directory that an open file is or was in, with a / behind it. */
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

/* The mode of "file", made under a umask. */
static unsigned
mode_under(mode_t mask)
{
	const mode_t was = umask(mask);
	struct stat st = { 0 };
	char *temp;
	int fd;

	if (temp_beside("file", &temp, &fd, &e) == 0) {
		if (temp_place(fd, temp, "file", "file", &e) == 0)
			(void)stat("file", &st);
		alloc_free(temp);
	}
	(void)umask(was);
	return st.st_mode & 07777;
}

TEST(test_place)
{
	char *temp = NULL;
	int fd = -1;

	ok(mode_under(022) == 0644 && mode_under(0) == 0666 &&
	    mode_under(077) == 0600, "a file has the mode that others would "
	    "have there");
	ok(names_in(".") == 2, "and its name alone");
	ok(mkdir("sub", 0700) == 0 &&
	    temp_beside("sub/x", &temp, &fd, &e) == 0 &&
	    strncmp(temp, "sub/x.new-", 10) == 0 && access(temp, F_OK) == 0,
	    "beside the one it becomes");
	temp_sweep("sub");
	ok(access(temp, F_OK) == 0, "while it is written nobody sweeps it away");
	ok(temp_place(fd, temp, "sub/none/x", "x", &e) == -ERR_SYS,
	    "it cannot be placed there: %s", ERR_MSG(&e));
	ok(access(temp, F_OK) == 0, "it is still there");
	temp_sweep("sub");
	ok(access(temp, F_OK) != 0, "and is swept when nobody has it");
	alloc_free(temp);
	err_clear(&e);
}

/* Where the links of path lead. */
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

	if (mkdtemp(dir) == NULL || chdir(dir) < 0)
		return 1;
	test_nameless(dir);
	run_tests();
	(void)snprintf(rm, sizeof(rm), "rm -r %s", dir);
	ok(system(rm) == 0, "cleaned up");
	return done_testing();
}
