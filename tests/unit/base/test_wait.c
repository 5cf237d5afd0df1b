#include <fcntl.h>
#include <signal.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/clock.h"
#include "base/wait.h"

#include "../inside.h"
#include "../test.h"

TEST(test_time)
{
	struct wait w = wait_begin(0.05, -1);
	struct err e = ERR_INIT;
	double from = clock_now();
	int looks = 0;

	while (wait_more(&w, &e) == WAIT_LOOK)
		looks++;
	ok(clock_now() - from >= 0.05 && e.code == ERR_OK,
	    "waits at least the given time");
	ok(looks <= 12, "%d looks in 50 ms: the pauses grow", looks);
	w = wait_begin(0, -1);
	ok(wait_more(&w, &e) == WAIT_OVER, "no time: it looks once");
	w = wait_begin(-1, -1);
	for (looks = 0; looks < 9 && wait_more(&w, &e) == WAIT_LOOK; looks++)
		;
	ok(looks == 9 && w.ms <= 20, "without a limit, each pause is short");
	from = clock_now();
	ok(wait_secs(0.03, -1, &e) == 0 && clock_now() - from >= 0.03,
	    "a pause has the requested length");
}

/* A change of a file after clock_settle changes its modification time. */
TEST(test_settle)
{
	const struct timespec future = { (time_t)1 << 33, 0 };
	const int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	const double from = clock_now();
	struct stat was, now;
	int i, same = 0;

	for (i = 0; i < 20; i++) {
		if (pwrite(fd, "a", 1, 0) != 1 || fstat(fd, &was) < 0)
			break;
		clock_settle(was.st_mtim);
		if (pwrite(fd, "b", 1, 0) != 1 || fstat(fd, &now) < 0)
			break;
		same += was.st_mtim.tv_sec == now.st_mtim.tv_sec &&
		    was.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
	}
	ok(i == 20 && same == 0, "two writes, %d of %d with the same time",
	    same, i);
	for (i = 0; i < 1000; i++)
		clock_settle(future);
	ok(clock_now() - from < 100, "it does not wait for a time far in the future");
	(void)close(fd);
}

TEST(test_reader)
{
	struct wait w;
	struct err e = ERR_INIT;
	double from = clock_now();
	int in[2], out[2];
	size_t got;
	char c;

	if (pipe(in) < 0 || pipe(out) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return;
	w = wait_begin(-1, out[1]);
	ok(wait_more(&w, &e) == WAIT_LOOK && wait_orphan(out[1], 0, &e) == 0,
	    "the output has a reader");
	ok(fd_ready(in[0], out[1], 1, "in", &e) == 0, "nothing to read yet");
	ok(write(in[1], "x", 1) == 1 &&
	    fd_ready(in[0], out[1], -1, "in", &e) == 1, "something to read");
	(void)close(out[0]);
	ok(wait_more(&w, &e) == -ERR_SYS && e.quiet && e.code == ERR_SYS,
	    "nobody does: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(wait_secs(1000, out[1], &e) == -ERR_SYS && e.quiet,
	    "a pause ends if nobody reads the output");
	err_clear(&e);
	ok(fd_read(in[0], out[1], &c, 1, &got, "in", &e) == 0 && got == 1,
	    "waiting input is read nevertheless");
	ok(fd_read(in[0], out[1], &c, 1, &got, "in", &e) == -ERR_SYS &&
	    e.quiet, "then waiting for input ends");
	ok(clock_now() - from < 100, "none of these calls waits");
	(void)close(out[1]);
	(void)close(in[0]);
	(void)close(in[1]);
}
