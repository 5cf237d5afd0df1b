/*
 * Frames followed byte by byte: in pieces of any size the same ends.
 */
#include "base/err.h"
#include "base/io.h"
#include "pipe/track.h"
#include "format/writer.h"

#include "../tap.h"

enum { SHARDS = 3 };

static struct err e;

static void
put(struct writer *w, const struct schema *sc, uint64_t step)
{
	float x[1000];
	struct shard s;
	int i;

	for (i = 0; i < 1000; i++)
		x[i] = (float)i;
	shard_init(&s);
	s.step = step;
	(void)shard_set_device(&s, "edge", &e);
	(void)writer_shard(w, &s, sc, &e);
	(void)writer_values(w, 0, x, 1000, &e);
	(void)writer_send(w, NULL, &e);
	shard_release(&s);
}

/* Ends of shards in p[n], taken in pieces; the place of the last. */
static int
ends(const unsigned char *p, size_t n, size_t piece, size_t *last)
{
	struct track t = TRACK_INIT;
	size_t at = 0, k;
	uint32_t end;
	int sends = 0;

	while (at < n) {
		k = track_bytes(&t, p + at, n - at < piece ? n - at : piece,
		    &end);
		at += k;
		if (end == FRAME_SEND) {
			sends++;
			*last = at;
		}
	}
	return t.lost ? -1 : sends;
}

int
main(void)
{
	static const size_t pieces[] = { 1, 7, 64, 191, 4096, 1 << 20 };
	struct writer_opts wo = { "test", NULL, 0 };
	unsigned char bad[4096];
	struct schema sc = SCHEMA_INIT;
	struct schema_tensor t;
	struct writer *w;
	struct io *io;
	const unsigned char *p;
	size_t n, i, last = 0;

	memset(&t, 0, sizeof(t));
	t.name = (char []){ "w" };
	t.ndim = 1;
	t.dim[0] = 1000;
	(void)schema_add(&sc, &t, &e);
	(void)schema_finish(&sc, &e);
	(void)io_create_mem(&io, &e);
	(void)writer_open(&w, io, &wo, &e);
	for (i = 0; i < SHARDS; i++)
		put(w, &sc, i);
	(void)writer_finish(w, &e);
	p = io_mem(io, &n);
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		ok(ends(p, n, pieces[i], &last) == SHARDS && last == n - 112,
		    "pieces of %zu: before the tail", pieces[i]);
	memcpy(bad, p, sizeof(bad));
	bad[20] ^= 1;
	ok(ends(bad, sizeof(bad), 64, &last) == -1, "a header that was changed");
	memset(bad, 'x', sizeof(bad));
	ok(ends(bad, sizeof(bad), 100, &last) == -1, "no stream");
	writer_free(w);
	schema_release(&sc);
	return done_testing();
}
