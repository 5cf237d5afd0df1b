#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "device/receipts.h"
#include "format/reader.h"
#include "format/writer.h"

#define RECEIPTS_FILE "receipts"

int
receipts_load(struct receipts *q, const struct statedir *s, struct err *e)
{
	char path[STATE_PATH];
	struct reader *r = NULL;
	int k = reader_kept(&r, statedir_path(s, RECEIPTS_FILE, path), NULL, e);

	memset(q, 0, sizeof(*q));
	q->managed = k > 0;
	while (k > 0 && (k = reader_next(r, e)) > 0)
		if (k == READER_RCPT)
			receipts_add(q, reader_receipt(r));
	reader_free(r);
	return k == -ERR_DATA ? err_after(e, err_file(e, k, path),
	    " (ace-ack --restart begins without the file and the residual)") : k;
}

static int
receipts_same(const struct receipt *a, const struct receipt *b)
{
	return memcmp(a->run, b->run, SHARD_ID) == 0 &&
	    memcmp(a->device, b->device, SHARD_ID) == 0 && a->step == b->step &&
	    memcmp(a->digest, b->digest, SHARD_DIGEST) == 0;
}

void
receipts_add(struct receipts *q, const struct receipt *r)
{
	size_t i;

	for (i = 0; i < q->n; i++)
		if (receipts_same(&q->r[i], r)) {
			if (!receipt_is_accepted(&q->r[i]))
				q->r[i] = *r;
			return;
		}
	if (q->n == RECEIPTS_MAX) {
		memmove(&q->r[0], &q->r[1], (q->n - 1) * sizeof(q->r[0]));
		q->n--;
	}
	q->r[q->n++] = *r;
}

int
receipts_save(const struct receipts *q, const struct statedir *s,
    enum io_sync sync, struct err *e)
{
	char path[STATE_PATH];
	struct writer *w;
	size_t i;
	int k = writer_file(&w, statedir_path(s, RECEIPTS_FILE, path), "state", e);

	for (i = 0; i < q->n && k == 0; i++)
		k = writer_receipt(w, &q->r[i], e);
	if (k == 0)
		k = writer_end(w, sync, e);
	writer_free(w);
	return k;
}

const struct receipt *
receipts_find(const struct receipts *q, const struct shard *s,
    const unsigned char digest[SHARD_DIGEST])
{
	size_t i;

	for (i = 0; i < q->n; i++)
		if (receipt_is_for(&q->r[i], s) &&
		    memcmp(q->r[i].digest, digest, SHARD_DIGEST) == 0)
			return &q->r[i];
	return NULL;
}
