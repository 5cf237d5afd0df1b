#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"
#include "device/residual.h"
#include "kern/kern.h"
#include "pipe/filter.h"

#define RESIDUAL_SPARE "spare"

/* ---- looking ---- */

int
residual_open(struct residual *q, const struct statedir *s, struct err *e)
{
	int k = dense_open(&q->d, s, RESIDUAL_FILE, SHARD_RESIDUAL, RESIDUAL_ANEW, e);

	q->step = k == 0 && q->d.r != NULL ? reader_shard(q->d.r)->step : 0;
	return k;
}

int
residual_owner(struct residual_owner *o, const struct statedir *s, struct err *e)
{
	const struct shard *sh;
	struct residual q;
	int k = residual_open(&q, s, e);

	if (k == 0 && q.d.r != NULL) {
		sh = reader_shard(q.d.r);
		memcpy(o->run, sh->run, SHARD_ID);
		memcpy(o->device, sh->device, SHARD_ID);
		o->step = sh->step;
		o->incarnation = sh->incarnation;
		k = 1;
	}
	residual_close(&q);
	return k;
}

int
residual_owns(const struct residual_owner *o, const unsigned char *run,
    const unsigned char *device)
{
	return memcmp(o->run, run, SHARD_ID) == 0 &&
	    memcmp(o->device, device, SHARD_ID) == 0;
}

int
residual_pending(struct residual *q, struct err *e)
{
	return q->d.r == NULL ? 0 : reader_blame(q->d.r, reader_to_shard(q->d.r, e), e);
}

int
residual_find(struct residual *q, const struct statedir *s, uint64_t step, struct err *e)
{
	int k = residual_open(q, s, e);

	if (k < 0 || q->d.r == NULL)
		return k;
	(void)reader_skip_bodies(q->d.r, 1);
	while ((k = residual_pending(q, e)) > 0 && reader_shard(q->d.r)->step != step)
		continue;
	(void)reader_skip_bodies(q->d.r, 0);
	return k;
}

void
residual_close(struct residual *q)
{
	dense_close(&q->d);
}

/* ---- changing ---- */

struct residual_new {
	struct writer *w;	/* the next residual file */
	struct writer *c;	/* the coded shard, in the scratch file */
	int scratch;		/* the caller's scratch file */
	struct reader *early;	/* reads `c' to send it before the commit; or NULL */
};

/* Empty the scratch file for the next shard: this is faster than creating another. */
static int
residual_empty(int fd, struct err *e)
{
	return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 ? 0 :
	    err_sys(e, TEMP_UNNAMED);
}

/* Create the next residual file. If s->again is set, write it over the spare, the file of
 * an earlier residual. */
static int
residual_create(struct residual_new *n, const struct statedir *s,
    const struct shard *sh, const struct text_kv *kv, const struct schema *sc,
    struct err *e)
{
	char path[STATE_PATH], spare[STATE_PATH];
	struct io *io;
	int k;

	if (!s->again)
		return dense_create(&n->w, s, RESIDUAL_FILE, sh, SHARD_RESIDUAL,
		    kv, sc, e);
	k = io_create_over(&io, statedir_path(s, RESIDUAL_FILE, path),
	    statedir_path(s, RESIDUAL_SPARE, spare), s->durable && !s->settled, e);
	return k < 0 ? k : dense_begin(&n->w, io, s, sh, SHARD_RESIDUAL, kv, sc, e);
}

int
residual_begin(struct residual_new **out, const struct statedir *s,
    int scratch, const struct shard *sh, const struct text_kv *kv,
    const struct schema *sc, struct err *e)
{
	struct residual_new *n = alloc_get(1, sizeof(*n), e);
	int k;

	*out = NULL;
	if (n == NULL)
		return -ERR_SYS;
	n->scratch = scratch;
	if ((k = residual_create(n, s, sh, kv, sc, e)) == 0 &&
	    (k = residual_empty(scratch, e)) == 0 &&
	    (k = writer_fd(&n->c, n->scratch, "state", e)) == 0)
		k = writer_shard(n->c, sh, sc, e);
	if (k < 0) {
		residual_free(n);
		return k;
	}
	*out = n;
	return 0;
}

int
residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    const struct kern_stat *seen, struct err *e)
{
	return seen->nonzero + seen->nonfinite == 0 ? 0 :
	    writer_seen(n->w, g, x, len, seen, e);
}

struct writer *
residual_writer(struct residual_new *n)
{
	return n->c;
}

struct io *
residual_io(const struct residual_new *n)
{
	return writer_io(n->w);
}

/* Open a reader of the scratch file and read up to the shard's head.  Return 1. */
static int
residual_read(const struct residual_new *n, struct reader **r, struct err *e)
{
	const struct reader_opts o = { .max_elements = SCHEMA_MAX_TOTAL };
	struct io *io;
	int k;

	*r = NULL;
	if ((k = io_open_whole(&io, n->scratch, TEMP_UNNAMED, e)) < 0 ||
	    (k = reader_open(r, io, &o, e)) < 0)
		return k;
	return reader_to_shard(*r, e);
}

static int
residual_copy(const struct residual_new *n, struct writer *w, struct err *e)
{
	struct reader *r;
	int k = residual_read(n, &r, e);

	if (k > 0)
		k = filter_copy(r, w, e);
	reader_free(r);
	return k;
}

int
residual_early(struct residual_new *n, struct writer *w, struct err *e)
{
	int k;

	if ((k = writer_flush(n->c, e)) < 0)
		return k;
	if (n->early == NULL && ((k = residual_read(n, &n->early, e)) < 0 ||
	    (k = writer_shard(w, reader_shard(n->early),
	    reader_schema(n->early), e)) < 0))
		return k;
	while (io_bytes(reader_io(n->early)) < io_bytes(writer_io(n->c)))
		if ((k = reader_next(n->early, e)) < 0 ||
		    (k = writer_pass(w, n->early, e)) < 0)
			return k;
	return writer_flush(w, e);
}

int
residual_made(struct residual_new *n, struct writer *w, struct err *e)
{
	return n->early != NULL ? filter_rest(n->early, w, e) : residual_copy(n, w, e);
}

int
residual_whole(struct residual_new *n, struct writer **w, struct err *e)
{
	int k;

	*w = n->w;
	if ((k = writer_send(n->c, NULL, e)) == 0 && (k = writer_finish(n->c, e)) == 0)
		k = writer_send(n->w, NULL, e);
	return k;
}

int
residual_commit(struct residual_new *n, enum io_sync sync, struct err *e)
{
	int k = residual_copy(n, n->w, e);

	return k < 0 ? k : writer_end(n->w, sync, e);
}

void
residual_free(struct residual_new *n)
{
	if (n == NULL)
		return;
	reader_free(n->early);
	writer_free(n->w);
	writer_free(n->c);
	alloc_free(n);
}
