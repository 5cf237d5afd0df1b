/*
 * Who has which model, as the sender knows (file `models' of the directory of
 * ace-diff -S): for each receiver the one that its last receipt named, and the one
 * that was sent to it last.
 *
 * What a receiver has is what it said, never what was sent.  Whatever comes to stand
 * here wrongly, by a forged receipt or one that came late, costs bytes and no model: a
 * patch for another model is refused, with a receipt that says which one there is.
 *
 * A line is "has HASH STEP TIME sent HASH STEP TIME NAME", a hash of zeros where
 * nothing is known.
 */
#ifndef ACE_BOOKS_H
#define ACE_BOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/statedir.h"
#include "format/receipt.h"
#include "model/model.h"

struct err;

struct books_model {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t time;		/* when that was known, Unix seconds; 0: it is not */
};

struct books_line {
	char *name;
	unsigned char id[SHARD_ID];	/* hash of the name */
	struct books_model has, sent;
};

struct books {
	struct statedir s;
	struct books_line *p;	/* by name */
	size_t n, cap;
};
#define BOOKS_INIT { STATE_INIT, NULL, 0, 0 }

/* books_there(dir): is it a directory with such a file? */
int books_there(const char *dir);
/* books_open(b, dir, alone, e): reads what there is; alone: nobody else changes it
 * until books_close, who does is waited for. */
int books_open(struct books *b, const char *dir, int alone, struct err *e);
void books_close(struct books *b);
/* books_save(b, e): on disk, of one that was opened alone. */
int books_save(const struct books *b, struct err *e);

/* books_name(name, e): -ERR_USAGE where a receiver can have no such name. */
int books_name(const char *name, struct err *e);
/* books_line(b, name, e): the receiver's; NULL without memory, or where it can be no
 * name. */
struct books_line *books_line(struct books *b, const char *name, struct err *e);
/* books_take(b, r, line, e): puts down what a receipt says: 1, or 0 where it is of no
 * receiver that anything was sent to, or of no model.  *line: whose. */
int books_take(struct books *b, const struct receipt *r,
    const struct books_line **line, struct err *e);

/* books_receipt(r, name, hash): makes it the receiver's, with the model that it has. */
void books_receipt(struct receipt *r, const char *name,
    const unsigned char hash[MODEL_HASH]);

#endif
