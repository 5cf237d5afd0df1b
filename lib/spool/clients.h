/*
 * How many connections a spool serves at a time: each takes a place of the
 * spool and, where it is known whose it is, one of its device.  A place is a
 * locked byte of the file DIR/.clients, so that it is free again when the
 * processes of the connection have ended, however they did.
 */
#ifndef ACE_CLIENTS_H
#define ACE_CLIENTS_H

#include <stdint.h>

struct err;
struct inbox;

enum { CLIENTS_LIMIT = 1 << 16 };

/* clients_enter(s, most, device, each, fd, e): takes one of `most' places, and
 * one of the device's `each'; device NULL: anybody's.  The places are free again
 * once *fd is closed, by all processes that have it.  -ERR_REFUSED: none is
 * free. */
int clients_enter(const struct inbox *s, uint64_t most, const char *device,
    uint64_t each, int *fd, struct err *e);

/* clients_sums(s, run, fd, e): says that ace-aggregate works on this run, until
 * *fd is closed.  clients_summed(s, run): does one?  1 also where that cannot be
 * known. */
int clients_sums(const struct inbox *s, const char *run, int *fd,
    struct err *e);
int clients_summed(const struct inbox *s, const char *run);

#endif
