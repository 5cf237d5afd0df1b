/*
 * The sender's list of the models that receivers have: file `models' in the directory
 * of ace-diff -S.  It has two models per receiver: the one that the receiver's last
 * receipt named, and the one that was sent last.
 *
 * Only a receipt shows what a receiver has.  A wrong entry, from a forged or late
 * receipt, costs bytes but damages no model: the receiver refuses a patch for another
 * model, and its receipt names the model that it has.
 *
 * A line is "has HASH STEP TIME sent HASH STEP TIME NAME".  A hash of zeros means
 * unknown.
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
	uint64_t time;		/* Unix time at which this became known; 0: unknown */
};

struct receivers_line {
	char *name;
	unsigned char id[SHARD_ID];	/* hash of the name */
	struct receivers_model has, sent;
};

struct receivers {
	struct statedir s;
	struct receivers_line *p;	/* sorted by name */
	size_t n, cap;
};
#define RECEIVERS_INIT { STATE_INIT, NULL, 0, 0 }

/* Return 1 if dir has such a file. */
int receivers_there(const char *dir);
/* Read the list.  alone 1: first wait for a process that has locked it, and lock it until
 * receivers_close. */
int receivers_open(struct receivers *b, const char *dir, int alone, struct err *e);
void receivers_close(struct receivers *b);
/* Write the list to disk.  b must have been opened with alone = 1. */
int receivers_save(const struct receivers *b, struct err *e);

/* Return 0, or -ERR_USAGE if name is not a valid name of a receiver. */
int receivers_name(const char *name, struct err *e);
/* Return the receiver's line; add it if it is absent.  NULL: out of memory, or the name
 * is not valid. */
struct receivers_line *receivers_line(struct receivers *b, const char *name, struct err *e);
/* Store the model that a receipt names in its receiver's line, and set *line to that line.
 * Return 1, or 0 if the receiver is not in the list (*line: NULL) or no model is named. */
int receivers_take(struct receivers *b, const struct receipt *r,
    const struct receivers_line **line, struct err *e);

/* Write the receiver's name and the hash of its model into a receipt. */
void receivers_receipt(struct receipt *r, const char *name,
    const unsigned char hash[MODEL_HASH]);

#endif
