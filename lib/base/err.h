/*
 * Errors, as values.  The library never prints and never exits: a function
 * that fails returns -ERR_x and fills struct err; the program prints it once
 * and exits with x.  What went wrong, where and in which file are kept apart:
 * who knows one of them adds it on the way up, and err_format puts them
 * together.
 */
#ifndef ACE_ERR_H
#define ACE_ERR_H

#include <stdint.h>

/* The exit statuses of every program (ace(7), EXIT STATUS). */
enum {
	ERR_OK = 0,
	ERR_NO = 1,		/* the answer is no: verify, diff, check modes */
	ERR_USAGE = 2,		/* the call is wrong */
	ERR_DATA = 3,		/* the data is bad: a retry gives the same */
	ERR_SYS = 4,		/* the system failed: a retry may help */
	ERR_REFUSED = 5		/* refused by a rule, a quorum, a state */
};

/* The word that a message about bad data begins with (ace-stream(5)). */
enum err_kind {
	ERR_PLAIN,		/* no such word */
	ERR_CORRUPT, ERR_TRUNCATED, ERR_UNSUPPORTED, ERR_LIMIT, ERR_MISMATCH
};

enum { ERR_LINE = 768 };	/* bytes of a whole message */

struct err {
	int code;		/* ERR_x; ERR_OK: nothing went wrong yet */
	enum err_kind kind;
	int quiet;		/* fail without a word (a closed pipe) */
	int upstream;		/* somebody else failed first, and said why */
	int has_byte;		/* `byte' is known */
	uint64_t byte;		/* offset in the stream */
	uint64_t shard, step;	/* number in the stream, from 1; 0: in none */
	char device[84];	/* of that shard */
	char file[152];		/* "": not known */
	char text[400];		/* the message without kind and place */
};

#define ERR_INIT { .code = ERR_OK }

/*
 * err_set(e, code, fmt, ...): sets the error and returns -code, so that
 * `return err_set(e, ERR_DATA, ...)' is the whole error path.  A kind is
 * written in front of the format, "corrupt: ...".  The first error stays: one
 * that follows from it does not overwrite it.  e may be NULL, in all of these.
 */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* err_data(e, byte, fmt, ...): as err_set, ERR_DATA, at that byte of the
 * stream. */
int err_data(struct err *e, uint64_t byte, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* err_sys(e, fmt, ...): as err_set, ERR_SYS, with ": strerror(errno)" after it. */
int err_sys(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* More about an error that was set.  All return r.
 * err_before, err_after: words around its text.
 * err_shard: the shard of the stream that it is in, and the byte.
 * err_file: the file; one that was named before stays. */
int err_before(struct err *e, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_after(struct err *e, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_shard(struct err *e, int r, uint64_t shard, const char *device,
    uint64_t step, uint64_t byte);
int err_file(struct err *e, int r, const char *file);	/* NULL: none */

/* err_move(e, from): makes the error `from' of one of several tries the error of
 * the whole; returns its -code. */
int err_move(struct err *e, const struct err *from);
/* err_clear(e): forgets an error, where another way is tried next. */
void err_clear(struct err *e);

/* err_format(e, buf): "kind: text, shard 3 'edge1/42', at byte 18112, of
 * 'file'", without what is not known; "" when nothing went wrong.  Bytes that
 * a terminal would obey are replaced by '?'.  ERR_MSG is for an argument. */
const char *err_format(const struct err *e, char buf[ERR_LINE]);
#define ERR_MSG(e) err_format((e), (char[ERR_LINE]){ 0 })

#endif
