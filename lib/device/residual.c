#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "device/pending.h"
#include "device/residual.h"
#include "pipe/filter.h"

#define RESIDUAL_FILE "residual"

/* ---- looking ---- */

int
residual_open(struct residual *q, const struct state *s, struct err *e)
{
	int k = dense_open(&q->d, s, RESIDUAL_FILE, SHARD_RESIDUAL, e);

	q->step = k == 0 && q->d.r != NULL ? reader_shard(q->d.r)->step : 0;
	return k;
}

int
residual_pending(struct residual *q, struct err *e)
{
	int k;

	if (q->d.r == NULL)
		return 0;
	while ((k = reader_next(q->d.r, e)) > 0)
		if (k == READER_SHARD)
			return 1;
	return k == 0 ? 0 : reader_blame(q->d.r, k, e);
}

void
residual_close(struct residual *q)
{
	dense_close(&q->d);
}

int
residual_send(struct residual *q, struct writer *w, struct err *e)
{
	return filter_copy(q->d.r, w, e);
}

/* ---- changing ---- */

struct residual_new {
	struct writer *w;	/* the file to be */
	struct writer *c;	/* the pending shard, in a scratch file */
	int scratch;
};

int
residual_begin(struct residual_new **out, const struct state *s,
    const struct shard *sh, const struct text_kv *kv, const struct schema *sc,
    struct err *e)
{
	struct writer_opts o = { "state", NULL, 0 };
	struct residual_new *n = alloc_get(1, sizeof(*n), e);
	struct io *io;
	int k;

	*out = NULL;
	if (n == NULL)
		return -ERR_SYS;
	n->scratch = -1;
	if ((k = dense_create(&n->w, s, RESIDUAL_FILE, sh, SHARD_RESIDUAL, kv,
	    sc, e)) == 0 && (k = state_scratch(s, &n->scratch, e)) == 0 &&
	    (k = io_create_fd(&io, n->scratch, "<scratch>", e)) == 0 &&
	    (k = writer_open(&n->c, io, &o, e)) == 0)
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
    struct err *e)
{
	return dense_put(n->w, g, x, len, e);
}

int
residual_record(struct residual_new *n, uint32_t g, uint32_t codec,
    uint8_t param, const struct buf *body, const float *x, size_t len,
    struct err *e)
{
	return writer_record(n->c, g, codec, param, body->p, body->n, x, len, e);
}

struct writer *
residual_writer(struct residual_new *n)
{
	return n->c;
}

int
residual_made(struct residual_new *n, struct writer *w, struct err *e)
{
	struct reader_opts o = { .max_elements = SCHEMA_MAX_TOTAL };
	struct reader *r = NULL;
	struct io *io;
	int k;

	if (lseek(n->scratch, 0, SEEK_SET) < 0)
		return err_sys(e, "scratch file");
	if ((k = io_open_fd(&io, n->scratch, "<scratch>", e)) < 0 ||
	    (k = reader_open(&r, io, &o, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0 && k != READER_SHARD)
		continue;
	if (k > 0)
		k = filter_copy(r, w, e);
	reader_free(r);
	return k;
}

int
residual_commit(struct residual_new *n, struct residual *old,
    const struct pending *p, enum io_sync sync,
    unsigned char digest[SHARD_DIGEST], struct err *e)
{
	int k;

	if ((k = writer_send(n->c, NULL, e)) < 0 ||
	    (k = writer_finish(n->c, e)) < 0 ||
	    (k = writer_send(n->w, NULL, e)) < 0 ||
	    (k = pending_copy(p, old, n->w, UINT64_MAX, e)) < 0)
		return k;
	memcpy(digest, writer_sent(n->c)->digest, SHARD_DIGEST);
	if ((k = residual_made(n, n->w, e)) < 0)
		return k;
	return writer_end(n->w, sync, e);
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
	alloc_free(n);
}
