/*
 * Limits on the connections that a spool serves at the same time, of all devices together
 * and of each device.  A connection holds a lock on a byte of the file DIR/.clients, which
 * the kernel releases when the last process of the connection ends, however it ends.
 */
#ifndef ACE_CLIENTS_H
#define ACE_CLIENTS_H

#include <stdint.h>

struct err;
struct spool;

enum { CLIENTS_LIMIT = 1 << 16 };

/* clients_open(s, fd, e): open DIR/.clients; make it if it is absent.  The file marks DIR
 * as a spool before there is a run. */
int clients_open(const struct spool *s, int *fd, struct err *e);

/* clients_enter(s, most, device, each, fd, e): take one of `most' places of the spool,
 * and, unless device is NULL, one of `each' places of the device.  The places are free again
 * when all processes that have *fd have closed it.  -ERR_REFUSED: no place is free. */
int clients_enter(const struct spool *s, uint64_t most, const char *device,
    uint64_t each, int *fd, struct err *e);

/* clients_sums(s, fd, e): announce that ace-aggregate works on the spool, until *fd is
 * closed.  clients_summed(s): return 1 if an ace-aggregate works on the spool, or if this
 * cannot be found out. */
int clients_sums(const struct spool *s, int *fd, struct err *e);
int clients_summed(const struct spool *s);

/* clients_sends(fd, device, others, e): announce that a shard of the device is being
 * received, until clients_sent is called or fd (of clients_open) is closed.  *others
 * becomes the number of other shards of the device that are being received. */
int clients_sends(int fd, const char *device, uint64_t *others, struct err *e);
void clients_sent(int fd, const char *device);

/* At its start each program that serves a spool writes a line about its sandbox into
 * the file DIR/.sandbox.PROGRAM, for ace-status. */
enum { CLIENTS_NOTE = 96 };	/* size of the line with its terminating 0 */

/* The programs that serve a spool; NULL ends the list. */
extern const char *const clients_programs[];

/* clients_note(s, program, says): write `says' as the program's line, unless the file has
 * it already.  Errors are ignored, since the line is only for people to read. */
void clients_note(const struct spool *s, const char *program, const char *says);

/* clients_noted(s, program, out, e): read the program's line.  Return 1, or 0 if it is
 * absent or is not a line that clients_note writes; -ERR_SYS: out of memory. */
int clients_noted(const struct spool *s, const char *program,
    char out[CLIENTS_NOTE], struct err *e);

#endif
