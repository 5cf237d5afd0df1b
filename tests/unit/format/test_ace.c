/* The installed interface: keys of shards, there and back; a shard in parts. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ace.h"
#include "base/err.h"
#include "base/io.h"
#include "format/frame.h"
#include "format/schema.h"
#include "format/writer.h"

#include "../starve.h"
#include "../tap.h"

static const struct ace_tensor one = { "w", ACE_F32, 1, { 3 }, 0 };
static const float values[3] = { 1, 2, 3 };
static int file;		/* what is written, and read again */

static int
put(struct ace_writer *w, uint64_t step, struct ace_error *e)
{
	struct ace_shard s = ACE_SHARD_INIT;

	s.step = step;
	return ace_write_shard(w, &s, e) < 0 ||
	    ace_write_values(w, values, 3, e) < 0 || ace_write_end(w, e) < 0;
}

static void
write_two(int fd)
{
	struct ace_error e = { 0, "" };
	struct ace_writer *w = ace_writer_new(fd, "test", &e);
	struct ace_shard s = ACE_SHARD_INIT;
	double took[2] = { 0.5, 1 };

	s.step = 2;
	ok(w != NULL && ace_write_shard(w, &s, &e) == -2 && strstr(e.message,
	    "before its tensors") != NULL, "no tensors yet: %s", e.message);
	ok(ace_write_tensors(w, &one, 1, 0, &e) == 0, "a writer");
	ok(ace_write_key(w, "model.norm", "12.5", &e) == 0 &&
	    ace_write_key(w, "x", "1", &e) == 0 &&
	    ace_write_key(w, "x", NULL, &e) == 0, "a key, and one taken back");
	ok(ace_write_key(w, "Not a key", "1", &e) == -2 && e.code == 2,
	    "a wrong key is wrong use: %s", e.message);
	s.weight = 0;
	ok(ace_write_shard(w, &s, &e) == -2 && strstr(e.message, "weight") !=
	    NULL, "a weight of 0: %s", e.message);
	s.weight = 1;
	ok(put(w, 0, &e) == 0 && put(w, 1, &e) == 0, "two shards");
	ok(ace_write_times(w, took, 1, &e) == -2, "times of no shard: %s",
	    e.message);
	ok(ace_write_shard(w, &s, &e) == 0 && ace_write_shard(w, &s, &e) == -2,
	    "one inside another: %s", e.message);
	ok(ace_write_times(w, took, 2, &e) == -2, "%s", e.message);
	took[0] = -1;
	ok(ace_write_times(w, took, 1, &e) == -2, "%s", e.message);
	took[0] = 0.5;
	ok(ace_write_times(w, took, 1, &e) == 0 &&
	    ace_write_values(w, values, 3, &e) == 0 &&
	    ace_write_times(w, took, 1, &e) == -2 &&
	    ace_write_end(w, &e) == 0 && ace_writer_close(w, &e) == 0,
	    "times before the values: %s", e.message);
	ace_writer_free(w);
}

static void
read_two(int fd)
{
	struct ace_error e = { 0, "" };
	struct ace_reader *r = ace_reader_new(fd, &e);
	struct ace_shard s;
	struct ace_group g;
	const char *v;

	ok(ace_read_shard(r, &s, &e) == 1 &&
	    (v = ace_key(r, "model.norm")) != NULL && strcmp(v, "12.5") == 0,
	    "the first shard has the key");
	ok(ace_key(r, "x") == NULL, "and not the one taken back");
	while (ace_read_group(r, &g, &e) > 0)
		continue;
	ok(ace_read_shard(r, &s, &e) == 1 && s.step == 1 &&
	    ace_key(r, "model.norm") == NULL, "the second has not");
	ace_reader_free(r);
}

/* A tensor is there before the next one is written. */
static void
flush(int fd)
{
	const struct ace_tensor two[2] = { one, { "v", ACE_F32, 1, { 3 }, 0 } };
	struct ace_shard s = ACE_SHARD_INIT;
	struct ace_error e = { 0, "" };
	struct ace_writer *w = ace_writer_new(fd, NULL, &e);
	struct ace_group g;
	struct ace_reader *r;
	off_t before, after = 0;

	ok(w != NULL && ace_write_tensors(w, two, 2, 0, &e) == 0 &&
	    ace_write_shard(w, &s, &e) == 0 &&
	    ace_write_flush(w, &e) == 0, "a shard begins");
	before = lseek(fd, 0, SEEK_CUR);
	ok(ace_write_values(w, values, 3, &e) == 0 &&
	    lseek(fd, 0, SEEK_CUR) == before, "values wait");
	ok(ace_write_flush(w, &e) == 0 &&
	    (after = lseek(fd, 0, SEEK_CUR)) > before, "and go");
	ok(ace_write_flush(w, &e) == 0 && lseek(fd, 0, SEEK_CUR) == after,
	    "nothing new, nothing goes");
	ok(ace_write_end(w, &e) == -2 && strstr(e.message, "fewer values") !=
	    NULL, "no end with a tensor missing: %s", e.message);
	ok(ace_write_values(w, values, 3, &e) == 0 &&
	    ace_write_end(w, &e) == 0 && ace_writer_close(w, &e) == 0,
	    "the rest");
	ace_writer_free(w);
	(void)lseek(fd, 0, SEEK_SET);
	r = ace_reader_new(fd, &e);
	ok(ace_read_shard(r, &s, &e) == 1 && ace_read_group(r, &g, &e) == 1 &&
	    g.value[2] == 3 && ace_read_group(r, &g, &e) == 1 &&
	    g.value[0] == 1 && ace_read_group(r, &g, &e) == 0, "all of it");
	ace_reader_free(r);
}

/* Between shards n annotations of 300 kB that are safe to copy, then a shard. */
static void
annotated(int fd, int n)
{
	static const unsigned char note[300 * 1000];
	const struct writer_opts o = { .tool = "test" };
	struct schema_tensor t = { .name = "w", .ndim = 1, .dim = { 3 } };
	struct schema sc = SCHEMA_INIT;
	struct shard s;
	struct writer *w;
	struct io *io;
	struct err e = ERR_INIT;
	int r;

	shard_init(&s);
	r = schema_add(&sc, &t, &e);
	if (r == 0 && (r = schema_finish(&sc, &e)) == 0 &&
	    (r = io_create_fd(&io, dup(fd), "test", &e)) == 0 &&
	    (r = writer_open(&w, io, &o, &e)) == 0) {
		r = writer_begin(w, &sc, &e);
		for (; n > 0 && r == 0; n--)
			r = writer_note(w, FRAME_TYPE('n', 'o', 't', 'e'), note,
			    sizeof(note), &e);
		if (r == 0 && (r = writer_shard(w, &s, &sc, &e)) == 0 &&
		    (r = writer_values(w, 0, values, 3, &e)) == 0 &&
		    (r = writer_send(w, NULL, &e)) == 0)
			r = writer_end(w, IO_SYNC_NONE, &e);
		writer_free(w);
	}
	schema_release(&sc);
	ok(r == 0, "a stream with annotations: %s", e.text);
}

/* A reader keeps what stands before the first shard for a writer that may
 * come; there is an end to that. */
static void
held(int fd)
{
	struct ace_error e = { 0, "" };
	struct ace_reader *r;
	struct ace_shard s;
	int n;

	for (n = 3; n <= 4; n++) {
		ok(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0, "again");
		annotated(fd, n);
		(void)lseek(fd, 0, SEEK_SET);
		r = ace_reader_new(fd, &e);
		if (n == 3)
			ok(ace_read_shard(r, &s, &e) == 1, "900 kB are kept");
		else
			ok(ace_read_shard(r, &s, &e) == -3 && strstr(e.message,
			    "before the first shard") != NULL,
			    "1.2 MB are not: %s", e.message);
		ace_reader_free(r);
	}
}

static enum starved
short_of(const struct ace_error *e)
{
	return e->code == 4 && strstr(e->message, "out of memory") != NULL ?
	    STARVED_SAID : STARVED_WRONG;
}

/* A model, two shards of it, and another model. */
static enum starved
without_writing(void)
{
	const struct ace_tensor other = { "v", ACE_F32, 1, { 3 }, 0 };
	struct ace_error e = { 0, "" };
	struct ace_writer *w;
	int r;

	if (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0)
		return STARVED_WRONG;
	w = ace_writer_new(file, "test", &e);
	r = w == NULL || ace_write_tensors(w, &one, 1, 0, &e) < 0 ||
	    put(w, 0, &e) || put(w, 1, &e) ||
	    ace_write_tensors(w, &other, 1, 0, &e) < 0 || put(w, 2, &e) ||
	    ace_writer_close(w, &e) < 0;

	ace_writer_free(w);
	return r ? short_of(&e) : STARVED_NOT;
}

/* The same is read. */
static enum starved
without_reading(void)
{
	struct ace_error e = { 0, "" };
	struct ace_reader *a;
	struct ace_shard s;
	struct ace_group g;
	int k = 1, n = 0;

	(void)lseek(file, 0, SEEK_SET);
	if ((a = ace_reader_new(file, &e)) == NULL)
		return short_of(&e);
	for (; k >= 0 && (k = ace_read_shard(a, &s, &e)) > 0; n++)
		while ((k = ace_read_group(a, &g, &e)) > 0)
			continue;
	ace_reader_free(a);
	return k < 0 ? short_of(&e) : n == 3 ? STARVED_NOT : STARVED_WRONG;
}

int
main(void)
{
	char name[] = "/tmp/ace-test-XXXXXX";
	int fd = mkstemp(name), n;

	if (fd < 0 || unlink(name) < 0)
		return 1;
	file = fd;
	n = starve(without_writing);
	ok(n >= 5, "writing, whichever of %d allocations fails: said", n);
	n = starve(without_reading);
	ok(n >= 5, "reading, whichever of %d allocations fails: said", n);
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 1;
	write_two(fd);
	(void)lseek(fd, 0, SEEK_SET);
	read_two(fd);
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 1;
	flush(fd);
	held(fd);
	(void)close(fd);
	return done_testing();
}
