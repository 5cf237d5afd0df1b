/* The installed library: keys of shards, writing and reading, shards in parts. */
#include <fcntl.h>

#include "aceg.h"
#include "base/err.h"
#include "base/io.h"
#include "format/frame.h"
#include "format/schema.h"
#include "format/writer.h"

#include "../starve.h"
#include "../tap.h"

static const struct ace_tensor one = { "w", ACE_F32, 1, { 3 }, 0 };
static const float values[3] = { 1, 2, 3 };
static int file;		/* the file written and read back */

static int
again(int fd)
{
	return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0;
}

static int
put(struct ace_writer *w, uint64_t step, struct ace_error *e)
{
	struct ace_shard s = ACE_SHARD_INIT;

	s.step = step;
	return ace_write_shard(w, &s, e) < 0 ||
	    ace_write_values(w, values, 3, e) < 0 || ace_write_end(w, e) < 0;
}

/* Write three shards, and the head of another stream that is cut. */
static void
write_two(int fd)
{
	struct ace_error e = { 0, "" };
	char head[120];
	struct ace_writer *w = ace_writer_new(fd, "test", &e);
	struct ace_shard s = ACE_SHARD_INIT;
	double took[2] = { 0.5, 1 };

	s.step = 2;
	ok(w != NULL && ace_write_shard(w, &s, &e) == -2 && strstr(e.message,
	    "before the tensors are given") != NULL, "no tensors yet: %s", e.message);
	ok(ace_write_tensors(w, &one, 1, 0, &e) == 0, "a writer");
	ok(ace_write_key(w, "model.norm", "12.5", &e) == 0 &&
	    ace_write_key(w, "x", "1", &e) == 0 &&
	    ace_write_key(w, "x", NULL, &e) == 0, "a key, and one taken back");
	ok(ace_write_key(w, "Not a key", "1", &e) == -2 && e.code == 2 &&
	    ace_write_key(w, "run", "r", &e) == -2, "a wrong key is wrong use: %s", e.message);
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
	ok(pread(fd, head, 120, 0) == 120 && write(fd, head, 120) == 120, "a head");
}

static void
read_two(int fd)
{
	struct ace_error e = { 0, "" };
	struct ace_reader *r = ace_reader_new(fd, &e);
	struct ace_shard s;
	struct ace_group g;
	const char *v;
	size_t n;
	int k;

	ok(ace_read_group(r, &g, &e) == -2 && ace_write_tensors_of(NULL, r, &e) == -2,
	    "no shard was read: %s", e.message);
	ok(ace_read_shard(r, &s, &e) == 1 &&
	    (v = ace_key(r, "model.norm")) != NULL && strcmp(v, "12.5") == 0,
	    "the first shard has the key");
	ok(ace_key(r, "x") == NULL, "and not the one taken back");
	while (ace_read_group(r, &g, &e) > 0)
		continue;
	ok(ace_read_shard(r, &s, &e) == 1 && s.step == 1 &&
	    ace_key(r, "model.norm") == NULL, "the second has not");
	while ((k = ace_read_shard(r, &s, &e)) > 0)
		continue;
	ok(k == -3 && ace_tensors(r, &n) == NULL && n == 0, "no tensors: %s", e.message);
	ace_reader_free(r);
}

/* A flush writes the values of a whole tensor before the next tensor is given. */
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
	    lseek(fd, 0, SEEK_CUR) == before, "values are buffered");
	ok(ace_write_flush(w, &e) == 0 &&
	    (after = lseek(fd, 0, SEEK_CUR)) > before, "a flush writes them");
	ok(ace_write_flush(w, &e) == 0 && lseek(fd, 0, SEEK_CUR) == after,
	    "a flush without new values writes nothing");
	ok(ace_write_end(w, &e) == -2 && strstr(e.message, "has 3 values") !=
	    NULL, "no end with a tensor missing: %s", e.message);
	ok(ace_write_values(w, values, 4, &e) == -2 && strstr(e.message, "has 7 values, "
	    "but its tensors have 6") != NULL, "one value too many: %s", e.message);
	ok(ace_write_end(w, &e) == 0 && ace_writer_close(w, &e) == 0, "the missing values");
	ok(ace_write_values(w, values, 1, &e) == -2 && strstr(e.message,
	    "no shard was begun") != NULL, "no shard: %s", e.message);
	ace_writer_free(w);
	(void)lseek(fd, 0, SEEK_SET);
	r = ace_reader_new(fd, &e);
	ok(ace_read_shard(r, &s, &e) == 1 && ace_read_group(r, &g, &e) == 1 &&
	    g.value[2] == 3 && ace_read_group(r, &g, &e) == 1 &&
	    g.value[0] == 1 && ace_read_group(r, &g, &e) == 0, "all values are read");
	ace_reader_free(r);
}

static enum starved
short_of(const struct ace_error *e)
{
	return e->code == 4 && strstr(e->message, "out of memory") != NULL ?
	    STARVED_SAID : STARVED_WRONG;
}

/* Write a model with two shards, and another model with one. */
static enum starved
without_writing(void)
{
	const struct ace_tensor other = { "v", ACE_F32, 1, { 3 }, 0 };
	struct ace_error e = { 0, "" };
	struct ace_writer *w;
	int r;

	if (!again(file))
		return STARVED_WRONG;
	w = ace_writer_new(file, "test", &e);
	r = w == NULL || ace_write_tensors(w, &one, 1, 0, &e) < 0 ||
	    put(w, 0, &e) || put(w, 1, &e) ||
	    ace_write_tensors(w, &other, 1, 0, &e) < 0 || put(w, 2, &e) ||
	    ace_writer_close(w, &e) < 0;

	ace_writer_free(w);
	return r ? short_of(&e) : STARVED_NOT;
}

/* Read the shards and groups that without_writing wrote. */
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

/* Each field of a shard, its tensors and its groups is read back as written. */
static void
fields(int fd)
{
	const struct ace_tensor two[2] = {
		{ "w", ACE_F16, 2, { 2, 3 }, 0 }, { "v", ACE_I8, 1, { 4 }, 0 } };
	static const float x[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct ace_shard s = { "a run", "a device", 77, 66, 2.5, 55, ACE_DELTA,
	    3 }, got;
	struct ace_error e = { 0, "" };
	struct ace_writer *w = ace_writer_new(fd, NULL, &e);
	const struct ace_tensor *t;
	struct ace_reader *r;
	struct ace_group g;
	size_t n = 0;

	ok(w != NULL && ace_write_tensors(w, two, 2, 4, &e) == 0 &&
	    ace_write_shard(w, &s, &e) == 0 &&
	    ace_write_tensors(w, two, 2, 4, &e) == -2,
	    "no other tensors inside a shard: %s", e.message);
	ok(ace_write_values(w, x, 7, &e) == 0 && ace_writer_close(w, &e) == -2,
	    "nor the end of the stream: %s", e.message);
	ok(ace_write_values(w, x + 7, 3, &e) == 0 &&
	    ace_write_values(w, x, 1, &e) == -2 && ace_write_end(w, &e) == 0 &&
	    ace_write_end(w, &e) == -2 && ace_write_values(w, x, 1, &e) == -2 &&
	    ace_writer_close(w, &e) == 0, "ten values and no more");
	ace_writer_free(w);
	(void)lseek(fd, 0, SEEK_SET);
	r = ace_reader_new(fd, &e);
	ok(ace_key(r, "run") == NULL, "before the first shard there is no key");
	ok(ace_read_shard(r, &got, &e) == 1 && strcmp(got.run, "a run") == 0 &&
	    strcmp(got.device, "a device") == 0 && got.step == 77 &&
	    got.base_version == 66 && got.weight >= 2.5 && got.weight <= 2.5 &&
	    got.samples == 55 && got.kind == ACE_DELTA && got.contributors == 3,
	    "a shard");
	t = ace_tensors(r, &n);
	ok(n == 2 && strcmp(t[0].name, "w") == 0 && t[0].dtype == ACE_F16 &&
	    t[0].ndim == 2 && t[0].dim[0] == 2 && t[0].dim[1] == 3 &&
	    t[0].numel == 6 && strcmp(t[1].name, "v") == 0 &&
	    t[1].dtype == ACE_I8 && t[1].ndim == 1 && t[1].numel == 4,
	    "its tensors");
	ok(ace_read_group(r, &g, &e) == 1 && g.index == 0 && g.tensor == 0 &&
	    g.offset == 0 && g.n == 4 && g.sent && g.value[3] >= 4 &&
	    g.value[3] <= 4, "the first group");
	ok(ace_read_group(r, &g, &e) == 1 && g.index == 1 && g.tensor == 0 &&
	    g.offset == 4 && g.n == 2, "the rest of the tensor");
	ok(ace_read_group(r, &g, &e) == 1 && g.index == 2 && g.tensor == 1 &&
	    g.offset == 0 && g.n == 4 && ace_read_group(r, &g, &e) == 0 &&
	    ace_read_shard(r, &got, &e) == 0, "the next one, and the end");
	ok(ace_read_group(r, &g, &e) == -2 && ace_write_tensors_of(NULL, r, &e) == -2,
	    "no shard any more: %s", e.message);
	ace_reader_free(r);
}

/* Wrong calls are refused; calls at the limits are not. */
static void
bounds(int fd)
{
	static char line[1026];
	const double most[1] = { 1e7 }, more[1] = { 1.0000001e7 };
	struct ace_shard s = ACE_SHARD_INIT;
	struct ace_error e = { 0, "" };
	struct ace_writer *w;

	memset(line, 'p', 1025);
	ok(again(fd) && ace_writer_new(fd, line, &e) == NULL && e.code == 2 &&
	    strstr(e.message, "1024") != NULL, "a line of 1025: %s", e.message);
	ok(ace_writer_new(fd, "a\nb", &e) == NULL && e.code == 2,
	    "a line of two lines");
	ok(ace_writer_new(fd, "a\nb", NULL) == NULL, "an error may go without a message");
	line[1024] = '\0';
	w = ace_writer_new(fd, line, &e);
	ok(w != NULL && ace_write_tensors(w, &one, 1, 1048577, &e) == -2,
	    "a group too large: %s", e.message);
	ok(ace_write_tensors(w, &one, 1, 1048576, &e) == 0, "the largest group");
	s.weight = HUGE_VAL;
	ok(ace_write_shard(w, &s, &e) == -2, "a weight without bound");
	s.weight = -1;
	ok(ace_write_shard(w, &s, &e) == -2, "a weight below 0");
	s.weight = 1;
	s.kind = (enum ace_kind)(ACE_HISTORY + 1);
	ok(ace_write_shard(w, &s, &e) == -2, "an unknown kind");
	s.kind = ACE_HISTORY;
	ok(ace_write_shard(w, &s, &e) == 0, "the last known kind");
	ok(ace_write_times(w, more, 1, &e) == -2 &&
	    ace_write_times(w, most, 1, &e) == 0, "times to 1e7 s: %s",
	    e.message);
	ok(ace_write_values(w, values, 1, &e) == 0 &&
	    ace_write_times(w, most, 1, &e) == -2,
	    "no times after the first value: %s", e.message);
	ace_writer_free(w);
	ace_writer_free(NULL);
	ace_reader_free(NULL);
}

/* Write two shards with fields unknown to the interface: a device name of 200 bytes and
 * policies; the second shard has no values. */
static void
more_than_known(int fd, const char *name)
{
	const struct writer_opts o = { .tool = "test" };
	struct schema_tensor t = { .name = "w", .ndim = 1, .dim = { 3 } };
	struct schema sc = SCHEMA_INIT;
	struct err err = ERR_INIT;
	struct shard s;
	struct writer *w = NULL;
	struct io *io;
	int i, r;

	shard_init(&s);
	r = !again(fd) || shard_set_device(&s, name, &err) < 0 ||
	    text_set(&s.kv, "model.norm", "8", &err) < 0 ||
	    schema_add(&sc, &t, &err) < 0 || schema_finish(&sc, &err) < 0 ||
	    io_create_fd(&io, dup(fd), "test", &err) < 0 ||
	    writer_open(&w, io, &o, &err) < 0;
	for (i = 0; i < 2 && r == 0; i++)
		r = writer_shard(w, &s, &sc, &err) < 0 ||
		    writer_note(w, FRAME_POLI, i == 0 ? "delay=4\n" : "delay=5\n", 8,
		    &err) < 0 ||
		    (i == 0 && writer_values(w, 0, values, 3, &err) < 0) ||
		    writer_send(w, NULL, &err) < 0;
	r = r || writer_end(w, IO_SYNC_NONE, &err) < 0;
	writer_free(w);
	schema_release(&sc);
	shard_release(&s);
	ok(r == 0, "a stream with more than the interface knows: %s", err.text);
	(void)lseek(fd, 0, SEEK_SET);
}

/* A filter keeps fields that struct ace_shard lacks, even long names, after its reader is
 * freed, too. */
static void
filtered(int fd, int out)
{
	char name[201] = "";
	struct ace_error e = { 0, "" };
	struct ace_shard as;
	struct ace_group g;
	struct ace_reader *a;
	struct ace_writer *to;
	const char *v;

	memset(name, 'n', sizeof(name) - 1);
	memcpy(name + 62, "\303\274", 2);	/* is not cut between these bytes */
	more_than_known(fd, name);
	ok(again(out), "an empty file");
	a = ace_reader_new(fd, &e);
	to = ace_writer_new(out, NULL, &e);
	ok(ace_read_shard(a, &as, &e) == 1 && strlen(as.device) == 62 &&
	    ace_write_shard_of(to, a, &as, &e) == 0, "the first: %s", e.message);
	ok(ace_policy(a, "delay") == NULL || ace_read_group(a, &g, &e) == 1,
	    "a policy is complete at the end");
	while (ace_read_group(a, &g, &e) > 0)
		continue;
	ok(ace_policy(a, "delay") != NULL &&
	    strcmp(ace_policy(a, "delay"), "4") == 0 &&
	    ace_policy(a, "interval") == NULL, "and has its keys");
	ok(ace_write_values(to, values, 3, &e) == 0 && ace_read_shard(a, &as, &e) == 1 &&
	    ace_policy(a, "delay") == NULL,
	    "the second shard does not have the first one's policy");
	ok(ace_read_group(a, &g, &e) == 1 && !g.sent && g.n == 3 && g.value[2] == 0 &&
	    ace_write_end(to, &e) == 0, "its group was not sent: zeros");
	(void)strcpy(as.run, "mine");
	as.step = 5;
	ok(ace_write_key(to, "x", "1", &e) == 0 &&
	    ace_write_shard_of(to, a, &as, &e) == 0, "the second: %s", e.message);
	ace_reader_free(a);
	ok(ace_write_values(to, values, 3, &e) == 0 &&
	    ace_write_end(to, &e) == 0 && ace_writer_close(to, &e) == 0,
	    "the reader is gone, and it is written to its end");
	ace_writer_free(to);
	(void)lseek(out, 0, SEEK_SET);
	a = ace_reader_new(out, &e);
	ok(ace_read_shard(a, &as, &e) == 1 && as.run[0] == '\0' &&
	    strcmp(ace_key(a, "device"), name) == 0 &&
	    strcmp(ace_key(a, "model.norm"), "8") == 0 &&
	    ace_key(a, "x") == NULL, "its name is whole, its keys are there");
	while (ace_read_group(a, &g, &e) > 0)
		continue;
	v = ace_policy(a, "delay");
	ok(v != NULL && strcmp(v, "4") == 0, "so is its policy");
	ok(ace_read_shard(a, &as, &e) == 1 && strcmp(as.run, "mine") == 0 &&
	    as.step == 5 && strcmp(ace_key(a, "device"), name) == 0 &&
	    strcmp(ace_key(a, "x"), "1") == 0, "and so are the changes to the second shard");
	ace_reader_free(a);
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
	ok(n >= 5, "writing reports a failure of any of %d allocations", n);
	n = starve(without_reading);
	ok(n >= 5, "reading reports a failure of any of %d allocations", n);
	if (!again(fd))
		return 1;
	write_two(fd);
	(void)lseek(fd, 0, SEEK_SET);
	read_two(fd);
	if (!again(fd))
		return 1;
	flush(fd);
	if (!again(fd))
		return 1;
	fields(fd);
	bounds(fd);
	if ((n = open("/tmp", O_TMPFILE | O_RDWR, 0600)) < 0)
		return 1;
	filtered(fd, n);
	(void)close(n);
	(void)close(fd);
	return done_testing();
}
