/*
 * The steps of a run in a spool, and the files of a step's accepted shards.
 */
#ifndef ACE_STEPS_H
#define ACE_STEPS_H

#include "format/array.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"

struct steps {
	uint64_t *step;		/* [n]; steps_list makes them ascending, each step once */
	size_t n, cap;
	uint64_t from;		/* steps_list adds only steps from this one on */
};
#define STEPS_DONE "done"
#define STEPS_INIT { NULL, 0, 0, 0 }

int steps_add(struct steps *x, uint64_t step, struct err *e);
/* steps_list(x, s, below, from, e): add the steps >= `from' that have a directory (below
 * "") or are done (below STEPS_DONE, see closing_done), and sort x.  Call steps_release(x),
 * also after a failure. */
int steps_list(struct steps *x, const struct spool *s, const char *below,
    uint64_t from, struct err *e);
void steps_release(struct steps *x);

/* steps_files(l, s, step, e): append the names of the files of the step's accepted
 * shards, in no order.
 * steps_devices(l, s, step, e): append the names of the devices that sent these shards,
 * except names that are empty or too long for a file name.
 * steps_shards(l, s, step, have, e): append a receipt per shard to l.  Take it from `have',
 * a sorted list or NULL, if it is accepted there, else read the file.  For a damaged file
 * the receipt has the verdict `late' and the reason, and no run and digest. */
int steps_files(struct array_names *l, const struct spool *s, uint64_t step,
    struct err *e);
int steps_devices(struct array_names *l, const struct spool *s, uint64_t step,
    struct err *e);
int steps_shards(struct receipt_list *l, const struct spool *s, uint64_t step,
    const struct receipt_list *have, struct err *e);

/* steps_remove(s, before, e): remove the directories of all steps < before, which must be
 * closed. */
int steps_remove(const struct spool *s, uint64_t before, struct err *e);

#endif
