/*
 * peak FILE CMD...: run CMD, write its peak resident memory in KiB to FILE, and return its
 * exit status (128 + n for a signal n).  Large pages are switched off if possible, since
 * they would count as a whole.
 */
#include <stdio.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct rusage ru;
	FILE *f;
	int status;
	pid_t pid;

	if (argc < 3 || (pid = fork()) < 0)
		return 99;
	if (pid == 0) {
#ifdef PR_SET_THP_DISABLE
		(void)prctl(PR_SET_THP_DISABLE, 1L, 0L, 0L, 0L); /* best effort */
#endif
		execvp(argv[2], argv + 2);
		_exit(99);
	}
	if (wait4(pid, &status, 0, &ru) < 0)
		return 99;
	if ((f = fopen(argv[1], "w")) == NULL ||
	    fprintf(f, "%ld\n", ru.ru_maxrss) < 0 || fclose(f) != 0)
		return 99;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
}
