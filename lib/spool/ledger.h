/*
 * The small files of a spool: lists of receipts, a number, a model.
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

/* ledger_hash(s, out): compute the XXH3-128 of a string. */
void ledger_hash(const char *s, unsigned char out[16]);

/* A list of receipts is stored as a stream of RCPT frames.
 * ledger_add(l, r, file, e): append r and the name of its shard's file. */
int ledger_add(struct ledger *l, const struct receipt *r, const char *file,
    struct err *e);
/* ledger_sort: sort by step, then by device id. */
int ledger_compare(const struct receipt *a, const struct receipt *b);
void ledger_sort(struct ledger *l);
int ledger_write(const struct ledger *l, const char *path,
    enum io_sync sync, struct err *e);
/* ledger_read: append the receipts of a file: 1, or 0 if it is absent. */
int ledger_read(struct ledger *l, const char *path, struct err *e);

/* ledger_shard(path, r, run, e): read device, step and digest of the one shard in a file,
 * and unless run is NULL the name of its run, allocated even if this fails: 1, or 0 if the
 * file is absent. */
int ledger_shard(const char *path, struct receipt *r, char **run, struct err *e);

/* ledger_schema(path, sc, sh, why, e): compare schema sc with the one in the file; if
 * the file is absent make it, for the run of sh.  0: the same; 1: another one, and why
 * says in what it differs; -ERR_DATA: sh is of another run. */
int ledger_schema(const char *path, const struct schema *sc,
    const struct shard *sh, char why[256], struct err *e);

/* ledger_number: read the number in a file: 1, or 0 if the file is absent.
 * ledger_set_number: replace it, so that a reader finds the old number or the new one. */
int ledger_number(const char *path, uint64_t *v, struct err *e);
int ledger_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e);

#endif
