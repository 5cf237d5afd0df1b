/* Helpers for tests of file formats; each test has a directory of its own. */
#ifndef FILES_H
#define FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "files/format.h"

#include "../inside.h"
#include "../tap.h"

static inline void
files_put(const char *name, const void *p, size_t n)
{
	FILE *f = fopen(name, "wb");

	if (f == NULL || fwrite(p, 1, n, f) != n || fclose(f) != 0)
		abort();
}

/* Read at most cap bytes of a file; return their number. */
static inline size_t
files_get(const char *name, void *p, size_t cap)
{
	FILE *f = fopen(name, "rb");
	size_t n;

	if (f == NULL)
		abort();
	n = fread(p, 1, cap, f);
	(void)fclose(f);
	return n;
}

/* Read a file of at most cap values to its end. Return 0 or the first error. *s, if not NULL,
 * stays open, so that callers can ask about it, also after an error. */
static inline int
files_read(struct format_source **s, enum format_id f, const char *name,
    const struct format_opts *o, float *x, size_t cap, struct err *e)
{
	static const struct format_opts none;
	int r = format_open(s, f, name, o != NULL ? o : &none, e);
	uint64_t n = r == 0 ? format_schema(*s)->total : 0;

	if (r == 0)
		r = format_read(*s, x, n < cap ? (size_t)n : cap, e);
	return r < 0 ? r : format_end(*s, e);
}

/* Check that the file is refused as bad data, with a message that begins with word. */
static inline void
files_refused(enum format_id f, const char *name, const char *word,
    const char *about)
{
	static float x[1 << 16];
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	int r = files_read(&s, f, name, NULL, x, 1 << 16, &e);
	size_t n = strlen(word);

	ok(r == -ERR_DATA && strncmp(ERR_MSG(&e), word, n) == 0 && ERR_MSG(&e)[n] == ':',
	    "%s: %s", about, r == 0 ? "was accepted" : ERR_MSG(&e));
	format_close(s);
}

/* Write a file of format f with this schema and these values; return 0 or the first error. */
static inline int
files_write(enum format_id f, const char *name, const struct schema *sc,
    const float *x, const struct format_sink_opts *o, struct err *e)
{
	struct format_sink *s = NULL;
	struct io *io = NULL;
	int r;

	if ((r = io_create(&io, name, 0, e)) == 0 &&
	    (r = format_create(&s, f, io, sc, o, e)) == 0 &&
	    (r = format_write(s, x, (size_t)sc->total, e)) == 0 &&
	    (r = format_finish(s, e)) == 0)
		r = io_commit(io, IO_SYNC_NONE, e);
	format_free(s);
	io_free(io);
	return r;
}

#endif
