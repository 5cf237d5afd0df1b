
#include "../../rnd.h"
#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "base/io.h"
#include "pipe/size.h"
#include "format/writer.h"

/* keep: all groups with bodies of the largest size, except each third, which is empty */
enum { ALIKE = 101, THIRD = 102 };

/* Compare the bytes between the first SHRD and the end of SEND. */
static void
one(uint32_t ngroups, uint32_t keep, size_t most)
{
	static unsigned char body[1 << 18];
	struct schema sc = model_of((uint64_t)ngroups << 16, 0, 0);
	struct writer_opts o = { "test", NULL, 0 };
	struct writer *w = NULL;
	struct io *io = NULL;
	struct shard s;
	struct size z;
	struct err e = ERR_INIT;
	uint64_t before, want = 0, got = 1;
	uint32_t g;
	int r;

	shard_init(&s);
	if ((r = shard_set_device(&s, "edge1", &e)) < 0 ||
	    (r = io_create_mem(&io, &e)) < 0 ||
	    (r = writer_open(&w, io, &o, &e)) < 0 ||
	    (r = size_shard(&z, &s, &e)) < 0)
		goto out;
	/* HEAD and SCHM are written with the first shard: measure the second */
	if ((r = writer_shard(w, &s, &sc, &e)) < 0 ||
	    (r = writer_send(w, NULL, &e)) < 0)
		goto out;
	before = io_bytes(io);
	r = writer_shard(w, &s, &sc, &e);
	for (g = 0; g < ngroups && r >= 0; g++) {
		size_t len = keep == THIRD && g % 3 == 2 ? 0 : keep >= ALIKE ?
		    most : rnd_bits() % (uint32_t)most;
		uint8_t param = rnd_bits() % 4 == 0;

		if (rnd_bits() % 100 >= keep)
			continue;
		/* from 15 on the codec number takes one byte more */
		r = writer_record(w, g, 13 + g % 5, param, body, len, NULL, 0,
		    &e);
		size_record(&z, g, 13 + g % 5, param, len);
	}
	if (r >= 0)
		r = writer_send(w, NULL, &e);
	got = io_bytes(io) - before;
	want = size_send(&z);
out:
	ok(r >= 0 && got == want, "%u groups, %u %%, up to %zu bytes: %llu %s",
	    ngroups, keep, most, (unsigned long long)want, ERR_MSG(&e));
	writer_free(w);
	shard_release(&s);
	schema_release(&sc);
}

int
main(void)
{
	rnd_seed = 5;
	ok(size_cost(7, 0, 1) == 0 && size_cost(7, 127, 0) == 129 &&
	    size_cost(7, 127, 1) == 130 && size_cost(14, 128, 1) == 132 &&
	    size_cost(15, 128, 1) == 133,
	    "a record is a codec, a parameter, a length and a body");
	one(1, 100, 10);
	one(1, 0, 10);
	one(300, 100, 300);
	one(3000, 3, 300);
	one(60, 80, 1 << 18);
	one(800, 90, 20000);
	/* a frame full to the byte, one byte less, one more */
	one(7, ALIKE, WRITER_BATCH / 2);
	one(7, ALIKE, WRITER_BATCH / 2 - 1);
	one(7, ALIKE, WRITER_BATCH / 2 + 1);
	one(3, ALIKE, WRITER_BATCH);
	one(7, THIRD, WRITER_BATCH / 2);
	return done_testing();
}
