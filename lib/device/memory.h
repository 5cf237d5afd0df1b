/*
 * What the programs of a device remember from shard to shard beside the residual:
 * small, and worth quality, never gradient.  So it is renamed into place and not
 * synced.
 *
 * A memory is a shard of kind history, whose tensors are rows of numbers and whose
 * keys are text.  A reader takes the rows and keys it knows, so that rows and
 * keys can be added without changing the format.  All of them are in one file,
 * `memory', each under its name and in the order of the names, since one step
 * changes most of them; whoever writes it has its lock, and copies what is not
 * theirs.  Only what is said in its own time has a file of its own: by ace-meter, by
 * ace-expand of an aggregate, and by ace-ack --restart.
 */
#ifndef ACE_MEMORY_H
#define ACE_MEMORY_H

#include <stddef.h>

#include "base/statedir.h"
#include "format/shard.h"

struct err;

struct memory_row {
	char *name;
	float *x;
	size_t n;
};

struct memory {
	struct text_kv kv;
	struct memory_row *row;
	size_t n, cap;
	/* of the shard that it was saved after */
	unsigned char run[SHARD_ID], device[SHARD_ID];
	uint64_t step;
	const char *file;	/* in the state, that it was read from */
};
#define MEMORY_INIT { TEXT_KV_INIT, NULL, 0, 0, { 0 }, { 0 }, 0, NULL }

/* memory_load(h, s, name, e): 1 read; 0 there is none of that name, h is empty;
 * < 0 an error ("corrupt: ..., of 'DIR/memory'"). */
int memory_load(struct memory *h, const struct statedir *s, const char *name,
    struct err *e);
/* memory_before(h, s, name, step, e): the same of what was known before a step:
 * where it was saved after this very step, which then comes once more, what
 * memory_save_again kept. */
int memory_before(struct memory *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e);

/* memory_save(h, s, name, sh, e): saves what h holds, which is empty then; run,
 * device and step are sh's, which may be NULL.
 * memory_save_again: the same, and what was known before the step of sh is kept
 * as NAME.before. */
int memory_save(struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e);
int memory_save_again(struct memory *h, const struct statedir *s,
    const char *name, const struct shard *sh, struct err *e);

/* Where s->later is not NULL, what is saved waits there for memory_flush, which
 * writes the file once for all of it; until then memory_load does not see it.
 * Zeros are none. */
struct memories {
	struct memory_part {
		char *name;
		struct memory h;
	} *p;			/* in the order of their names */
	size_t n, cap;
};
int memory_flush(const struct statedir *s, struct err *e);
void memory_release_all(struct memories *m);

/* memory_put(h, name, x, n, e): appends a row f32[n], n > 0; names differ. */
int memory_put(struct memory *h, const char *name, const float *x, size_t n,
    struct err *e);

/* memory_row(h, name, n): the row, or NULL when it is not there or does not
 * have n numbers. */
const float *memory_row(const struct memory *h, const char *name, size_t n);
/* memory_need(h, name, n, x, e): the same; what does not have it is of another
 * version: -ERR_DATA "mismatch: ...". */
int memory_need(const struct memory *h, const char *name, size_t n,
    const float **x, struct err *e);

/* memory_number(s, file, key, v, e): a number among the keys of one of these
 * files.  1 there, finite and not negative; 0 no such file or key; < 0. */
int memory_number(const struct statedir *s, const char *file, const char *key,
    double *v, struct err *e);

/* memory_put_list(h, key, v, n, e): numbers, exactly, as the text of a key.
 * memory_list(h, key, v, n, e): 1 and v[n]; 0 there is no such key; -ERR_DATA
 * "corrupt: ..." when it does not hold n of them. */
int memory_put_list(struct memory *h, const char *key, const double *v,
    size_t n, struct err *e);
int memory_list(const struct memory *h, const char *key, double *v,
    size_t n, struct err *e);

/* What ace-meter says of the link, and others read. */
#define MEMORY_LINK "link"		/* a file of its own */
#define MEMORY_BANDWIDTH "bandwidth"	/* bit/s */

/* What ace-expand --feedback says of the last aggregate, and ace-score learns from:
 * rows of a number for each group of the schema that its key names. */
#define MEMORY_FEEDBACK "feedback"	/* a file of its own */
#define MEMORY_ENERGY "energy"	/* mean square */
#define MEMORY_DOUBT "doubt"	/* of its logarithm the variance that comes of
				 * which values it has, at most */
#define MEMORY_MODEL "model"

/* What ace-ack --restart says, and feedback reads where there is no residual. */
#define MEMORY_RESTART "restart"	/* a file of its own */
#define MEMORY_INCARNATION "incarnation"

#define MEMORY_KEY "memory"	/* of a shard in the file: which memory it is */

void memory_release(struct memory *h);

#endif
