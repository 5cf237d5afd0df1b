/*
 * hop [-n TRIES] [-b BYTES] [-p CMD] [-w CMD] WHAT CMD PEER: measure the time of the shell
 * command CMD, and of PEER, a command that moves the same bytes, such as cat.
 *
 * The two run in turn, so that other load slows both, and the fastest of TRIES (default 3)
 * counts.  hop prints one line: WHAT; CMD's time and CPU time in ms, and BYTES per time in
 * GB/s; PEER's time in ms; PEER's time divided by CMD's; the peak memory in MiB of CMD's
 * largest process; CMD's result: the number of bytes on standard output, which hop
 * reads, the exit status, and the line that the command of -w makes of these bytes.
 *
 * A command that does less when it runs again would look faster than it is.  So the
 * command of -p runs before each try of CMD and prepares it (a new state, a new step); its
 * time is not counted.  It is an error if two tries have different results, or if a later
 * try of CMD takes less than half of the first try's time, by the clock or in user CPU time.
 * System CPU time is left out: on a virtual machine, pages that the host must allocate
 * cost several times as much as others.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 128 << 10, PAGE = 4096, KEEP = 64 << 20, LINE = 64 };
/* In seconds. If the first try takes less, do not compare later tries with it: on a busy
 * machine such short times vary by more than a factor of two. */
#define LEAST 0.1
#define LEAST_CPU 0.02

struct out {
	uint64_t bytes, sum;
	int status;
	char line[LINE];	/* printed by the command of -w */
};

struct took {
	double wall, user, system;	/* seconds */
	long peak;		/* peak memory, KiB */
	struct out out;
};

struct hop {
	const char *what, *before, *say;
	int tries;
};

/* The output of CMD, kept for the command of -w. */
static unsigned char *kept;

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

/* Add the first PAGE bytes of a piece to the sum: reading more would slow the pipe. */
static void
look(struct out *o, const unsigned char *p, size_t n)
{
	uint64_t w;
	size_t i;

	for (i = 0; i < n && i < PAGE; i += sizeof(w)) {
		w = 0;
		memcpy(&w, p + i, n - i < sizeof(w) ? n - i : sizeof(w));
		o->sum = (o->sum ^ w) * 0x9e3779b97f4a7c15u;
		o->sum ^= o->sum >> 32;
	}
	o->bytes += n;
}

static size_t
fill(int fd, unsigned char *p, size_t n)
{
	size_t all = 0;
	ssize_t k;

	while (all < n && (k = read(fd, p + all, n - all)) > 0)
		all += (size_t)k;
	return all;
}

static void
drain(struct out *o, int fd)
{
	static unsigned char piece[PIECE];
	unsigned char *to = piece;
	size_t n;

	do {
		if (kept != NULL)
			to = o->bytes + PIECE <= KEEP ? kept + o->bytes : piece;
		n = fill(fd, to, PIECE);
		look(o, to, n);
	} while (n == PIECE);
}

static void
piped(const char *what, int end[2])
{
	if (pipe(end) < 0 || fcntl(end[0], F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(end[1], F_SETFD, FD_CLOEXEC) < 0)
		die(what, "pipe");
}

static pid_t
start(const char *cmd, int in, int out)
{
	const pid_t pid = fork();

	if (pid == 0) {
		if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) ||
		    (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
			_exit(99);
		execlp("bash", "bash", "-o", "pipefail", "-c", cmd,
		    (char *)NULL);
		_exit(99);
	}
	return pid;
}

static int
status_of(int w)
{
	return WIFEXITED(w) ? WEXITSTATUS(w) : 128 + WTERMSIG(w);
}

/* Run the command of -w on the output, and store the line that it prints. */
static void
say(const struct hop *h, struct out *o)
{
	FILE *f = tmpfile();
	int w, end[2];
	size_t n;
	pid_t pid = -1;

	piped(h->what, end);
	if (f == NULL || o->bytes > KEEP || fwrite(kept, 1, (size_t)o->bytes,
	    f) != o->bytes || fflush(f) != 0 || lseek(fileno(f), 0,
	    SEEK_SET) < 0 ||
	    (pid = start(h->say, fileno(f), end[1])) < 0)
		die(h->what, h->say);
	(void)close(end[1]);
	n = fill(end[0], (unsigned char *)o->line, LINE - 1);
	o->line[n] = '\0';
	o->line[strcspn(o->line, "\n")] = '\0';
	(void)close(end[0]);
	if (waitpid(pid, &w, 0) < 0 || status_of(w) != 0)
		die(h->what, h->say);
	(void)fclose(f);
}

static void
run(const struct hop *h, const char *cmd, int ours, struct took *t)
{
	struct rusage ru;
	double from;
	int w, end[2];
	pid_t pid;

	memset(t, 0, sizeof(*t));
	if (ours && h->before != NULL && ((pid = start(h->before, -1,
	    STDERR_FILENO)) < 0 || waitpid(pid, &w, 0) < 0 ||
	    status_of(w) != 0))
		die(h->what, h->before);
	piped(h->what, end);
	from = clock_now();
	if ((pid = start(cmd, -1, end[1])) < 0)
		die(h->what, "fork");
	(void)close(end[1]);
	drain(&t->out, end[0]);
	if (wait4(pid, &w, 0, &ru) < 0)
		die(h->what, "wait");
	t->wall = clock_now() - from;
	t->user = seconds(ru.ru_utime);
	t->system = seconds(ru.ru_stime);
	t->peak = ru.ru_maxrss;
	t->out.status = status_of(w);
	(void)close(end[0]);
	if (ours && h->say != NULL)
		say(h, &t->out);
}

/* Return 1 if try t took less than half of the first try's time, and that was not too short. */
static int
sooner(const struct took *first, const struct took *t)
{
	const double a = first->wall - first->system, b = t->wall - t->system;

	return (a > LEAST && 2 * b < a) ||
	    (first->user > LEAST_CPU && 2 * t->user < first->user);
}

/* Exit unless try k did the same work as the first try. ours 0: the try is of PEER, whose times
 * are not checked, since they cannot make CMD look faster. */
static void
compare(const char *what, const char *cmd, const struct took *first,
    const struct took *t, int ours, int k)
{
	const struct out *a = &first->out, *b = &t->out;
	char why[512];

	if (a->bytes != b->bytes || a->sum != b->sum ||
	    a->status != b->status || strcmp(a->line, b->line) != 0)
		(void)snprintf(why, sizeof(why), "try %d gave %llu bytes, "
		    "status %d, %s, the first %llu, status %d, %s", k + 1,
		    (unsigned long long)b->bytes, b->status, b->line,
		    (unsigned long long)a->bytes, a->status, a->line);
	else if (ours && sooner(first, t))
		(void)snprintf(why, sizeof(why), "try %d took %.1f ms (%.1f of "
		    "processors and %.1f of the system), the first %.1f (%.1f and "
		    "%.1f): it did less, or the machine was busy", k + 1,
		    1e3 * t->wall, 1e3 * t->user, 1e3 * t->system,
		    1e3 * first->wall, 1e3 * first->user, 1e3 * first->system);
	else
		return;
	(void)fprintf(stderr, "hop: %s\n", cmd);
	die(what, why);
}

/* Keep in best the try with the shortest time, and the largest memory of tries 0 to k. */
static void
better(struct took *best, const struct took *t, int k)
{
	const long peak = k > 0 && best->peak > t->peak ? best->peak : t->peak;

	if (k == 0 || t->wall < best->wall)
		*best = *t;
	best->peak = peak;
}

/* Run all tries, the two commands in turn. */
static void
measure(const struct hop *h, char **cmd, struct took best[2])
{
	struct took first[2], t;
	int k, i;

	for (k = 0; k < h->tries; k++)
		for (i = 0; i < 2; i++) {
			run(h, cmd[i], i == 0, &t);
			if (k == 0)
				first[i] = t;
			compare(h->what, cmd[i], &first[i], &t, i == 0, k);
			better(&best[i], &t, k);
		}
}

int
main(int argc, char **argv)
{
	struct hop h = { .tries = 3 };
	struct took best[2];
	double bytes = 0;
	int k;

	while ((k = getopt(argc, argv, "+n:b:p:w:")) != -1)
		if (k == 'n')
			h.tries = atoi(optarg);
		else if (k == 'b')
			bytes = atof(optarg);
		else if (k == 'p')
			h.before = optarg;
		else if (k == 'w')
			h.say = optarg;
		else
			return 2;
	if (argc - optind != 3 || h.tries < 1)
		return 2;
	argv += optind;
	h.what = argv[0];
	if (h.say != NULL && (kept = malloc(KEEP)) == NULL)
		die(h.what, "no memory");
	measure(&h, argv + 1, best);
	(void)printf("%-38s %8.1f %8.1f %7.3f %8.1f %7.2f %8.1f %11llu %6d %s\n",
	    h.what, 1e3 * best[0].wall,
	    1e3 * (best[0].user + best[0].system),
	    1e-9 * bytes / best[0].wall, 1e3 * best[1].wall,
	    best[1].wall / best[0].wall, (double)best[0].peak / 1024,
	    (unsigned long long)best[0].out.bytes, best[0].out.status,
	    best[0].out.line);
	if (best[0].out.status != 0 || best[1].out.status != 0)
		die(h.what, "failed");
	free(kept);
	return 0;
}
