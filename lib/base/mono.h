/*
 * How time passes, whatever the wall clock does.
 */
#ifndef ACE_MONO_H
#define ACE_MONO_H

/* mono_now(): seconds since some moment. */
double mono_now(void);

#endif
