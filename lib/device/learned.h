/*
 * Values that a device's programs have learned from earlier shards, beside the residual.
 * They are small and affect quality, but they are not gradients.  So most of their files are
 * renamed into place without a sync.
 *
 * A memory is a file of such values in the state.  Its first shard is of kind history: its
 * tensors are rows of numbers, its keys are text.  Readers take the rows and keys that they
 * know, so that new ones need no format change.  A second shard is the memory before the
 * step (learned_save_again).  Each memory has one writer, so it needs no lock.
 */
#ifndef ACE_LEARNED_H
#define ACE_LEARNED_H

#include <stddef.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/shard.h"

struct err;

struct learned_row {
	char *name;
	float *x;
	size_t n;
};

struct learned {
	struct text_kv kv;
	struct learned_row *row;
	size_t n, cap;
	/* identity of the shard after which the memory was saved */
	unsigned char run[SHARD_ID], device[SHARD_ID];
	uint64_t step;
	const char *dir, *file;	/* the state, and its file from which this was read */
};
#define LEARNED_INIT { TEXT_KV_INIT, NULL, 0, 0, { 0 }, { 0 }, 0, NULL, NULL }

/* Read the memory `name' into h. Return 1; 0, with h empty, if its file is absent or
 * truncated; or < 0 on an error. learned_release frees h. */
int learned_load(struct learned *h, const struct statedir *s, const char *name,
    struct err *e);
/* Like learned_load, but read the memory as it was before a step.  If the memory was saved at
 * that step, read the copy that learned_save_again kept, and return 0 if there is none. */
int learned_before(struct learned *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e);

/* Save h, with the run, device and step of sh unless sh is NULL; h becomes empty, also on
 * failure.  learned_save_again: sh is not NULL; do not sync; also keep the memory as it was
 * before sh's step, unless the file is damaged. */
int learned_save(struct learned *h, const struct statedir *s, const char *name,
    const struct shard *sh, enum io_sync sync, struct err *e);
int learned_save_again(struct learned *h, const struct statedir *s,
    const char *name, const struct shard *sh, struct err *e);

/* Append a row f32[n], n > 0, under a new name. */
int learned_put(struct learned *h, const char *name, const float *x, size_t n,
    struct err *e);

/* Return the row, or NULL if it is missing or does not have n numbers. */
const float *learned_row(const struct learned *h, const char *name, size_t n);
/* Set *x to the row. If it is missing or does not have n numbers, return -ERR_DATA
 * "mismatch: ..." (the memory is of another release, or for another model). */
int learned_need(const struct learned *h, const char *name, size_t n,
    const float **x, struct err *e);

/* Set *v to the number under a key of a memory, and return 1; 0 if the memory or the key is
 * absent; -ERR_DATA "corrupt: ..." if it is not a number from 0 to 1e300. */
int learned_number(const struct statedir *s, const char *file, const char *key,
    double *v, struct err *e);

/* learned_put_list: store numbers exactly, as the text of a key. learned_list: read them
 * into v[n] and return 1; 0 without such a key; -ERR_DATA "corrupt: ..." unless it has n
 * finite numbers. */
int learned_put_list(struct learned *h, const char *key, const double *v,
    size_t n, struct err *e);
int learned_list(const struct learned *h, const char *key, double *v,
    size_t n, struct err *e);

/* The memory in which ace-meter reports on the link. */
#define LEARNED_LINK "link"
#define LEARNED_BANDWIDTH "bandwidth"	/* bit/s */

/* The memory that ace-expand --feedback writes about the last average: a row with a number
 * per group of the schema that the key `model' names, for ace-score.  Its step tells
 * ace-compress that the average came. */
#define LEARNED_FEEDBACK "feedback"
#define LEARNED_ENERGY "energy"	/* mean square */
#define LEARNED_MODEL "model"

/* The memory that ace-ack --restart writes: the incarnation of a state without residual. */
#define LEARNED_RESTART "restart"
#define LEARNED_INCARNATION "incarnation"

void learned_release(struct learned *h);

#endif
