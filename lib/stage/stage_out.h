/*
 * The last stage of most chains: writes whatever it is given to a writer.
 */
#ifndef ACE_STAGE_OUT_H
#define ACE_STAGE_OUT_H

#include "stage/stage.h"

struct err;
struct writer;

/* stage_out_new(out, w, e): w stays the caller's until stage_free, which frees
 * it; also when this fails. */
int stage_out_new(struct stage **out, struct writer *w, struct err *e);

#endif
