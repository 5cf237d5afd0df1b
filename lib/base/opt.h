/*
 * An option, said once: its row says what --help shows, what the option takes,
 * where that goes, and which of its files the sandbox leaves open.  What the
 * completions offer and what lint looks for is made from the same row.
 *
 *	static const struct opt rows[] = {
 *		{ 'T', "threads", "N", "by N threads",
 *		    OPT_U64(struct opts, threads, 1, 64), .def = "1" },
 *		{ 'o', "output", "FILE", "write FILE",
 *		    OPT_PATH(struct opts, output, OPT_WRITE) },
 *		OPT_SHARED(filter_in),
 *		OPT_END
 *	};
 */
#ifndef ACE_OPT_H
#define ACE_OPT_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct opt;

/* What an option takes, and as what it is kept. */
enum opt_type {
	OPT_IS_END,		/* no option: the end of the table */
	OPT_IS_ROWS,		/* none either: all of another table */
	OPT_IS_FLAG,		/* nothing; an int becomes value */
	OPT_IS_TEXT,		/* const char *, as it stands in argv */
	OPT_IS_U64, OPT_IS_UINT,	/* uint64_t or unsigned, lo to hi */
	OPT_IS_F64,		/* double, lo to hi */
	OPT_IS_SIZE,		/* uint64_t, bytes */
	OPT_IS_TIME,		/* double, seconds; at least lo */
	OPT_IS_RATE,		/* double, bit/s; at least lo, at most hi */
	OPT_IS_WORD,		/* int or an enum: the index in words */
	OPT_IS_CALL		/* what set makes of it */
};

/* The right to the file or directory that an option names. */
enum opt_right {
	OPT_NONE,		/* it names none */
	OPT_READ,		/* a file, or a directory and all in it */
	OPT_WRITE,		/* a file, which is made or replaced */
	OPT_REPLACE,		/* a file, which is read and replaced */
	OPT_DIR			/* a directory that is the program's own */
};

/* Takes an option's value, NULL for one that takes none, into o, the struct that
 * its table is for.  0, < 0 an error, or 1: all is done and the program ends. */
typedef int opt_set(void *o, const struct opt *row, const char *val,
    struct err *e);

union opt_limit {
	uint64_t u;
	double f;
};

struct opt {
	int letter;		/* 0: it has none */
	const char *name;	/* long name without dashes */
	const char *arg;	/* what it takes, in --help; NULL: nothing */
	const char *help;	/* one line; limits and default come behind it.
				 * NULL: its words; without words it is not shown */
	/* the rest is what the macros below say */
	enum opt_type type;
	size_t at;		/* offset in the struct that its table is for */
	enum opt_right right;
	union opt_limit lo, hi;	/* of a time and a rate hi may be 0: any */
	const char *const *words;	/* the only ones, or those to complete; */
	const char *(*word)(unsigned i);	/* or a function: NULL ends them */
	int several;		/* it takes several of them, by commas */
	int value;		/* of a flag; for set, what it likes */
	opt_set *set;		/* where it is no assignment, or not only that:
				 * called when that is done */
	const struct opt *rows;
	int shared;		/* rows are for the struct that the caller of
				 * opt_list says */
	const char *def;	/* the default, as a user would say it; NULL: what
				 * was there stays */
	const char *with;	/* the option without which it would mean nothing */
};

/* The offset of a field of struct S, which does not compile if its type is not
 * the pointer's. */
#define OPT_AT(S, field, pointer) \
	.at = _Generic(&((S *)0)->field, pointer: offsetof(S, field))

#define OPT_END { .type = OPT_IS_END }
/* All rows of another table: for the same struct, for a field of it, or for the
 * one that all programs share. */
#define OPT_ROWS(table) { .type = OPT_IS_ROWS, .rows = (table) }
#define OPT_PART(table, S, field) \
	{ .type = OPT_IS_ROWS, .rows = (table), .at = offsetof(S, field) }
#define OPT_SHARED(table) { .type = OPT_IS_ROWS, .rows = (table), .shared = 1 }

#define OPT_VALUE(S, field, v) \
	.type = OPT_IS_FLAG, OPT_AT(S, field, int *), .value = (v)
#define OPT_FLAG(S, field) OPT_VALUE(S, field, 1)
#define OPT_TEXT(S, field) .type = OPT_IS_TEXT, OPT_AT(S, field, const char **)
/* Without a right this does not compile. */
#define OPT_PATH(S, field, r) \
	OPT_TEXT(S, field), .right = (r) + 0 * sizeof(char[(r) != OPT_NONE ? 1 : -1])
#define OPT_U64(S, field, l, h) \
	.type = _Generic(&((S *)0)->field, uint64_t *: OPT_IS_U64, \
	    unsigned *: OPT_IS_UINT), \
	.at = offsetof(S, field), .lo.u = (l), .hi.u = (h)
#define OPT_F64(S, field, l, h) \
	.type = OPT_IS_F64, OPT_AT(S, field, double *), .lo.f = (l), .hi.f = (h)
#define OPT_SIZE(S, field) .type = OPT_IS_SIZE, OPT_AT(S, field, uint64_t *)
#define OPT_TIME(S, field) .type = OPT_IS_TIME, OPT_AT(S, field, double *)
#define OPT_RATE(S, field) .type = OPT_IS_RATE, OPT_AT(S, field, double *)
#define OPT_WORD(S, field, w) \
	.type = OPT_IS_WORD, .words = (w), .at = _Generic(&((S *)0)->field, \
	    int *: offsetof(S, field), unsigned *: offsetof(S, field))
#define OPT_CALL(fn) .type = OPT_IS_CALL, .set = (fn)

/* A row and the struct that it is for. */
struct opt_place {
	const struct opt *row;
	void *base;
};

/* opt_list(to, n, most, table, own, shared): puts the rows of a table, and of
 * those that it names, behind the n there are in to; returns how many there are
 * then.  own is what the table is for; NULL is an empty table. */
size_t opt_list(struct opt_place *to, size_t n, size_t most,
    const struct opt *table, void *own, void *shared);

/* opt_take(p, val, e): takes a value, as opt_set.  opt_set_to(p, val, what, e):
 * the same, of a row that is no option: what is its name for messages. */
int opt_take(const struct opt_place *p, const char *val, struct err *e);
int opt_set_to(const struct opt_place *p, const char *val, const char *what,
    struct err *e);

/* opt_named(table, name): the first row of that name in a table and those that it
 * names, or NULL. */
const struct opt *opt_named(const struct opt *table, const char *name);

/* opt_defaults(table, own, e): for who has no command line: writes the defaults
 * of a table's own rows. */
int opt_defaults(const struct opt *table, void *own, struct err *e);

/* opt_says(row, text, n): text char[n] becomes what --help says of a row, empty
 * if it does not show it. */
void opt_says(const struct opt *row, char *text, size_t n);

/* opt_row(row): prints a row for programs that read it, fields with tabs between:
 * "option", name, letter, argument, type, right, default, words (after a comma if
 * there may be several), help. */
void opt_row(const struct opt *row);

#endif
