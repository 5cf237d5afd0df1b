/*
 * The small files of a spool: lists of receipts, numbers, the model.
 */
#ifndef ACE_LEDGER_H
#define ACE_LEDGER_H

#include "base/io.h"
#include "format/receipt.h"
#include "format/schema.h"

struct err;

enum { LEDGER_NAME = 256 };
struct ledger {
	struct receipt *r;	/* see ledger_sort */
	char (*name)[LEDGER_NAME];	/* files, beside it */
	size_t n, cap;
};
void ledger_release(struct ledger *l);

/* XXH3-128 of a string. */
void ledger_hash(const char *s, unsigned char out[16]);

/* Lists of receipts: a stream of RCPT frames. */
int ledger_add(struct ledger *l, const struct receipt *r, const char *file,
    struct err *e);
/* ledger_sort: by device id. */
int ledger_sort(struct ledger *l, struct err *e);
int ledger_write(const struct ledger *l, const char *path,
    enum io_sync sync, struct err *e);
/* 1, or 0 when there is no such file. */
int ledger_read(struct ledger *l, const char *path, struct err *e);
int ledger_first(const char *path, struct receipt *r, struct err *e);

/* ledger_digest(path, digest, e): of the one shard in a file: 1, or 0 when
 * there is no such file. */
int ledger_digest(const char *path, unsigned char digest[SHARD_DIGEST],
    struct err *e);
/* ledger_shard(path, r, e): the same, and the shard's key: a receipt. */
int ledger_shard(const char *path, struct receipt *r, struct err *e);

/* ledger_run(path, name, e): the run's name in a file that ledger_schema made,
 * allocated. */
int ledger_run(const char *path, char **name, struct err *e);
/* ledger_schema(path, sc, sh, why, e): 0 the file says the same model, or says
 * it from now on; 1 another, and why. */
int ledger_schema(const char *path, const struct schema *sc,
    const struct shard *sh, char why[256], struct err *e);

/* ledger_text(path, s, n, e): a file of less than n bytes (of what is longer
 * the beginning) as a string: 1, or 0 when there is none.  ledger_set_text: such
 * a file, whole or as it was. */
int ledger_text(const char *path, char *s, size_t n, struct err *e);
int ledger_set_text(const char *path, const char *s, enum io_sync sync,
    struct err *e);

/* A number in a file: 1, or 0 when there is none. */
int ledger_number(const char *path, uint64_t *v, struct err *e);
int ledger_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e);

#endif
