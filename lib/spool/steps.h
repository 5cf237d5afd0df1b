/*
 * The steps of a run that have an entry in the spool.
 */
#ifndef ACE_STEPS_H
#define ACE_STEPS_H

#include "spool/inbox.h"

struct steps {
	uint64_t *step;		/* rising, each once */
	size_t n, cap;
};
#define STEPS_INIT { NULL, 0, 0 }

int steps_add(struct steps *x, uint64_t step, struct err *e);
/* steps_text(x, text, from, e): adds the steps from `from' on that the lines of a
 * text are; what is no number is passed over. */
int steps_text(struct steps *x, const char *text, uint64_t from, struct err *e);
/* steps_list(x, s, run, below, from, e): adds the steps from `from' on whose
 * numbers are names in a directory of the run: below is "" for those that have
 * a directory, "old" for those whose directory was removed.  steps_release(x)
 * also after a failure. */
int steps_list(struct steps *x, const struct inbox *s, const char *run,
    const char *below, uint64_t from, struct err *e);
void steps_release(struct steps *x);

/* steps_manifest(s, run, step, l, e): 1 and l, for ledger_release, is the manifest
 * that lists the step's shards: its own, or, where the step was passed over, that of
 * the step whose average counts them.  It lists shards of other steps, too.  0: there
 * is none. */
struct ledger;
int steps_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e);
/* steps_into(s, run, step, into, e): 1 and the step whose manifest lists the shards
 * of this one, which is before `closed' and has no manifest; or 0. */
#define STEPS_INTO ".into"
int steps_into(const struct inbox *s, const char *run, uint64_t step,
    uint64_t *into, struct err *e);

#endif
