/* io_create over files of several kinds; spares; skipping, seeking and taking; io_ahead. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "names.h"
#include "../inside.h"
#include "../tap.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (f != NULL) {
		(void)fputs(text, f);
		(void)fclose(f);
	}
}

static int
holds(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	if (fgets(got, sizeof(got), f) == NULL)
		got[0] = '\0';
	(void)fclose(f);
	return strcmp(got, text) == 0;
}

static mode_t
kind(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Write "new" to path; without `commit' the file at path stays. Return 0 or an error. */
static int
make(const char *path, int commit)
{
	struct err e = ERR_INIT;
	struct io *io = NULL;
	int r;

	if ((r = io_create(&io, path, 0, &e)) == 0 &&
	    (r = io_write(io, "new", 3, &e)) == 0 && commit)
		r = io_commit(io, IO_SYNC_FULL, &e);
	io_free(io);
	return r;
}

static void
test_files(void)
{
	ok(make("none", 0) == 0 && kind("none") == 0 && names_in(".") == 0,
	    "no file, not committed: no file");
	ok(make("none", 1) == 0 && holds("none", "new"), "no file: made");
	put("file", "old");
	ok(make("file", 0) == 0 && holds("file", "old") && names_in(".") == 2,
	    "a file, not committed: unchanged");
	ok(make("file", 1) == 0 && holds("file", "new") && names_in(".") == 2,
	    "a file: replaced");
}

/* Read "abcdefg", at most three bytes per call. */
static int
seven_read(void *arg, void *p, size_t n, size_t *got, struct err *err)
{
	size_t *at = arg;

	(void)err;
	*got = 7 - *at < 3 ? 7 - *at : 3;
	*got = *got < n ? *got : n;
	memcpy(p, &"abcdefg"[*at], *got);
	*at += *got;
	return 0;
}

static void
seven_free(void *arg)
{
	(void)arg;
}

TEST(test_from)
{
	size_t at = 0, got = 0;
	const struct io_from from = { seven_read, seven_free, &at };
	struct io *io;
	char p[8];

	ok(io_open_from(&io, &from, "seven", NULL) == 0 &&
	    io_peek(io, p, 2, &got, NULL) == 0 && got == 2 && at == 2 &&
	    memcmp(p, "ab", 2) == 0 && io_read(io, p, 8, &got, NULL) == 0 &&
	    got == 7 && memcmp(p, "abcdefg", 7) == 0 && io_bytes(io) == 7 &&
	    io_seek(io, 0, NULL) == -ERR_USAGE,
	    "another reader is looked into no further than asked for");
	io_free(io);
}

TEST(test_links)
{
	put("sub/to", "old");
	if (symlink("sub/to", "link") < 0)
		perror("symlink");
	if (symlink("../link", "sub/twice") < 0)
		perror("symlink");
	ok(make("link", 1) == 0 && kind("link") == S_IFLNK &&
	    kind("sub/to") == S_IFREG && holds("sub/to", "new"),
	    "a link to a file: the file is replaced, the link stays");
	put("sub/to", "old");
	ok(make("sub/twice", 1) == 0 && kind("sub/twice") == S_IFLNK &&
	    kind("link") == S_IFLNK && holds("sub/to", "new"),
	    "a link to a link: the same");
	if (symlink("sub/not-yet", "dangling") < 0)
		perror("symlink");
	ok(make("dangling", 1) == 0 && kind("dangling") == S_IFLNK &&
	    holds("sub/not-yet", "new"), "a dangling link: what it names is made");
	if (symlink("loop", "loop") < 0)
		perror("symlink");
	ok(make("loop", 1) == -ERR_SYS && kind("loop") == S_IFLNK,
	    "a link to itself: refused");
}

/* The reader of a FIFO gets the output to path (the FIFO or a link to it), and its end. */
static void
test_fifo(const char *path, const char *what)
{
	char got[16] = "";
	ssize_t n = 0, k;
	int fd, status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(600);
		_exit(make(path, 1) == 0 ? 0 : 1);
	}
	fd = open("fifo", O_RDONLY);
	while ((k = read(fd, got + n, sizeof(got) - 1 - (size_t)n)) > 0)
		n += k;
	(void)close(fd);
	(void)waitpid(pid, &status, 0);
	ok(status == 0 && strcmp(got, "new") == 0 && kind("fifo") == S_IFIFO,
	    "%s: written into", what);
}

TEST(test_special)
{
	const struct sockaddr_un at = { AF_UNIX, "socket" };

	(void)mkfifo("fifo", 0600);
	test_fifo("fifo", "a FIFO");
	if (symlink("fifo", "to-fifo") < 0)
		perror("symlink");
	test_fifo("to-fifo", "a link to a FIFO");
	ok(kind("to-fifo") == S_IFLNK, "the link stays");
	/* as root a rename over the real /dev/null would succeed; with a link to it a
	 * failing test breaks nothing */
	if (symlink("/dev/null", "null") < 0)
		perror("symlink");
	ok(make("null", 1) == 0 && kind("null") == S_IFLNK,
	    "a link to /dev/null: it stays a link");
	if (kind("null") == S_IFLNK)
		ok(make("/dev/null", 1) == 0 && kind("/dev/null") == S_IFCHR,
		    "/dev/null: stays what it is");
	(void)mkdir("folder", 0700);
	ok(make("folder", 1) == -ERR_SYS && kind("folder") == S_IFDIR,
	    "a directory: refused");
	if (symlink("folder", "to-folder") < 0)
		perror("symlink");
	ok(make("to-folder", 1) == -ERR_SYS && kind("to-folder") == S_IFLNK,
	    "a link to a directory: refused");
	ok(bind(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&at,
	    sizeof(at)) == 0 && make("socket", 1) == -ERR_SYS &&
	    kind("socket") == S_IFSOCK, "a socket: refused");
	ok(make("file/x", 1) == -ERR_SYS && make("no/x", 1) == -ERR_SYS,
	    "a path without a directory: refused");
}

/* A directory that this user may not write to; root becomes another user for this. */
TEST(test_readonly)
{
	int status = 1;
	pid_t pid;

	put("folder/x", "old");
	(void)chmod(".", 0755);
	(void)chmod("folder", 0555);
	(void)chmod("folder/x", 0666);
	if ((pid = fork()) == 0) {
		if (geteuid() == 0 && setuid(65534) < 0)
			_exit(2);
		_exit(make("folder/x", 1) == -ERR_SYS &&
		    make("folder/y", 1) == -ERR_SYS ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	(void)chmod("folder", 0700);
	ok(status == 0 && holds("folder/x", "old"),
	    "a directory that may only be read: refused, as it was");
}

/* Read 3 bytes at several places of a file and skip the rest. Then seek back to byte 1255, and
 * skip beyond the end. alone 1: io opens the file itself, and the position of our own
 * descriptor must not move; sparse 1: after io_sparse. */
static void
test_pass(int alone, int sparse)
{
	static const unsigned jump[] = { 0, 1, 4, 500, 7, 600, 70000, 3, 2000 };
	struct io *io = NULL;
	unsigned char p[3];
	size_t i, got, at = 0, wrong = 0;
	int fd = open("long", O_RDONLY);
	int r = fd < 0 ? -1 : alone ? io_open(&io, "long", NULL) :
	    io_open_fd(&io, fd, "long", NULL);

	if (r == 0 && sparse)
		io_sparse(io);
	for (i = 0; r == 0 && i < sizeof(jump) / sizeof(*jump); i++) {
		at += jump[i];
		r = io_seek(io, io_bytes(io) + jump[i], NULL);
		wrong += r < 0 || io_read(io, p, 3, &got, NULL) < 0 ||
		    got != 3 || p[0] != at / 251 % 251 ||
		    p[1] != (at + 1) / 251 % 251 || p[2] != (at + 2) / 251 % 251;
		at += 3;
		wrong += io_bytes(io) != at;
	}
	if (r == 0)
		wrong += io_seek(io, 251 * 5, NULL) < 0 ||
		    io_read(io, p, 1, &got, NULL) < 0 || got != 1 || p[0] != 5 ||
		    io_seek(io, io_bytes(io) + 200000, NULL) < 0 ||
		    io_read(io, p, 1, &got, NULL) < 0 || got != 0;
	ok(r == 0 && wrong == 0, "passed over, %s file%s", alone ? "its own" :
	    "another's", sparse ? ", sparsely" : "");
	if (alone)
		ok(lseek(fd, 0, SEEK_CUR) == 0, "another descriptor does not move");
	io_free(io);
	(void)close(fd);
}

TEST(make_long)
{
	FILE *f = fopen("long", "w");
	unsigned i;

	for (i = 0; f != NULL && i < 100000; i++)
		(void)fputc((int)(i / 251 % 251), f);
	if (f != NULL)
		(void)fclose(f);
}

/* Write n bytes of c and, with `commit', replace path by them; spare: the name under which
 * the old file stays. Return 0 or an error. */
static int
over(const char *path, const char *spare, char c, size_t n, int commit)
{
	struct err e = ERR_INIT;
	static char b[512 << 10];
	struct io *io = NULL;
	int r;

	memset(b, c, n);
	if ((r = io_create_over(&io, path, spare, 1, &e)) == 0 &&
	    (r = io_write(io, b, n, &e)) == 0 && commit)
		r = io_commit(io, IO_SYNC_FULL, &e);
	io_free(io);
	return r;
}

static ino_t
inode(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Return 1 if the file begins with c and has n bytes. */
static int
begins(const char *path, char c, off_t n)
{
	struct stat st;
	FILE *f = fopen(path, "r");
	int got;

	if (f == NULL)
		return 0;
	got = getc(f);
	return fclose(f) == 0 && got == c && stat(path, &st) == 0 && st.st_size == n;
}

TEST(test_over)
{
	enum { LARGE = 300 << 10, LARGER = 400 << 10, SMALL = 1000 };
	static const char p[] = "counts", s[] = "spare", more[] = "backup";
	ino_t first, second;

	ok(over(p, s, 'a', SMALL, 1) == 0 && over(p, s, 'b', LARGER, 1) == 0 &&
	    inode(s) == 0, "a small file is not kept");
	first = inode(p);
	ok(over(p, s, 'c', LARGE, 1) == 0 && inode(s) == first &&
	    begins(s, 'b', LARGER) && begins(p, 'c', LARGE),
	    "a large file is kept, unchanged");
	second = inode(p);
	ok(over(p, s, 'd', LARGE, 1) == 0 && inode(p) == first &&
	    inode(s) == second && begins(p, 'd', LARGE) &&
	    begins(s, 'c', LARGE), "the next file overwrites it and is truncated");
	ok(over(p, s, 'e', LARGE, 0) == 0 && begins(p, 'd', LARGE) &&
	    inode(s) == 0, "an output that is not committed removes the spare");
	ok(link(p, s) == 0 && over(p, s, 'f', LARGE, 0) == 0 &&
	    begins(p, 'd', LARGE), "a spare that is the file itself, as after a "
	    "kill, is left alone");
	ok(over(p, s, 'g', LARGE, 1) == 0 && link(s, more) == 0 &&
	    over(p, s, 'h', LARGE, 1) == 0 && begins(more, 'd', LARGE) &&
	    begins(p, 'h', LARGE), "and so is one with a second link, as in a backup");
}

/* A pipe cannot be read from a byte offset. */
TEST(test_pipe)
{
	struct err e = ERR_INIT;
	struct io *io = NULL;
	int fd[2], r = pipe(fd);

	r |= write(fd[1], "0123456789abcdef", 16) != 16 || close(fd[1]) < 0;
	r |= io_open_fd(&io, fd[0], "<pipe>", &e);
	if (!ok(r == 0, "a pipe"))
		return;
	ok(io_seek(io, 0, &e) == -ERR_USAGE, "no way to a place in it: %s",
	    ERR_MSG(&e));
	io_free(io);
	(void)close(fd[0]);
}

/* Return 1 if the next bytes are `want'. */
static int
next(struct io *io, const char *want)
{
	const size_t n = strlen(want);
	unsigned char p[16];
	size_t got;

	return io_read(io, p, n, &got, NULL) == 0 && got == n &&
	    memcmp(p, want, n) == 0;
}

/* Seek back and forth, inside the buffer and outside it. */
TEST(test_back)
{
	struct io *io = NULL;

	put("file", "0123456789");
	ok(io_open(&io, "file", NULL) == 0 && next(io, "012") &&
	    io_seek(io, 1, NULL) == 0 && next(io, "123") && io_bytes(io) == 4 &&
	    io_seek(io, io_bytes(io) + 3, NULL) == 0 && next(io, "7") &&
	    io_seek(io, 20, NULL) == 0 && next(io, "") &&
	    io_seek(io, 9, NULL) == 0 && next(io, "9") && io_bytes(io) == 10 &&
	    io_seek(io, 0, NULL) == 0 && next(io, "0123"), "back and forth");
	io_free(io);
}

/* io_take returns the bytes that have arrived, without waiting for more. */
TEST(test_take)
{
	struct err e = ERR_INIT;
	struct io *io = NULL;
	unsigned char p[8];
	size_t got = 9;
	int fd[2];

	if (!ok(pipe(fd) == 0 && io_open_fd(&io, fd[0], "<pipe>", &e) == 0 &&
	    io_is_pipe(io) && !io_can_seek(io), "a pipe that stays open"))
		return;
	ok(io_take(io, p, 8, 0, &got, &e) == IO_NOT_YET && got == 0 &&
	    io_bytes(io) == 0 && io_ready(io, 0, &e) == 0, "no bytes yet");
	ok(write(fd[1], "abc", 3) == 3 &&
	    io_take(io, p, 8, -1, &got, &e) == IO_GOT && got == 3 &&
	    memcmp(p, "abc", 3) == 0 && io_bytes(io) == 3,
	    "what there is, without waiting for more");
	ok(write(fd[1], "defgh", 5) == 5 &&
	    io_take(io, p, 2, 0, &got, &e) == IO_GOT && got == 2 &&
	    io_ready(io, 0, &e) == 1 && io_take(io, p, 8, 0, &got, &e) ==
	    IO_GOT && got == 3 && io_bytes(io) == 8, "the rest later");
	(void)close(fd[1]);
	ok(io_take(io, p, 8, 0, &got, &e) == IO_END && got == 0, "the end");
	io_free(io);
	(void)close(fd[0]);
}

/* A program's own files must be regular files or absent. */
TEST(test_kept)
{
	struct err e = ERR_INIT;
	struct io *io = NULL;

	put("kept", "0123");
	ok(io_open_kept(&io, "kept", &e) == 1 && io_can_seek(io) &&
	    io_size(io) == 4 && next(io, "0123"), "a file");
	io_free(io);
	ok(io_open_kept(&io, "no-such", &e) == 0 && io == NULL &&
	    e.code == ERR_OK, "an absent file is no error");
	ok(symlink("kept", "to-kept") == 0 &&
	    io_open_kept(&io, "to-kept", &e) == -ERR_SYS,
	    "a link to one is not followed: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(io_open_kept(&io, "kept/x", &e) == -ERR_SYS,
	    "what cannot be looked for: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(io_open_kept(&io, "folder", &e) == -ERR_DATA &&
	    strcmp(ERR_MSG(&e), "corrupt: 'folder' is not a regular file") == 0,
	    "a directory: %s", ERR_MSG(&e));
	err_clear(&e);
	(void)alarm(600);
	ok(io_open_kept(&io, "fifo", &e) == -ERR_DATA &&
	    strcmp(ERR_MSG(&e), "corrupt: 'fifo' is not a regular file") == 0,
	    "a FIFO, which nobody waits for: %s", ERR_MSG(&e));
	(void)alarm(0);
	err_clear(&e);
	ok(io_open(&io, "folder", &e) == -ERR_SYS && io == NULL &&
	    strcmp(ERR_MSG(&e), "'folder': Is a directory") == 0,
	    "nor is a directory opened: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(fd_sync_name("/none", &e) == 0 && fd_sync_name("none", &e) == 0 &&
	    fd_sync_name("sub/none", &e) == 0,
	    "the directory of a name: the root, the one at hand, another");
	ok(fd_sync_name("no-such/x", &e) == -ERR_SYS, "or one that is not "
	    "there: %s", ERR_MSG(&e));
}

/* Bytes written from io_ahead's position on stay until the output reaches them. */
static void
test_ahead(void)
{
	static unsigned char block[8192];
	struct io *io;
	struct stat st;
	uint64_t from;
	int fd, k, r;

	if (io_create_over(&io, "ahead", NULL, 0, NULL) < 0)
		return;
	r = io_write(io, block, 5000, NULL);
	r |= io_ahead(io, 3000, &fd, &from, NULL);
	memset(block, 7, sizeof(block));
	ok(r == 0 && from == 8192 && pwrite(fd, block, sizeof(block),
	    (off_t)from) == sizeof(block), "behind what was written and a slack");
	memset(block, 0, sizeof(block));
	r = io_write(io, block, 3000, NULL);
	r |= io_flush(io, NULL);
	r |= pread(fd, block, sizeof(block), (off_t)from) != sizeof(block);
	for (k = 0; k < (int)sizeof(block); k++)
		r |= block[k] != 7;
	ok(r == 0, "it stays until it is written over");
	ok(io_commit(io, IO_SYNC_NONE, NULL) == 0 && stat("ahead", &st) == 0 &&
	    st.st_size == 8000, "and is not a part of what is made");
	io_free(io);
	(void)close(fd);
}

int
main(void)
{
	test_files();
	(void)mkdir("sub", 0700);
	run_tests();
	test_pass(1, 0);
	test_pass(1, 1);
	test_pass(0, 0);
	test_pass(0, 1);
	test_ahead();
	return done_testing();
}
