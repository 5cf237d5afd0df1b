/*
 * A clock for measuring how long something takes, which setting the date and
 * time of the system does not change.
 */
#ifndef ACE_CLOCK_H
#define ACE_CLOCK_H

/* clock_now(): seconds since some fixed moment. */
double clock_now(void);

#endif
