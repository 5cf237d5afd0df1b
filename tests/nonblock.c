/*
 * nonblock CMD...: run CMD with O_NONBLOCK pipes as standard input and output, copy our own
 * input and output through them in pieces of at most 997 bytes, and return CMD's exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int
set_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Copy a small piece from a to b. Return its bytes; 0: a has ended or b failed; -1: a failed. */
static ssize_t
piece(int a, int b)
{
	char buf[997];
	ssize_t n = read(a, buf, sizeof(buf)), k, done = 0;

	while (done < n) {
		struct pollfd p = { .fd = b, .events = POLLOUT };

		k = write(b, buf + done, (size_t)(n - done));
		if (k > 0)
			done += k;
		else if (errno != EAGAIN || poll(&p, 1, -1) < 0)
			return 0;
	}
	return n;
}

int
main(int argc, char **argv)
{
	struct pollfd p[2];
	int in[2], out[2], status;
	pid_t pid;

	if (argc < 2 || pipe(in) < 0 || pipe(out) < 0 || set_nonblock(in[0]) < 0 ||
	    set_nonblock(out[1]) < 0 || (pid = fork()) < 0)
		return 99;
	if (pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)close(in[0]);
		(void)close(in[1]);
		(void)close(out[0]);
		(void)close(out[1]);
		execvp(argv[1], argv + 1);
		_exit(99);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)close(in[0]);
	(void)close(out[1]);
	(void)set_nonblock(in[1]);
	p[0] = (struct pollfd){ .fd = in[1], .events = POLLOUT };
	p[1] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	while (poll(p, 2, -1) > 0) {
		if (p[1].revents != 0 && piece(out[0], 1) <= 0)
			break;
		if (p[0].revents != 0 && piece(0, in[1]) <= 0) {
			(void)close(in[1]);
			p[0].fd = -1;
		}
	}
	if (waitpid(pid, &status, 0) < 0)
		return 99;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
}
