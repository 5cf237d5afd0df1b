/*
 * A last stage that keeps the plan and nothing else: as text, for people and
 * for ace-select --plan.
 */
#ifndef ACE_STAGE_TEXT_H
#define ACE_STAGE_TEXT_H

#include "stage/stage.h"

struct err;
struct io;

/* stage_text_new(out, to, e): `to' is freed by stage_free, also when this
 * fails. */
int stage_text_new(struct stage **out, struct io *to, struct err *e);

#endif
