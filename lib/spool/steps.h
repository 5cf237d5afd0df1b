/*
 * What lies in the spool by step: the steps of a run that have an entry, and the
 * files of the shards that were accepted for one.
 */
#ifndef ACE_STEPS_H
#define ACE_STEPS_H

#include "format/array.h"
#include "spool/inbox.h"
#include "spool/ledger.h"

struct steps {
	uint64_t *step;		/* rising, each once */
	size_t n, cap;
};
#define STEPS_DONE "done"
#define STEPS_INIT { NULL, 0, 0 }

int steps_add(struct steps *x, uint64_t step, struct err *e);
/* steps_text(x, text, from, e): adds the steps from `from' on that the lines of a
 * text are; what is no number is passed over. */
int steps_text(struct steps *x, const char *text, uint64_t from, struct err *e);
/* steps_list(x, s, run, below, from, e): adds the steps from `from' on whose
 * numbers are names in a directory of the run: below is "" for those that have
 * a directory, STEPS_DONE for those whose average was made.  steps_release(x)
 * also after a failure. */
int steps_list(struct steps *x, const struct inbox *s, const char *run,
    const char *below, uint64_t from, struct err *e);
void steps_release(struct steps *x);

/* steps_count(n, s, run, step, e): *n becomes the number of the step's accepted shards.
 * steps_files(l, s, run, step, e): appends the names of the files of the step's
 * accepted shards, in no order.  steps_devices(l, s, run, step, e): appends the
 * names of their devices, as far as a file has all of one.
 * steps_shards(l, s, run, step, have, e): appends the shards to the ledger l.  Those
 * that `have', or NULL, already names are not read again. */
int steps_count(size_t *n, const struct inbox *s, const char *run, uint64_t step,
    struct err *e);
int steps_files(struct array_names *l, const struct inbox *s, const char *run,
    uint64_t step, struct err *e);
int steps_devices(struct array_names *l, const struct inbox *s, const char *run,
    uint64_t step, struct err *e);
int steps_shards(struct ledger *l, const struct inbox *s, const char *run,
    uint64_t step, const struct ledger *have, struct err *e);

#endif
