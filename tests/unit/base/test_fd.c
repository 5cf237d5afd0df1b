/*
 * Reading and writing descriptors that are slow, non-blocking or closed at the other end,
 * and with signals in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../tap.h"
#include "base/err.h"
#include "base/fd.h"

enum { LARGE = 300000 };	/* more than a pipe holds */

static int in, out;
static unsigned char data[LARGE], got[LARGE];

static void
ring(int sig)
{
	(void)sig;
}

static void
pipes(int flags)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC | flags) < 0)
		perror("pipe");
	in = fd[0];
	out = fd[1];
}

static void
done(void)
{
	(void)close(in);
	(void)close(out);
}

/* Start a child that reads the pipe to its end, slowly at first, and exits with whether
 * it got all of data. */
static pid_t
reader(void)
{
	pid_t pid = fork();
	size_t n = 0;
	ssize_t k;

	if (pid != 0) {
		(void)close(in);
		in = -1;
		return pid;
	}
	(void)close(out);
	(void)usleep(50000);
	while ((k = read(in, got + n, n < 1000 ? 7 : LARGE - n)) > 0 ||
	    (k < 0 && errno == EAGAIN))
		n += k > 0 ? (size_t)k : 0;
	_exit(n != LARGE || memcmp(got, data, n) != 0);
}

static int
arrived(pid_t pid)
{
	int status = 1;

	(void)close(out);
	out = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0;
}

TEST(test_ready)
{
	struct err e = ERR_INIT;
	int gone[2];

	pipes(0);
	ok(fd_ready(in, -1, 0, "x", &e) == 0, "nothing there, and no wait");
	(void)!write(out, "ab", 2);
	ok(fd_ready(in, -1, -1, "x", &e) == 1, "something there");
	(void)!read(in, got, 2);
	(void)close(out);
	ok(fd_ready(in, -1, -1, "x", &e) == 1, "the end, too, can be read");
	done();
	pipes(0);
	(void)signal(SIGPIPE, SIG_IGN);
	if (pipe2(gone, O_CLOEXEC) == 0)
		(void)close(gone[0]);
	ok(fd_ready(in, gone[1], -1, "x", &e) == -ERR_SYS && e.quiet,
	    "nothing there, and nobody reads what comes of it");
	e = (struct err)ERR_INIT;
	(void)!write(out, "ab", 2);
	ok(fd_ready(in, gone[1], -1, "x", &e) == 1,
	    "nobody reads, but what is there is taken first");
	(void)close(gone[1]);
	done();
}

/* poll(2) fails with more descriptors than may be open: here one. */
static int
unable_to_wait(const char *name, struct err *e)
{
	struct rlimit was, none;
	size_t n;
	int r;

	(void)getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	none.rlim_cur = 0;
	(void)setrlimit(RLIMIT_NOFILE, &none);
	r = fd_read(in, -1, got, 100, &n, name, e);
	(void)setrlimit(RLIMIT_NOFILE, &was);
	return r;
}

TEST(test_read)
{
	struct err e = ERR_INIT;
	struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never;
	size_t n = 9;
	pid_t pid;

	memset(&never, 0, sizeof(never));
	pipes(O_NONBLOCK);
	if ((pid = fork()) == 0) {
		(void)usleep(150000);
		_exit(write(out, "hello", 5) != 5);
	}
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	ok(fd_read(in, -1, got, 100, &n, "x", &e) == 0 && n == 5 &&
	    memcmp(got, "hello", 5) == 0,
	    "it waits where it would not block, and past signals");
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)waitpid(pid, NULL, 0);
	ok(unable_to_wait("that", &e) == -ERR_SYS && strstr(ERR_MSG(&e),
	    "'that'") != NULL, "a wait that fails is no end: %s", ERR_MSG(&e));
	e = (struct err)ERR_INIT;
	(void)close(out);
	out = -1;
	ok(fd_read(in, -1, got, 100, &n, "x", &e) == 0 && n == 0, "the end");
	ok(fd_read(-1, -1, got, 100, &n, "that", &e) == -ERR_SYS && n == 0 &&
	    strstr(ERR_MSG(&e), "'that'") != NULL, "named: %s", ERR_MSG(&e));
	done();
}

TEST(test_write)
{
	struct err e = ERR_INIT;
	struct itimerval soon = { { 0, 5000 }, { 0, 5000 } }, never;
	pid_t pid;
	int i, r;

	memset(&never, 0, sizeof(never));
	for (i = 0; i < 2; i++) {
		pipes(i == 0 ? 0 : O_NONBLOCK);
		pid = reader();
		(void)setitimer(ITIMER_REAL, &soon, NULL);
		r = fd_write(out, data, LARGE, "x", &e);
		(void)setitimer(ITIMER_REAL, &never, NULL);
		ok(r == 0 && arrived(pid), "all of it, in pieces, %s",
		    i == 0 ? "blocking" : "not blocking");
		done();
	}
	pipes(0);
	(void)close(in);
	in = -1;
	ok(fd_write(out, data, 0, "x", &e) == 0, "nothing to nobody");
	ok(fd_write(out, data, 1, "x", &e) == -ERR_SYS && e.quiet,
	    "a byte to nobody: quietly refused");
	e = (struct err)ERR_INIT;
	done();
	ok(fd_write(-1, data, 1, "that", &e) == -ERR_SYS && !e.quiet &&
	    strstr(ERR_MSG(&e), "'that'") != NULL, "named: %s", ERR_MSG(&e));
}

/* Reading at an offset does not depend on the file's position. */
TEST(test_place)
{
	static unsigned char back[1000];
	struct err e = ERR_INIT;
	FILE *f = tmpfile();
	int fd = f != NULL ? fileno(f) : -1;

	ok(fd_write_at(fd, 5, data, 1000, "x", &e) == 0 &&
	    fd_read_all(fd, 5, back, 1000, "x", &e) == 0 &&
	    memcmp(back, data, 1000) == 0, "what was put there is there");
	ok(lseek(fd, 0, SEEK_CUR) == 0, "and the file stands where it stood");
	ok(fd_read_all(fd, 6, back, 1000, "that", &e) == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "'that'") != NULL, "not all there: %s", ERR_MSG(&e));
	if (f != NULL)
		(void)fclose(f);
}

/* A path that ends with a slash syncs the directory itself, not its parent. */
TEST(test_sync_name)
{
	struct err e = ERR_INIT;

	ok(fd_sync_name("absent", &e) == 0, "the folder of a name that is absent");
	ok(fd_sync_name("absent/", &e) == -ERR_SYS, "a folder that is absent");
}

int
main(void)
{
	struct sigaction a;
	size_t i;

	for (i = 0; i < LARGE; i++)
		data[i] = (unsigned char)(i * 7 + i / 256);
	memset(&a, 0, sizeof(a));
	a.sa_handler = ring;	/* without SA_RESTART: signals interrupt calls */
	(void)sigaction(SIGALRM, &a, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	run_tests();
	return done_testing();
}
