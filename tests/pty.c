/*
 * pty CMD...: run CMD with a terminal as standard output; copy its output, and return its exit
 * status.  pty -i CMD...: the terminal is also standard input.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	int in = argc > 1 && strcmp(argv[1], "-i") == 0;
	int m = posix_openpt(O_RDWR | O_NOCTTY), s, status;
	char buf[4096];
	ssize_t n;
	pid_t pid;

	if (argc < 2 + in || m < 0 || grantpt(m) < 0 || unlockpt(m) < 0 ||
	    (s = open(ptsname(m), O_RDWR | O_NOCTTY)) < 0 || (pid = fork()) < 0) {
		perror("pty");
		return 99;
	}
	if (pid == 0) {
		(void)dup2(s, STDOUT_FILENO);
		if (in)
			(void)dup2(s, STDIN_FILENO);
		(void)close(s);
		(void)close(m);
		execvp(argv[1 + in], argv + 1 + in);
		_exit(99);
	}
	(void)close(s);
	while ((n = read(m, buf, sizeof(buf))) > 0)	/* EIO: all other ends closed */
		if (write(STDOUT_FILENO, buf, (size_t)n) != n)
			return 99;
	if (waitpid(pid, &status, 0) < 0)
		return 99;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
}
