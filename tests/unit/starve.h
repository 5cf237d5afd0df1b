/*
 * Work in a process of its own, where the n-th allocation fails and all after it,
 * for each n until none fails.  Called before the test itself allocates: what is
 * to fail is asked once (lib/base/alloc.c).
 */
#ifndef STARVE_H
#define STARVE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum starved { STARVED_NOT, STARVED_SAID, STARVED_WRONG };

/* How often it ended with STARVED_SAID before it ended with STARVED_NOT; -1 where
 * it once did anything else. */
static inline int
starve(enum starved (*work)(void))
{
	char text[16];
	int n, status;
	pid_t pid;

	for (n = 0;; n++) {
		status = -1;
		if ((pid = fork()) == 0) {
			(void)snprintf(text, sizeof(text), "%d", n + 1);
			(void)setenv("ACE_FAIL_ALLOC", text, 1);
			_exit((int)work());
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid ||
		    !WIFEXITED(status) || WEXITSTATUS(status) > STARVED_SAID)
			return -1;
		if (WEXITSTATUS(status) == STARVED_NOT)
			return n;
	}
}

#endif
