/*
 * How much the loss minds a change of each value: the moving average of the
 * square of its gradient (the diagonal of the empirical Fisher information).
 * For ace-score --form moment.
 */
#ifndef TRAIN_SENSE_H
#define TRAIN_SENSE_H

#include "train_link.h"

enum { SENSE_FILES = 2 };

/* Tensors whose names begin so count so many times. */
struct sense_favour {
	const char *name;	/* NULL: none */
	size_t length;
	double times;
};

struct sense {
	const struct model *m;
	const struct sense_favour *favour;
	const char *const *file;	/* [SENSE_FILES]; the first NULL: nothing
					 * is measured */
	float *square;		/* f32[n] */
	int any;
};

/* 0, or -4 without memory. */
int sense_init(struct sense *s, const struct model *m,
    const char *const *file, const struct sense_favour *favour,
    struct ace_error *e);
void sense_release(struct sense *s);

/* m->grad of another batch. */
void sense_see(struct sense *s);

/* After round 1, 2, 4, 8 and so on: the root of it, as a shard stream, to all
 * files, each by a rename; in other rounds nothing.  0, -2 or -4. */
int sense_tell(const struct sense *s, size_t round, struct ace_error *e);

#endif
