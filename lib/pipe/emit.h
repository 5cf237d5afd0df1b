/*
 * Writes JSON to a file member by member, and takes care of commas, escapes
 * and brackets.  Nothing is kept in memory, so a document may have any length.
 */
#ifndef ACE_EMIT_H
#define ACE_EMIT_H

#include <stdint.h>
#include <stdio.h>

enum { EMIT_DEPTH = 8 };

struct emit {
	FILE *f;
	int depth;
	int used[EMIT_DEPTH + 1];	/* has a member already: a comma is next */
	char end[EMIT_DEPTH + 1];	/* the closing bracket */
};

void emit_init(struct emit *j, FILE *f);

/* Opens an object or an array.  Here and below, key is the member's name, or
 * NULL inside an array and at the top.  bracket: '{' or '['. */
void emit_open(struct emit *j, const char *key, char bracket);
void emit_close(struct emit *j);

/* Bytes that are not UTF-8, and control characters, which a terminal would
 * obey, are written as U+FFFD. */
void emit_string(struct emit *j, const char *key, const char *s);
void emit_bool(struct emit *j, const char *key, int v);
void emit_u64(struct emit *j, const char *key, uint64_t v);
/* Writes the shortest decimal that reads back as the same number, or null for
 * a number that is not finite. */
void emit_f64(struct emit *j, const char *key, double v);
void emit_f32(struct emit *j, const char *key, float v);

/* emit_unwind(j, depth): closes whatever is open below that depth. */
void emit_unwind(struct emit *j, int depth);
/* emit_end(j): closes everything and ends the line: a document is one line. */
void emit_end(struct emit *j);

#endif
