#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/pack.h"
#include "format/reader.h"
#include "format/writer.h"
#include "spool/ledger.h"

void
ledger_hash(const char *s, unsigned char out[16])
{
	pack_hash128(s, strlen(s), out);
}

int
ledger_add(struct ledger *l, const struct receipt *r, const char *file,
    struct err *e)
{
	if (alloc_grow(&l->line, &l->cap, l->n + 1, sizeof(*l->line), e) < 0)
		return -ERR_SYS;
	l->line[l->n].r = *r;
	(void)snprintf(l->line[l->n].name, LEDGER_NAME, "%s", file);
	l->n++;
	return 0;
}

int
ledger_compare(const struct receipt *a, const struct receipt *b)
{
	return a->step != b->step ? (a->step < b->step ? -1 : 1) :
	    memcmp(a->device, b->device, SHARD_ID);
}

static int
ledger_order(const void *a, const void *b)
{
	const struct ledger_line *x = a, *y = b;

	return ledger_compare(&x->r, &y->r);
}

void
ledger_sort(struct ledger *l)
{
	if (l->n != 0)
		qsort(l->line, l->n, sizeof(*l->line), ledger_order);
}

void
ledger_release(struct ledger *l)
{
	alloc_free(l->line);
	memset(l, 0, sizeof(*l));
}

/* Open a reader of path: 1, or 0 if the file is absent. */
static int
ledger_open(struct reader **r, const char *path, struct err *e)
{
	struct reader_opts o = { .max_elements = SCHEMA_MAX_TOTAL };
	struct io *io;
	int k;

	*r = NULL;
	if ((k = io_open_kept(&io, path, e)) <= 0 ||
	    (k = reader_open(r, io, &o, e)) < 0)
		return k;
	return 1;
}

int
ledger_write(const struct ledger *l, const char *path, enum io_sync sync,
    struct err *e)
{
	struct writer *w;
	size_t i;
	int k = writer_file(&w, path, "spool", e);

	for (i = 0; i < l->n && k == 0; i++)
		k = writer_receipt(w, &l->line[i].r, e);
	if (k == 0)
		k = writer_end(w, sync, e);
	writer_free(w);
	return k;
}

int
ledger_read(struct ledger *l, const char *path, struct err *e)
{
	const struct chain_frame *f;
	struct receipt rc;
	struct reader *r;
	int k;

	if ((k = ledger_open(&r, path, e)) <= 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_RCPT)
			continue;
		f = reader_frame(r);
		if ((k = receipt_decode(&rc, f->raw, f->raw_len, e)) < 0 ||
		    (k = ledger_add(l, &rc, "", e)) < 0)
			break;
	}
	reader_free(r);
	return k < 0 ? k : 1;
}

int
ledger_shard(const char *path, struct receipt *rc, char **run, struct err *e)
{
	const struct shard *sh;
	const char *name;
	struct reader *r;
	int k, n = 0;

	memset(rc, 0, sizeof(*rc));
	if ((k = ledger_open(&r, path, e)) <= 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SEND)
			continue;
		sh = reader_shard(r);
		name = text_get(&sh->kv, SHARD_KEY_RUN);
		if (n++ == 0 && run != NULL &&
		    (*run = alloc_dup(name != NULL ? name : "", e)) == NULL) {
			k = -ERR_SYS;
			break;
		}
		memcpy(rc->run, sh->run, SHARD_ID);
		memcpy(rc->device, sh->device, SHARD_ID);
		rc->step = sh->step;
		memcpy(rc->digest, reader_end_of_shard(r)->digest,
		    SHARD_DIGEST);
	}
	reader_free(r);
	if (k == 0 && n != 1)
		k = err_set(e, ERR_DATA, "corrupt: %d shards in '%s'", n, path);
	return k < 0 ? k : 1;
}

static int
ledger_schema_new(const char *path, const struct schema *sc,
    const struct shard *of, struct err *e)
{
	struct writer *w = NULL;
	struct shard sh;
	int k;

	shard_init(&sh);
	sh.kind = SHARD_HISTORY;
	if ((k = shard_same(&sh, of, e)) == 0 &&
	    (k = writer_file(&w, path, "spool", e)) == 0 &&
	    (k = writer_shard(w, &sh, sc, e)) == 0 &&
	    (k = writer_send(w, NULL, e)) == 0)
		k = writer_end(w, IO_SYNC_FULL, e);
	writer_free(w);
	shard_release(&sh);
	return k;
}

int
ledger_schema(const char *path, const struct schema *sc,
    const struct shard *sh, char why[256], struct err *e)
{
	const struct shard *first;
	struct reader *r;
	int k, differs = 0;

	if ((k = ledger_open(&r, path, e)) < 0)
		return k;
	if (k == 0)
		return ledger_schema_new(path, sc, sh, e);
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		first = reader_shard(r);
		differs = schema_diff(reader_schema(r), sc, why);
		if (memcmp(first->run, sh->run, SHARD_ID) != 0) {
			k = err_set(e, ERR_DATA, "mismatch: a shard of run "
			    "'%.80s', and the spool is of run '%.80s'",
			    shard_run(sh), shard_run(first));
			break;
		}
	}
	reader_free(r);
	return k < 0 ? k : differs;
}

int
ledger_number(const char *path, uint64_t *v, struct err *e)
{
	char s[32], *end;
	int k;

	*v = 0;
	if ((k = io_text(path, s, sizeof(s), e)) <= 0)
		return k;
	*v = strtoull(s, &end, 10);
	if (end == s || *end != '\n' || end[1] != '\0')
		return err_set(e, ERR_DATA, "corrupt: '%s' is not a number",
		    path);
	return 1;
}

int
ledger_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e)
{
	char s[32];

	(void)snprintf(s, sizeof(s), "%llu\n", (unsigned long long)v);
	return io_set_text(path, s, sync, e);
}
