/*
 * A clock for measuring how long something takes, which setting the date and
 * time of the system does not change.
 */
#ifndef ACE_MONO_H
#define ACE_MONO_H

/* mono_now(): seconds since some fixed moment. */
double mono_now(void);

#endif
