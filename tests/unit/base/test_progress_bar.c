/* The progress line: amounts, share and time left. */
#include "../tap.h"
#include "base/clock.h"
#include "base/progress_bar.h"

enum { AGO = 10000 };		/* seconds since the start */

static FILE *said;

/* Return the line for `done' of `all', to which a second call in the same moment adds nothing;
 * set *left to its seconds left, or to -1. */
static const char *
line(uint64_t done, uint64_t all, const char *unit, double *left)
{
	static char text[256];
	struct progress_bar b = { .on = 1 };
	const char *at;
	size_t n;

	b.since = clock_now() - (double)AGO;
	rewind(stderr);
	(void)!ftruncate(STDERR_FILENO, 0);
	progress_bar_show(&b, done, all, unit);
	b.last = clock_now() + (double)AGO;		/* the last line was printed
							 * too recently */
	progress_bar_show(&b, 1, 1, unit);
	rewind(said);
	n = fread(text, 1, sizeof(text) - 1, said);
	text[n] = '\0';
	*left = -1;
	if ((at = strstr(text, " %, ")) != NULL)
		*left = strtod(at + 4, NULL);
	return text;
}

static void
is(uint64_t done, uint64_t all, const char *unit, const char *want, double least)
{
	double left;
	const char *got = line(done, all, unit, &left);

	/* the clock advances meanwhile: allow a tenth and 1 s more */
	ok(strncmp(got, want, strlen(want)) == 0 &&
	    (least < 0 ? left < 0 : left >= least && left < 1.1 * least + 1),
	    "%llu of %llu %s: %s", (unsigned long long)done,
	    (unsigned long long)all, unit, got + 1);
}

int
main(void)
{
	char name[] = "/tmp/ace-bar-XXXXXX";
	struct progress_bar b = { .on = 0 };
	double left;
	int fd = mkstemp(name);

	if (fd < 0 || freopen(name, "r+", stderr) == NULL ||
	    (said = fdopen(fd, "r")) == NULL || unlink(name) < 0)
		return 1;
	is(0, 0, "B", "\r0 B\033[K", -1);
	is(999, 0, "B", "\r999 B\033[K", -1);
	is(1000, 0, "B", "\r1 kB\033[K", -1);
	is(12400000, 0, "B", "\r12.4 MB\033[K", -1);
	is(3000000000000000, 0, "B", "\r3 PB\033[K", -1);
	is(31000, 0, "shards", "\r31000 shards\033[K", -1);
	is(25, 100, "shards", "\r25 shards, 25 %, ", 3 * AGO);
	is(80, 100, "shards", "\r80 shards, 80 %, ", AGO / 4);
	is(100, 100, "shards", "\r100 shards, 100 %, ", 0);
	is(0, 100, "shards", "\r0 shards, 0 %\033[K", -1);
	is(1, 1000, "shards", "\r1 shards, 0 %\033[K", -1);
	is(101, 100, "shards", "\r101 shards\033[K", -1);
	(void)line(1, 0, "B", &left);
	rewind(stderr);
	(void)!ftruncate(STDERR_FILENO, 0);
	progress_bar_show(&b, 1, 0, "B");
	progress_bar_end(&b);
	rewind(said);
	ok(getc(said) == EOF, "without a terminal there is no line to print or erase");
	return done_testing();
}
