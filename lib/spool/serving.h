/*
 * Which sandbox the programs are in that serve a spool.  Each leaves a line about
 * it in the file DIR/.sandbox.PROGRAM when it starts, and ace-status says it.
 */
#ifndef ACE_SERVING_H
#define ACE_SERVING_H

#include <stddef.h>

struct err;
struct inbox;

enum { SERVING_LINE = 96 };	/* bytes of the line, with the end */

/* serving_programs[i]: those that serve a spool; NULL ends it. */
extern const char *const serving_programs[];

/* serving_tell(s, program, says): leaves the line, where it is not there yet.
 * It is for people to see: what cannot be written is not said, and the program
 * goes on. */
void serving_tell(const struct inbox *s, const char *program, const char *says);

/* serving_read(s, program, out, e): 1 and the line, or 0: there is none, or it is
 * none that a program would leave; -ERR_SYS: there is no memory to look. */
int serving_read(const struct inbox *s, const char *program,
    char out[SERVING_LINE], struct err *e);

#endif
