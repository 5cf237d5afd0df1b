/*
 * Run work in a child in which all allocations after the first n fail, for n = 0, 1, ... until
 * none fails.
 */
#ifndef STARVE_H
#define STARVE_H

#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

enum starved { STARVED_NOT, STARVED_SAID, STARVED_WRONG };

/* Return how many children ended with STARVED_SAID before one ended with STARVED_NOT; -1
 * after any other result. */
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
