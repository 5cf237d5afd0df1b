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
#ifndef ACE_RECEIVERS_H
#define ACE_RECEIVERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/statedir.h"
#include "format/receipt.h"
#include "model/model.h"

struct err;

struct receivers_model {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t time;		/* when that was known, Unix seconds; 0: it is not */
};

struct receivers_line {
	char *name;
	unsigned char id[SHARD_ID];	/* hash of the name */
	struct receivers_model has, sent;
};

struct receivers {
	struct statedir s;
	struct receivers_line *p;	/* by name */
	size_t n, cap;
};
#define RECEIVERS_INIT { STATE_INIT, NULL, 0, 0 }

/* receivers_there(dir): is it a directory with such a file? */
int receivers_there(const char *dir);
/* receivers_open(b, dir, alone, e): reads what there is; alone: nobody else changes it
 * until receivers_close, who does is waited for. */
int receivers_open(struct receivers *b, const char *dir, int alone, struct err *e);
void receivers_close(struct receivers *b);
/* receivers_save(b, e): write the list to disk. b must have been opened with alone. */
int receivers_save(const struct receivers *b, struct err *e);

/* receivers_name(name, e): -ERR_USAGE where a receiver can have no such name. */
int receivers_name(const char *name, struct err *e);
/* receivers_line(b, name, e): the receiver's; NULL without memory, or where it can be no
 * name. */
struct receivers_line *receivers_line(struct receivers *b, const char *name, struct err *e);
/* receivers_take(b, r, line, e): puts down what a receipt says: 1, or 0 where it is of no
 * receiver that anything was sent to, or of no model.  *line: whose. */
int receivers_take(struct receivers *b, const struct receipt *r,
    const struct receivers_line **line, struct err *e);

/* receivers_receipt(r, name, hash): makes it the receiver's, with the model that it has. */
void receivers_receipt(struct receipt *r, const char *name,
    const unsigned char hash[MODEL_HASH]);

#endif
