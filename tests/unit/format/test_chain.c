/* After damage the next whole frame is found wherever it begins. */
#include "base/err.h"
#include "base/io.h"
#include "format/chain.h"
#include "format/schema.h"
#include "format/writer.h"

#include "../tap.h"

enum { MOST = 3 * 4096 };

/* Write a stream without shards to p; return its length. */
static size_t
stream(unsigned char *p)
{
	const struct writer_opts o = { .tool = "test" };
	const unsigned char *at;
	struct writer *w;
	struct io *io;
	size_t n;

	if (io_create_mem(&io, NULL) < 0 || writer_open(&w, io, &o, NULL) < 0 ||
	    writer_finish(w, NULL) < 0)
		abort();
	at = io_mem(io, &n);
	memcpy(p, at, n);
	writer_free(w);
	return n;
}

/* Return where chain_find sees the first frame in n bytes. */
static uint64_t
found(const unsigned char *p, size_t n)
{
	struct err e = ERR_INIT;
	struct chain c;
	struct io *io;
	uint64_t at = UINT64_MAX;

	if (io_open_mem(&io, p, n, &e) < 0)
		abort();
	if (chain_init(&c, io, &e) == 0 && chain_find(&c, 0, &e) == 1)
		at = c.pos.offset;
	chain_release(&c);
	return at;
}

int
main(void)
{
	static unsigned char b[MOST + 4096], whole[4096];
	size_t n = stream(whole), i, wrong = 0;

	for (i = 0; i < MOST; i++) {
		/* bytes that look like the beginning of a frame */
		memset(b, i % 2 != 0 ? 0 : 0xac, i);
		memcpy(b + i, whole, n);
		wrong += found(b, i + n) != i;
	}
	ok(n < sizeof(whole) && wrong == 0, "behind any number of bytes, but "
	    "for %zu", wrong);
	memset(b + i, 0, n);
	ok(found(b, i + n) == UINT64_MAX, "where there is none, none");
	return done_testing();
}
