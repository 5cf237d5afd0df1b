/*
 * Work in a process of its own, where the n-th allocation fails and all after it,
 * for each n until none fails.
 */
#ifndef STARVE_H
#define STARVE_H

#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

enum starved { STARVED_NOT, STARVED_SAID, STARVED_WRONG };

/* How often it ended with STARVED_SAID before it ended with STARVED_NOT; -1 where
 * it once did anything else. */
static inline int
starve(enum starved (*work)(void))
{
	int n, status;
	pid_t pid;

	for (n = 0;; n++) {
		status = -1;
		if ((pid = fork()) == 0) {
			alloc_starve(n);
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
