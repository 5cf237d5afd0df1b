/*
 * Who serves a spool.  How many connections at a time: each takes a place of the
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

/* clients_open(s, fd, e): opens the file, which is made by that, so that a spool is one
 * before a run is in it. */
int clients_open(const struct inbox *s, int *fd, struct err *e);

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

/* clients_sends(fd, device, others, e): says that a shard of the device is being
 * received, until clients_sent or until fd, of clients_open, is closed.  *others is how
 * many more there are. */
int clients_sends(int fd, const char *device, uint64_t *others, struct err *e);
void clients_sent(int fd, const char *device);

/* Each program that serves a spool leaves a line about the sandbox that it is in
 * in the file DIR/.sandbox.PROGRAM when it starts, and ace-status says it. */
enum { CLIENTS_NOTE = 96 };	/* bytes of the line, with the end */

/* clients_programs[i]: those that serve a spool; NULL ends it. */
extern const char *const clients_programs[];

/* clients_note(s, program, says): leaves the line, where it is not there yet.
 * It is for people to see: what cannot be written is not said, and the program
 * goes on. */
void clients_note(const struct inbox *s, const char *program, const char *says);

/* clients_noted(s, program, out, e): 1 and the line, or 0: there is none, or it is
 * none that a program would leave; -ERR_SYS: there is no memory to look. */
int clients_noted(const struct inbox *s, const char *program,
    char out[CLIENTS_NOTE], struct err *e);

#endif
