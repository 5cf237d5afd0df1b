/* Archives in memory: bombs, names that are not text, and archives that cannot be written. */
#include <errno.h>
#include <fcntl.h>

#include "../tap.h"
#include "../../memory.h"
#include "base/arc.h"
#include "base/err.h"
#include "base/io.h"

static const char text[] = "these are the bytes of an entry\n";

/* Make an archive of n entries with these names, each holding the text; NULL if that fails. */
static struct io *
made(const char *format, const char *filter, const char *const *name, int n)
{
	const struct arc_opts o = { format, filter, NULL };
	struct arc *a = NULL;
	struct io *io;
	int i, r;

	if (memory_create(&io, NULL) < 0)
		return NULL;
	r = arc_create(&a, io, &o, NULL);
	for (i = 0; i < n && r == 0; i++)
		if ((r = arc_put(a, name[i], sizeof(text), NULL)) == 0 &&
		    (r = arc_write(a, text, sizeof(text), NULL)) == 0)
			r = arc_put_end(a, NULL);
	if (r == 0)
		r = arc_finish(a, NULL);
	arc_free(a);
	if (r == 0)
		return io;
	io_free(io);
	return NULL;
}

enum { PIECE = 1 << 20, PIECES = 512 };

/* Make an archive of 512 MiB of zeros, compressed to a few kilobytes; NULL if that fails. */
static struct io *
zeros(void)
{
	const struct arc_opts o = { "pax", "zstd", NULL };
	char *p = calloc(1, PIECE);
	struct io *out = NULL;
	struct arc *a = NULL;
	int i, r = p == NULL ? -1 : memory_create(&out, NULL);

	if (r == 0 && (r = arc_create(&a, out, &o, NULL)) == 0)
		r = arc_put(a, "zeros", (uint64_t)PIECE * PIECES, NULL);
	for (i = 0; i < PIECES && r == 0; i++)
		r = arc_write(a, p, PIECE, NULL);
	if (r == 0 && (r = arc_put_end(a, NULL)) == 0)
		r = arc_finish(a, NULL);
	arc_free(a);
	free(p);
	if (r == 0)
		return out;
	io_free(out);
	return NULL;
}

/* Check that the archive is refused before its end. pass 1: skip the entry instead of reading. */
static void
bomb(struct io *out, int pass)
{
	char *p = calloc(1, PIECE);
	struct arc_entry *en = calloc(1, sizeof(*en));
	struct io *in = NULL;
	struct err e = ERR_INIT;
	const unsigned char *mem;
	struct arc *a = NULL;
	size_t n, got = PIECE, pieces = 0;
	int r = -1;

	if (p != NULL && en != NULL && out != NULL) {
		mem = learned_of(out, &n);
		if ((r = memory_open(&in, mem, n, &e)) == 0 &&
		    (r = arc_open(&a, in, ARC_ANY, &e)) == 0)
			r = arc_next(a, en, &e) == 1 ? 0 : -1;
	}
	while (r == 0 && !pass && got == PIECE) {
		r = arc_read(a, p, PIECE, &got, &e);
		pieces++;
	}
	if (r == 0)
		r = arc_next(a, en, &e);
	ok(r == -ERR_DATA && pieces < PIECES &&
	    strstr(ERR_MSG(&e), "limit: ") != NULL, "a bomb that is %s is "
	    "refused: %s", pass ? "passed over" : "read", ERR_MSG(&e));
	arc_free(a);
	io_free(in);
	free(en);
	free(p);
}

/* The zip says that its names are UTF-8, but its only name is not. The error must not be
 * "out of memory", even if errno is ENOMEM from an earlier call. */
TEST(no_text)
{
	static const char *const name[] = { "r\xc3\xa9gion.aceg" };
	struct io *io = made("zip", NULL, name, 1), *in = NULL;
	struct arc_entry *en = calloc(1, sizeof(*en));
	struct err e = ERR_INIT;
	struct arc *a = NULL;
	const unsigned char *p = NULL;
	unsigned char *bad = NULL;
	size_t n = 0, i;
	int r = -1;

	if (io != NULL && en != NULL && (p = learned_of(io, &n)) != NULL)
		bad = malloc(n);
	for (i = 0; i < n && bad != NULL; i++)
		bad[i] = i > 0 && p[i - 1] == 0xc3 && p[i] == 0xa9 ? '(' : p[i];
	if (bad != NULL && (r = memory_open(&in, bad, n, &e)) == 0 &&
	    (r = arc_open(&a, in, ARC_ANY, &e)) == 0) {
		errno = ENOMEM;
		r = arc_next(a, en, &e);
	}
	ok(r == -ERR_DATA && strncmp(ERR_MSG(&e), "corrupt: '<memory>': ", 21) == 0,
	    "a name that is no text: %s", ERR_MSG(&e));
	arc_free(a);
	io_free(in);
	io_free(io);
	free(bad);
	free(en);
}

/* An error in making or writing an archive names the archive. */
TEST(unwritten)
{
	const struct arc_opts none = { "arj", NULL, NULL }, pax = { "pax", NULL,
	    NULL };
	char *p = calloc(1, 1 << 20);
	struct err e = ERR_INIT;
	struct arc *a = NULL;
	struct io *io = NULL;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), r;

	r = p == NULL || fd < 0 ? -1 : io_create_fd(&io, fd, "there", &e);
	ok(r == 0 && arc_create(&a, io, &none, &e) == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "'there': ") != NULL, "no such format: %s",
	    ERR_MSG(&e));
	e = (struct err)ERR_INIT;
	if (r == 0 && (r = arc_create(&a, io, &pax, &e)) == 0 &&
	    (r = arc_put(a, "zeros", 1 << 20, &e)) == 0)
		r = arc_write(a, p, 1 << 20, &e);
	ok(r == -ERR_SYS && strcmp(ERR_MSG(&e), "'there': Bad file descriptor")
	    == 0, "what cannot be written to: %s", ERR_MSG(&e));
	arc_free(a);
	io_free(io);
	free(p);
}

int
main(void)
{
	struct io *io;

	run_tests();
	io = zeros();
	bomb(io, 0);
	bomb(io, 1);
	io_free(io);
	ok(arc_leaves("a/../../b") && arc_leaves("..\\b") && arc_leaves("\\b") &&
	    !arc_leaves("a/...") && !arc_leaves("..."), "which names leave");
	return done_testing();
}
