/*
 * Errors as values. A function that fails does not print or exit, but returns -ERR_x and
 * fills struct err; the program prints it once (cli_exit) and exits with x.
 * Message, place and file are separate: callers add what they know, and err_format
 * combines them.
 */
#ifndef ACE_ERR_H
#define ACE_ERR_H

#include <stdint.h>

/* Errors, which are also the exit statuses of all programs (ace(7), EXIT STATUS). */
enum {
	ERR_OK = 0,
	ERR_NO = 1,		/* the answer is no, in modes that verify, compare or check */
	ERR_USAGE = 2,		/* the command line is wrong */
	ERR_DATA = 3,		/* bad data: the same input fails again */
	ERR_SYS = 4,		/* the system failed: a retry may help */
	ERR_REFUSED = 5		/* refused by a rule, a quorum or a state */
};

/* First word of a message about bad data (ace-stream(5)). */
enum err_kind {
	ERR_PLAIN,		/* a message without a kind */
	ERR_CORRUPT, ERR_TRUNCATED, ERR_UNSUPPORTED, ERR_LIMIT, ERR_MISMATCH
};

enum { ERR_LINE = 1200 };	/* size of a whole message */

struct err {
	int code;		/* ERR_x; ERR_OK: no error yet */
	enum err_kind kind;
	int quiet;		/* 1: fail without a message (a closed pipe) */
	int upstream;		/* 1: an earlier program in the pipe failed and said why */
	int has_byte;		/* 1: `byte' is known */
	uint64_t byte;		/* offset in the stream or file */
	uint64_t shard, step;	/* shard: number in the stream, from 1; 0: unknown */
	char device[84];	/* device of that shard */
	char file[152];		/* "": not known */
	char text[800];		/* message without kind and place */
};

#define ERR_INIT { .code = ERR_OK }

/* Set the error and return -code, so that `return err_set(e, ERR_DATA, ...)' is a whole
 * error path. A kind is the format's first word, as in "corrupt: ...". The first error is
 * kept. e may be NULL in all functions that change it. */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set with ERR_DATA, for an error at this byte of the stream. */
int err_data(struct err *e, uint64_t byte, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set with ERR_SYS; the message is followed by ": strerror(errno)". */
int err_sys(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Add to the error in e, and return r. err_before, err_after: add text around the
 * message. err_shard: set the shard's number, device and step, and the byte. err_file: set the
 * file, unless it is set already; err_format leaves it out if the text begins with its name. */
int err_before(struct err *e, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_after(struct err *e, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_shard(struct err *e, int r, uint64_t shard, const char *device,
    uint64_t step, uint64_t byte);
int err_file(struct err *e, int r, const char *file);	/* file NULL: add none */

/* Copy the error `from' to e, unless e has an error already. Return -from->code. */
int err_move(struct err *e, const struct err *from);
/* Clear an error before trying another way. */
void err_clear(struct err *e);

/* Return the error's kind as a word: "corrupt" and so on; "upstream" if an upstream program
 * failed; "" for a message without a kind. */
const char *err_kind_name(const struct err *e);
/* Format "kind: text, shard 3 'edge1/42', at byte 18112, file 'NAME'", without unknown
 * parts; "" if there is no error. Bytes of control characters (bytes_unseen) become '?'.
 * Return buf. ERR_MSG formats into a temporary buffer. */
const char *err_format(const struct err *e, char buf[ERR_LINE]);
#define ERR_MSG(e) err_format((e), (char[ERR_LINE]){ 0 })

#endif
