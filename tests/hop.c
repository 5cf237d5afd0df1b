/*
 * hop [-n TRIES] [-b BYTES] WHAT CMD PEER: the time of one shell command beside
 * another's that does the same with the same bytes, such as cat.
 *
 * They run by turns and the best of TRIES (default 3) counts, so that a machine
 * that is busy for a while slows both.  A line: WHAT, the time of CMD in ms, the
 * processors' time in it, GB/s of BYTES, the peer's ms, how many times as fast
 * as the peer CMD is, and the peak memory of its largest process in MiB.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct took {
	double wall, cpu;
	long peak;		/* KiB */
};

static void
die(const char *what, const char *why)
{
	(void)fprintf(stderr, "hop: %s: %s\n", what, why);
	exit(1);
}

static double
clock_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* One run; *best keeps the shortest time and the largest memory. */
static void
run(const char *what, const char *cmd, struct took *best)
{
	const double from = clock_now();
	struct rusage ru;
	double wall;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die(what, "fork");
	if (pid == 0) {
		execlp("bash", "bash", "-o", "pipefail", "-c", cmd,
		    (char *)NULL);
		_exit(99);
	}
	if (wait4(pid, &status, 0, &ru) < 0 || status != 0)
		die(what, cmd);
	wall = clock_now() - from;
	if (wall < best->wall) {
		best->wall = wall;
		best->cpu = seconds(ru.ru_utime) + seconds(ru.ru_stime);
	}
	if (ru.ru_maxrss > best->peak)
		best->peak = ru.ru_maxrss;
}

int
main(int argc, char **argv)
{
	struct took ours = { 1e9, 0, 0 }, peer = { 1e9, 0, 0 };
	double bytes = 0;
	int tries = 3, k;

	while ((k = getopt(argc, argv, "+n:b:")) != -1)
		if (k == 'n')
			tries = atoi(optarg);
		else if (k == 'b')
			bytes = atof(optarg);
		else
			return 2;
	if (argc - optind != 3)
		return 2;
	argv += optind;
	for (k = 0; k < tries; k++) {
		run(argv[0], argv[1], &ours);
		run(argv[0], argv[2], &peer);
	}
	(void)printf("%-38s %8.1f %8.1f %7.3f %8.1f %7.2f %8.1f\n", argv[0],
	    1e3 * ours.wall, 1e3 * ours.cpu, 1e-9 * bytes / ours.wall,
	    1e3 * peer.wall, peer.wall / ours.wall,
	    (double)ours.peak / 1024);
	return 0;
}
