/*
 * An option is defined once.  Its row has the text of --help, what the option takes,
 * where the value goes, and whether it names a file that the sandbox must allow.  The
 * completions and the checks of lint are made from the same row.
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

/* Type of an option's value, and of the field that stores it. */
enum opt_type {
	OPT_IS_END,		/* the end of the table */
	OPT_IS_ROWS,		/* stands for all rows of another table */
	OPT_IS_FLAG,		/* no value; sets an int to the row's `value' */
	OPT_IS_TEXT,		/* const char *, as in argv */
	OPT_IS_U64, OPT_IS_UINT,	/* uint64_t or unsigned, lo to hi */
	OPT_IS_F64,		/* double, lo to hi */
	OPT_IS_SIZE,		/* uint64_t, bytes */
	OPT_IS_TIME,		/* double, seconds; lo to hi */
	OPT_IS_RATE,		/* double, bit/s; lo to hi */
	OPT_IS_WORD,		/* int or enum: index in the row's `words' */
	OPT_IS_CALL		/* the row's `set' stores the value */
};

/* The access that a program needs to the file or directory that an option names. */
enum opt_right {
	OPT_NONE,		/* the option names no file */
	OPT_READ,		/* a file, or a directory with all its contents */
	OPT_WRITE,		/* a file that is created or replaced */
	OPT_REPLACE,		/* a file that is read and replaced */
	OPT_DIR			/* the program's own directory */
};

/* Store val, an option's value (NULL if it takes none), in o, the struct of its table.
 * Return 0, an error < 0, or 1 if all is done and the program ends. */
typedef int opt_set(void *o, const struct opt *row, const char *val, struct err *e);

union opt_limit {
	uint64_t u;
	double f;
};

struct opt {
	int letter;		/* 0: no short option */
	const char *name;	/* long name without dashes */
	const char *arg;	/* the value's name in --help; NULL: no value */
	/* one line, to which limits (opt_limits) and default are added.  NULL: the words are
	 * listed; without words and default the option is hidden */
	const char *help;
	/* the macros below set some of the rest; a row names the others */
	enum opt_type type;
	size_t at;		/* offset of the field in the table's struct */
	enum opt_right right;
	union opt_limit lo, hi;	/* hi of a time or rate may be 0: no limit */
	const char *const *words;	/* valid values, or those that shells complete */
	const char *(*word)(unsigned i);	/* or returns word i, NULL after the last */
	int several;		/* 1: several values, separated by commas */
	int value;		/* what a flag sets; `set' may use it freely */
	opt_set *set;		/* called after the assignment, or instead */
	const struct opt *rows;
	int shared;		/* 1: the rows fill opt_list's `shared'; 0: its `own' */
	/* default, as users write it; NULL: keep the old value */
	const char *def;
	const char *with;	/* the option is refused without this one */
};

/* The offset of a field of struct S.  If its address is not of type `pointer', this does not
 * compile. */
#define OPT_AT(S, field, pointer) \
	.at = _Generic(&((S *)0)->field, pointer: offsetof(S, field))

#define OPT_END { .type = OPT_IS_END }
/* All rows of another table: for the same struct, for one of its fields, or for opt_list's
 * `shared' (the struct filter of a program that has one). */
#define OPT_ROWS(table) { .type = OPT_IS_ROWS, .rows = (table) }
#define OPT_PART(table, S, field) \
	{ .type = OPT_IS_ROWS, .rows = (table), .at = offsetof(S, field) }
#define OPT_SHARED(table) { .type = OPT_IS_ROWS, .rows = (table), .shared = 1 }

#define OPT_VALUE(S, field, v) \
	.type = OPT_IS_FLAG, OPT_AT(S, field, int *), .value = (v)
#define OPT_FLAG(S, field) OPT_VALUE(S, field, 1)
#define OPT_TEXT(S, field) .type = OPT_IS_TEXT, OPT_AT(S, field, const char **)
/* OPT_PATH does not compile if r is OPT_NONE. */
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

/* A row and the struct that it sets. */
struct opt_place {
	const struct opt *row;
	void *base;
};

/* Append the rows of a table, and of the tables that it names, to the n rows in to[most].  Drop
 * rows that do not fit.  Return the new number.  own: the table's struct; shared: that of
 * OPT_SHARED rows; table NULL is empty. */
size_t opt_list(struct opt_place *to, size_t n, size_t most,
    const struct opt *table, void *own, void *shared);

/* opt_take: set a value; return what opt_set returns.  opt_set_to: do the same for a row that
 * is not an option; `what' is the row's name in messages. */
int opt_take(const struct opt_place *p, const char *val, struct err *e);
int opt_set_to(const struct opt_place *p, const char *val, const char *what,
    struct err *e);

/* Set the rows of a table, in their order, to the values of a list separated by commas.
 * Return the number of values or an error.  `what' is the list's name in messages. */
int opt_items(const struct opt *table, void *own, const char *list, const char *what,
    struct err *e);

/* Return the first row of that name in a table and the tables that it names, or NULL. */
const struct opt *opt_named(const struct opt *table, const char *name);

/* Set the defaults of a table's own rows, for callers without a command line. */
int opt_defaults(const struct opt *table, void *own, struct err *e);

/* Write to text[n] what --help prints about a row; "" if it is hidden. */
void opt_says(const struct opt *row, char *text, size_t n);

/* Print a row for programs, fields separated by tabs: "option", name, letter, argument,
 * type, right, default, words (comma first if several are allowed), help. */
void opt_row(const struct opt *row);

#endif
