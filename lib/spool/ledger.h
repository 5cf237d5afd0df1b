/*
 * The formats of a spool's small files: lists of receipts, a number, the
 * model.
 */
#ifndef ACE_LEDGER_H
#define ACE_LEDGER_H

#include "base/io.h"
#include "format/receipt.h"
#include "format/schema.h"

struct err;

enum { LEDGER_NAME = 256 };
struct ledger {
	struct ledger_line {
		struct receipt r;
		char name[LEDGER_NAME];	/* of the shard's file */
	} *line;
	size_t n, cap;
};
void ledger_release(struct ledger *l);

/* ledger_hash(s, out): the XXH3-128 of a string. */
void ledger_hash(const char *s, unsigned char out[16]);

/* A list of receipts is, as a file, a stream of RCPT frames.
 * ledger_add(l, r, file, e): appends r and the name of its shard's file. */
int ledger_add(struct ledger *l, const struct receipt *r, const char *file,
    struct err *e);
/* ledger_sort: by step, then by device id, as ledger_compare says. */
int ledger_compare(const struct receipt *a, const struct receipt *b);
void ledger_sort(struct ledger *l);
int ledger_write(const struct ledger *l, const char *path,
    enum io_sync sync, struct err *e);
/* ledger_read: 1, or 0 when there is no such file. */
int ledger_read(struct ledger *l, const char *path, struct err *e);

/* ledger_digest(path, digest, e): the digest of the one shard in a file: 1, or
 * 0 when there is no such file. */
int ledger_digest(const char *path, unsigned char digest[SHARD_DIGEST],
    struct err *e);
/* ledger_shard(path, r, e): the same, with run, device and step beside it. */
int ledger_shard(const char *path, struct receipt *r, struct err *e);

/* ledger_run(path, name, e): the run's name in a file that ledger_schema made,
 * allocated. */
int ledger_run(const char *path, char **name, struct err *e);
/* ledger_schema(path, sc, sh, why, e): compares schema sc with the one in the
 * file, which is made, in the name of sh's run, if it is not there.  0: the
 * same; 1: another one, and in which way. */
int ledger_schema(const char *path, const struct schema *sc,
    const struct shard *sh, char why[256], struct err *e);

/* ledger_number: reads the number in a file: 1, or 0 when there is none.
 * ledger_set_number: a reader finds the new number or the old one. */
int ledger_number(const char *path, uint64_t *v, struct err *e);
int ledger_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e);

#endif
