/*
 * Write JSON to a file member by member, with commas, escapes and brackets. Nothing is
 * kept in memory, so a document may have any length.
 */
#ifndef ACE_EMIT_H
#define ACE_EMIT_H

#include <stdint.h>
#include <stdio.h>

enum { EMIT_DEPTH = 8 };

struct emit {
	FILE *f;
	int depth;
	int used[EMIT_DEPTH + 1];	/* has members: write a comma before the next */
	char end[EMIT_DEPTH + 1];	/* the closing bracket */
};

void emit_init(struct emit *j, FILE *f);

/* Open an object or an array. In all functions key is the member's name, or NULL in an
 * array and at the top. bracket: '{' or '['. */
void emit_open(struct emit *j, const char *key, char bracket);
void emit_close(struct emit *j);

/* Write a string; bytes that are not UTF-8 and control characters become U+FFFD. */
void emit_string(struct emit *j, const char *key, const char *s);
void emit_bool(struct emit *j, const char *key, int v);
void emit_u64(struct emit *j, const char *key, uint64_t v);
/* Write the shortest decimal that restores the number, or null if it is not finite. */
void emit_f64(struct emit *j, const char *key, double v);
void emit_f32(struct emit *j, const char *key, float v);

/* Close all levels below that depth. */
void emit_unwind(struct emit *j, int depth);
/* Close everything and end the line: a document is one line. */
void emit_end(struct emit *j);

#endif
