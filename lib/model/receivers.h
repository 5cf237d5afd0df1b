/*
 * The sender's list of the models that receivers have: file `models' in the directory
 * of ace-diff -S.  It has two models per receiver: the one that the receiver's last
 * receipt named, and the one that was sent last.
 *
 * Only a receipt shows what a receiver has.  A wrong entry, from a forged or late
 * receipt, costs bytes but no model: the receiver refuses a patch for another model, and
 * its receipt names the model that it has.
 *
 * A line is "has HASH STEP TIME sent HASH STEP TIME NAME", with a hash of zeros where
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
	uint64_t time;		/* Unix seconds when this became known; 0: unknown */
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

/* Return 1 if dir has such a file. */
int receivers_there(const char *dir);
/* Read the list.  alone: lock it until receivers_close, after waiting for a process that
 * has it locked. */
int receivers_open(struct receivers *b, const char *dir, int alone, struct err *e);
void receivers_close(struct receivers *b);
/* Write the list to disk.  b must have been opened with alone. */
int receivers_save(const struct receivers *b, struct err *e);

/* Return 0, or -ERR_USAGE if name is not a valid name of a receiver. */
int receivers_name(const char *name, struct err *e);
/* Return the receiver's line, a new one if need be; NULL without memory or for a name
 * that is not valid. */
struct receivers_line *receivers_line(struct receivers *b, const char *name, struct err *e);
/* Save the model that a receipt names, and set *line to its receiver.  Return 1, or 0 if
 * the receiver is not in the list or the receipt names no model. */
int receivers_take(struct receivers *b, const struct receipt *r,
    const struct receivers_line **line, struct err *e);

/* Set the receiver in a receipt, and the model that it has. */
void receivers_receipt(struct receipt *r, const char *name,
    const unsigned char hash[MODEL_HASH]);

#endif
