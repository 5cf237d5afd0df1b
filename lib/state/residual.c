#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state/residual.h"
#include "stream/reader.h"

#define RESIDUAL_FILE "residual"

/* ---- looking ---- */

/* The tail's checksum covers every header, and each header its payload: the
 * last 128 bytes stand for the whole file. */
static int
residual_stamp(struct residual *q, int fd, const char *path, struct err *e)
{
	unsigned char tail[128];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", path);
	if (st.st_size < (off_t)sizeof(tail))
		return err_set(e, ERR_DATA, "truncated: '%s'", path);
	do
		n = pread(fd, tail, sizeof(tail), st.st_size -
		    (off_t)sizeof(tail));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, "'%s'", path);
	if (n != (ssize_t)sizeof(tail))
		return err_set(e, ERR_DATA, "truncated: '%s'", path);
	shard_hex(tail + FRAME_HEAD_SIZE + 16, q->stamp);
	return 0;
}

/* The file's name before the message: the stream on standard input has
 * offsets too. */
static int
residual_name(int k, const struct reader *r, struct err *e)
{
	char msg[512];

	if (k != -ERR_DATA || e == NULL)
		return k;
	memcpy(msg, e->msg, sizeof(msg));
	err_clear(e);
	return err_set(e, ERR_DATA, "%.300s, of '%.150s'", msg, reader_name(r));
}

static int
residual_first(struct residual *q, struct err *e)
{
	int k;

	while ((k = reader_next(q->r, e)) > 0 && k != READER_SHARD)
		continue;
	if (k == 0 || (k > 0 &&
	    reader_shard(q->r)->kind != SHARD_RESIDUAL))
		k = err_set(e, ERR_DATA, "corrupt: no residual");
	if (k < 0)
		return residual_name(k, q->r, e);
	q->step = reader_shard(q->r)->step;
	return values_begin(&q->v, q->r, e);
}

int
residual_open(struct residual *q, const struct state *s, struct err *e)
{
	char *path = state_path(s, RESIDUAL_FILE, e);
	struct reader_opts o = { SCHEMA_MAX_TOTAL, NULL };
	struct io *io;
	int fd, k;

	memset(q, 0, sizeof(*q));
	q->v = (struct values)VALUES_INIT;
	memcpy(q->stamp, "none", 5);
	if (path == NULL)
		return -ERR_SYS;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		alloc_free(path);
		return 0;
	}
	if (fd < 0)
		k = err_sys(e, "'%s'", path);
	else if ((k = residual_stamp(q, fd, path, e)) < 0 ||
	    (k = io_open_fd(&io, fd, path, e)) < 0)
		(void)close(fd);
	else {
		io_own(io);
		if ((k = reader_open(&q->r, io, &o, e)) == 0)
			k = residual_first(q, e);
	}
	alloc_free(path);
	return k;
}

int
residual_check(const struct residual *q, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	const struct shard *own;
	char why[256];

	if (q->r == NULL)
		return 0;
	own = reader_shard(q->r);
	if (memcmp(own->run, sh->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: shard of run '%s', the "
		    "state is of run '%s'", shard_run(sh), shard_run(own));
	if (memcmp(own->device, sh->device, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: shard of device '%s', "
		    "the state is of device '%s'", shard_device(sh),
		    shard_device(own));
	if (schema_diff(sc, reader_schema(q->r), why) != 0)
		return err_set(e, ERR_DATA,
		    "mismatch: the state is of another model: %s", why);
	return 0;
}

int
residual_group(struct residual *q, uint32_t g, const float **x, struct err *e)
{
	*x = NULL;
	if (q->r == NULL)
		return 0;
	do {
		q->k = values_next(&q->v, e);
		if (q->k < 0)
			return residual_name(q->k, q->r, e);
		if (q->k == 0)
			return err_set(e, ERR_DATA, "corrupt: group %lu not in "
			    "'%s'", (unsigned long)g, reader_name(q->r));
	} while (q->v.group < g);
	if (q->v.sent)
		*x = q->v.x;
	return 0;
}

int
residual_pending(struct residual *q, struct err *e)
{
	int k;

	if (q->r == NULL)
		return 0;
	while ((k = reader_next(q->r, e)) > 0)
		if (k == READER_SHARD)
			return 1;
	return k == 0 ? 0 : residual_name(k, q->r, e);
}

/* The shard r stands at, whole, payload for payload, to w. */
static int
residual_copy(struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_shard(w, reader_shard(r), reader_schema(r), e);

	if (k < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND)
			return writer_send(w, &reader_end_of_shard(r)->sums, e);
		if ((k = writer_pass(w, r, e)) < 0)
			return k;
	}
	return k < 0 ? k : err_set(e, ERR_DATA, "truncated: no pending shard");
}

int
residual_send(struct residual *q, struct writer *w, struct err *e)
{
	return residual_copy(q->r, w, e);
}

void
residual_close(struct residual *q)
{
	reader_free(q->r);
	values_release(&q->v);
	q->r = NULL;
}

/* ---- changing ---- */

struct residual_new {
	struct writer *w;	/* the file to be */
	struct writer *c;	/* the pending shard, in a scratch file */
	int scratch;
	struct shard shard;	/* of the pending shard */
};

static int
residual_start(struct residual_new *n, const struct state *s,
    const struct schema *sc, const char *tool, struct err *e)
{
	struct writer_opts o = { tool, NULL, 0 };
	struct shard sh;
	struct io *io;
	char *path;
	int k;

	if ((path = state_path(s, RESIDUAL_FILE, e)) == NULL)
		return -ERR_SYS;
	k = io_create(&io, path, 0, e);
	alloc_free(path);
	if (k < 0 || (k = writer_open(&n->w, io, &o, e)) < 0)
		return k;
	sh = n->shard;
	sh.kind = SHARD_RESIDUAL;
	sh.flags = 0;
	if ((k = writer_shard(n->w, &sh, sc, e)) < 0)
		return k;
	if ((k = state_scratch(s, &n->scratch, e)) < 0 ||
	    (k = io_create_fd(&io, n->scratch, "<scratch>", e)) < 0 ||
	    (k = writer_open(&n->c, io, &o, e)) < 0)
		return k;
	return writer_shard(n->c, &n->shard, sc, e);
}

int
residual_begin(struct residual_new **out, const struct state *s,
    const struct shard *sh, const struct schema *sc, const char *tool,
    struct err *e)
{
	struct residual_new *n = alloc_get(1, sizeof(*n), e);
	int k;

	*out = NULL;
	if (n == NULL)
		return -ERR_SYS;
	n->scratch = -1;
	shard_init(&n->shard);
	if ((k = shard_copy(&n->shard, sh, e)) < 0 ||
	    (k = residual_start(n, s, sc, tool, e)) < 0) {
		residual_free(n);
		return k;
	}
	*out = n;
	return 0;
}

int
residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    struct err *e)
{
	size_t i;

	for (i = 0; i < len && x[i] == 0; i++)
		continue;
	return i == len ? 0 : writer_values(n->w, g, x, len, e);
}

int
residual_record(struct residual_new *n, uint32_t g, uint8_t codec,
    uint8_t param, const struct buf *body, const float *x, size_t len,
    struct err *e)
{
	return writer_record(n->c, g, codec, param, body->p, body->n, x, len, e);
}

void
residual_dropped(struct residual_new *n, uint64_t count)
{
	writer_dropped(n->c, count);
}

int
residual_note(struct residual_new *n, const struct reader *r, struct err *e)
{
	return writer_pass(n->c, r, e);
}

int
residual_commit(struct residual_new *n, enum io_sync sync, struct err *e)
{
	struct reader_opts o = { SCHEMA_MAX_TOTAL, NULL };
	struct reader *r = NULL;
	struct io *io;
	int k;

	if ((k = writer_send(n->c, NULL, e)) < 0 ||
	    (k = writer_finish(n->c, e)) < 0 ||
	    (k = writer_send(n->w, NULL, e)) < 0)
		return k;
	if (lseek(n->scratch, 0, SEEK_SET) < 0)
		return err_sys(e, "scratch file");
	if ((k = io_open_fd(&io, n->scratch, "<scratch>", e)) < 0 ||
	    (k = reader_open(&r, io, &o, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0 && k != READER_SHARD)
		continue;
	if (k > 0)
		k = residual_copy(r, n->w, e);
	reader_free(r);
	return k < 0 ? k : writer_end(n->w, sync, e);
}

void
residual_free(struct residual_new *n)
{
	if (n == NULL)
		return;
	writer_free(n->w);
	writer_free(n->c);
	if (n->scratch >= 0)
		(void)close(n->scratch);
	shard_release(&n->shard);
	alloc_free(n);
}
