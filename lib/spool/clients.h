/*
 * Limits on the connections that a spool serves at the same time, of all devices together
 * and of each device.  A connection locks one byte of the file DIR/.clients per limit; the
 * kernel unlocks them when the last process of the connection ends, however it ends.
 */
#ifndef ACE_CLIENTS_H
#define ACE_CLIENTS_H

#include <stdint.h>

struct err;
struct spool;

enum { CLIENTS_LIMIT = 1 << 16 };	/* upper bound of `most' and `each' */

/* clients_open(s, fd, e): open DIR/.clients; make it if it is absent.  The file marks DIR
 * as a spool before there is a run.  *fd is -1 after a failure. */
int clients_open(const struct spool *s, int *fd, struct err *e);

/* clients_enter(fd, most, device, each, e): take one of `most' places of the spool, and,
 * unless device is NULL, one of `each' places of the device.  The places are free again
 * when all processes that have fd have closed it.  -ERR_REFUSED: no place is free. */
int clients_enter(int fd, uint64_t most, const char *device, uint64_t each, struct err *e);

#endif
