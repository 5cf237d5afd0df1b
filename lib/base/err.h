/*
 * Errors, as values.  The library never prints and never exits: a function
 * that fails returns -ERR_x and fills struct err with a message that is
 * complete as it stands; the program prints it once and exits with x.
 */
#ifndef ACE_ERR_H
#define ACE_ERR_H

/* The exit statuses of every program (ace(7), EXIT STATUS). */
enum {
	ERR_OK = 0,
	ERR_NO = 1,		/* the answer is no: verify, diff, check modes */
	ERR_USAGE = 2,		/* the call is wrong */
	ERR_DATA = 3,		/* the data is bad: a retry gives the same */
	ERR_SYS = 4,		/* the system failed: a retry may help */
	ERR_REFUSED = 5		/* refused by a rule, a quorum, a state */
};

struct err {
	char msg[512];
	int quiet;		/* fail without a word (a closed pipe) */
};

#define ERR_INIT { "", 0 }

/*
 * err_set(e, code, fmt, ...): message in, -code out, so that
 * `return err_set(e, ERR_DATA, ...)' is the whole error path.  The first
 * error stays: one that follows from it does not overwrite it.
 * Bytes that a terminal would obey are replaced by '?'.  e may be NULL.
 */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* err_sys(e, what): as err_set, ERR_SYS, with ": strerror(errno)" after it. */
int err_sys(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* err_clear(e): forget it, where a failure was only one of several tries. */
void err_clear(struct err *e);

#endif
