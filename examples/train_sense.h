/*
 * The sensitivity of the loss to each value, for ace-score --form moment: the moving
 * average of the squared gradient (the diagonal of the empirical Fisher information).
 */
#ifndef TRAIN_SENSE_H
#define TRAIN_SENSE_H

#include "train_link.h"

enum { SENSE_FILES = 2 };

struct sense {
	const struct model *m;
	const char *const *file;	/* [SENSE_FILES]; if the first is NULL,
					 * nothing is written */
	float *square;		/* f32[n] moving average of the squared gradient; NULL: it
				 * is not measured */
	int any;		/* 1: square has an average; 0: it is 0 */
};

/* Begin with averages of 0; measure only if there are files, or `always'.  s is zeros on entry;
 * it borrows m and file.  Return 0, or -4 without memory. */
int sense_init(struct sense *s, const struct model *m,
    const char *const *file, int always, struct ace_error *e);
void sense_release(struct sense *s);

/* Update the average by m->grad, the gradient of one more batch. */
void sense_see(struct sense *s);

/* After rounds 1, 2, 4, 8, ... write the root of the average as a shard stream
 * to all files, each of which is replaced by a rename.  Return 0, -2 or -4. */
int sense_tell(const struct sense *s, size_t round, struct ace_error *e);

#endif
