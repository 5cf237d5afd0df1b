/*
 * The small files of a state (score, code, link, policy).  Each is a stream
 * with one shard of kind history, whose tensors are rows of numbers and whose
 * keys are text.  A reader takes the rows and keys it knows, so that rows and
 * keys can be added without changing the format.
 *
 * Losing one of these files costs quality, never gradient: so they are renamed
 * into place and not synced.
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
	uint64_t step;		/* of the shard that it was written after */
};
#define MEMORY_INIT { TEXT_KV_INIT, NULL, 0, 0, 0 }

/* memory_load(h, s, name, e): 1 read; 0 there is no such file, h is empty;
 * < 0 an error ("corrupt: ..., of 'DIR/score'"). */
int memory_load(struct memory *h, const struct statedir *s, const char *name,
    struct err *e);

/* memory_before(h, s, name, step, e): the same of what was known before a step:
 * of the file, or where that was written after this very step, which then comes
 * once more, of the one that memory_turn kept. */
int memory_before(struct memory *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e);
/* memory_turn(s, name, e): keeps the file as NAME.before, too, since the
 * next memory_save is of another step. */
int memory_turn(const struct statedir *s, const char *name, struct err *e);

/* memory_save(h, s, name, sh, tool, e): writes the file anew, in the name of
 * the program `tool'; run, device and step are sh's, which may be NULL. */
int memory_save(const struct memory *h, const struct statedir *s,
    const char *name, const struct shard *sh, const char *tool, struct err *e);

/* memory_put(h, name, x, n, e): appends a row f32[n], n > 0; names differ. */
int memory_put(struct memory *h, const char *name, const float *x, size_t n,
    struct err *e);

/* memory_row(h, name, n): the row, or NULL when it is not there or does not
 * have n numbers. */
const float *memory_row(const struct memory *h, const char *name, size_t n);

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
#define MEMORY_LINK "link"
#define MEMORY_BANDWIDTH "bandwidth"	/* bit/s */

void memory_release(struct memory *h);

#endif
