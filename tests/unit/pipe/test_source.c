/*
 * A folder as operand: a file removed after the listing is skipped; any other failure to
 * open a file is an error, since skipping its shard would lose gradient.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../inside.h"
#include "../tap.h"
#include "base/err.h"
#include "base/io.h"
#include "pipe/source.h"

static char path[64];

static const char *
name(int i)
{
	(void)snprintf(path, sizeof(path), "in/%d.aceg", i);
	return path;
}

/* Make four empty files, which are taken for streams because of their names. */
static int
make(void)
{
	int i, fd;

	if (mkdir("in", 0700) < 0)
		return 0;
	for (i = 1; i <= 4; i++) {
		if ((fd = open(name(i), O_CREAT | O_WRONLY, 0600)) < 0)
			return 0;
		(void)close(fd);
	}
	return 1;
}

/* Return 1 if the next file is file i; < 1: another file, the end or an error. */
static int
next(struct source *s, int i, struct err *e)
{
	struct io *io;
	int r = source_next(s, &io, e);

	if (r > 0)
		r = strcmp(source_name(s), name(i)) == 0;
	io_free(io);
	return r;
}

/* Make all opens fail while `on'. */
static void
refuse(int on)
{
	static struct rlimit was;
	struct rlimit none;

	if (was.rlim_max == 0)
		(void)getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	none.rlim_cur = on ? 3 : was.rlim_cur;
	(void)setrlimit(RLIMIT_NOFILE, &none);
}

int
main(void)
{
	struct source *s = NULL;
	struct err e = ERR_INIT;
	int fd, r;

	if (!make()) {
		(void)printf("Bail out! no folder\n");
		return 1;
	}
	ok(source_open(&s, "in", &e) == 0 && next(s, 1, &e) == 1,
	    "the first of its files");
	ok(unlink(name(2)) == 0 && next(s, 3, &e) == 1,
	    "a file that was removed meanwhile is skipped");
	/* make sure that descriptors 0 to 2 are open */
	while ((fd = open("/dev/null", O_RDONLY)) >= 0 && fd < 3)
		continue;
	(void)close(fd);
	refuse(1);
	r = next(s, 4, &e);
	refuse(0);
	ok(r == -ERR_SYS && strstr(ERR_MSG(&e), "4.aceg") != NULL,
	    "a file that cannot be opened is an error with its name: %s",
	    ERR_MSG(&e));
	source_free(s);
	err_clear(&e);
	return done_testing();
}
