/*
 * Files of a step in a spool: shards of earlier steps, and files that change while they
 * are read.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/io.h"
#include "mean/gather.h"
#include "format/writer.h"

#include "../inside.h"
#include "../test.h"
#include "../model.h"

static struct err e;
static char path[] = "shard";	/* what make() writes */
static char out[256];		/* what step() read */

struct spec {
	const char *device, *run;
	uint64_t step;
	float value;
};

/* Make a file with one shard of two groups, the second of which is not sent. */
static void
make(const struct spec *p)
{
	struct writer_opts o = { "test", NULL, 0, 0 };
	struct schema sc = model_of(8, 0, 4);
	float x[4] = { p->value, p->value, p->value, p->value };
	struct writer *w;
	struct shard s;
	struct io *io;

	shard_init(&s);
	s.step = p->step;
	(void)shard_set_run(&s, p->run, &e);
	(void)shard_set_device(&s, p->device, &e);
	(void)io_create(&io, path, 0, &e);
	(void)writer_open(&w, io, &o, &e);
	(void)writer_shard(w, &s, &sc, &e);
	(void)writer_values(w, 0, x, 4, &e);
	(void)writer_send(w, NULL, &e);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	shard_release(&s);
	schema_release(&sc);
}

/* Append "device=value " to out for each contribution to group 0.  Return -99 if one has no
 * values in group 0, which is sent, or has values in group 1, which is not. */
static int
look(void *arg, uint32_t group, const struct schema_span *span, struct err *err)
{
	struct gather_part p = { .x = NULL };
	struct gather *g = arg;
	size_t i, n;
	int r = 0;

	(void)span;
	for (i = 0; i < g->n && r == 0; i++) {
		n = strlen(out);
		if ((r = gather_group(g, i, group, 0, &p, err)) < 0)
			(void)gather_blame(g, i, r);
		else if ((p.x == NULL) != (group == 1))
			r = -99;
		else if (p.x != NULL)
			(void)snprintf(out + n, sizeof(out) - n, "%s=%g ",
			    shard_device(&g->in[i].s->head), (double)p.x[0]);
	}
	gather_part_release(&p);
	return r;
}

/* Read the next step; out becomes the devices and their values, "a=1 b=2 c=3 ". */
static int
step(struct gather *g)
{
	int r = gather_step(g, &e);

	out[0] = '\0';
	if (r > 0 && gather_read(g, look, g, &e) < 0)
		r = -1;
	return r;
}

/* few 1: allow this process 32 open files; 0: as many as before. */
static void
few_files(int few)
{
	static struct rlimit was;
	struct rlimit now;

	if (few)
		(void)getrlimit(RLIMIT_NOFILE, &was);
	now = was;
	now.rlim_cur = few ? 32 : was.rlim_cur;
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

/* Change each value 2 in the file to 1, without correcting its checksums. */
static void
overwrite(const char *name)
{
	int fd = open(name, O_RDWR);
	const off_t size = lseek(fd, 0, SEEK_END);
	char b[4];
	off_t at;

	for (at = 0; at + 4 <= size; at++)
		if (pread(fd, b, 4, at) == 4 && memcmp(b, "\0\0\0\x40", 4) == 0)
			ok(pwrite(fd, "\0\0\x80\x3f", 4, at) == 4, "overwrite %s", name);
	(void)close(fd);
}

TEST(test_changed)
{
	static const struct spec a = { "a", "run", 3, 2 }, b = { "b", "run", 3, 4 };
	char *list[] = { path };
	struct reader_opts o = { .max_elements = 0 };
	struct gather *g;

	make(&a);
	err_clear(&e);
	ok(gather_many(&g, 3, list, 1, &o, &e) == 0 && gather_step(g, &e) == 1,
	    "a file: %s", ERR_MSG(&e));
	make(&b);
	out[0] = '\0';
	ok(gather_read(g, look, g, &e) == 0 && strcmp(out, "a=2 ") == 0,
	    "its name becomes another file's: %s%s", out, ERR_MSG(&e));
	gather_free(g);
	make(&a);
	ok(gather_many(&g, 3, list, 1, &o, &e) == 0 && gather_step(g, &e) == 1,
	    "again: %s", ERR_MSG(&e));
	overwrite(path);
	ok(gather_read(g, look, g, &e) == -ERR_DATA && g->blame == 1 &&
	    strstr(ERR_MSG(&e), "'shard' changed while it was read") != NULL,
	    "it is overwritten: %s", ERR_MSG(&e));
	gather_free(g);
}

/* A device's newest shard and its shards of earlier steps, which may be more than can be
 * open, are one contribution. */
TEST(test_earlier)
{
	enum { N = 40 };
	struct spec s = { NULL, "run", 0, 0 };
	struct reader_opts o = { .max_elements = 0 };
	static char of[N + 3][80];
	char *list[N + 3];
	struct gather *g;
	size_t i;

	for (i = 0; i < N + 3; i++) {
		/* a: steps 60 to 99; b: 50 and 100; c: 99 */
		s.device = i < N ? "a" : i < N + 2 ? "b" : "c";
		s.step = i < N ? 60 + i * 7 % N : i == N ? 50 : i == N + 1 ? 100 : 99;
		s.value = i < N ? (float)(i + 1) : 1000.0f * (float)(i - N + 1);
		make(&s);
		list[i] = of[i];
		(void)snprintf(of[i], sizeof(of[i]), "of-%zu", i);
		(void)rename(path, list[i]);
	}
	few_files(1);
	err_clear(&e);
	ok(gather_many(&g, 100, list, N + 3, &o, &e) == 0 && step(g) == 1 &&
	    g->n == 3 && strstr(out, "a=820 ") != NULL &&
	    strstr(out, "b=3000 ") != NULL && strstr(out, "c=3000 ") != NULL &&
	    g->in[0].s->head.step == 100, "%s%s", out, ERR_MSG(&e));
	gather_free(g);
	/* a shard that is repeated or of another run is refused */
	list[3] = list[4];
	ok(gather_many(&g, 100, list, N + 3, &o, &e) == 0 &&
	    gather_step(g, &e) == -ERR_REFUSED && (g->blame == 4 ||
	    g->blame == 5), "%zu: %s", g->blame, ERR_MSG(&e));
	gather_free(g);
	list[3] = of[3];
	s = (struct spec){ "a", "other", 5, 1 };
	make(&s);
	(void)rename(path, list[3]);
	err_clear(&e);
	ok(gather_many(&g, 100, list, N + 3, &o, &e) == 0 &&
	    gather_step(g, &e) == -ERR_DATA && g->blame == 4, "%zu: %s",
	    g->blame, ERR_MSG(&e));
	gather_free(g);
	few_files(0);
}
