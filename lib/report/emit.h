/*
 * JSON, written as it comes: commas, escapes and brackets are dealt with here.
 * Nothing is kept, so a document may be of any length.
 */
#ifndef ACE_EMIT_H
#define ACE_EMIT_H

#include <stdint.h>
#include <stdio.h>

enum { EMIT_DEPTH = 8 };

struct emit {
	FILE *f;
	int depth;
	int used[EMIT_DEPTH + 1];	/* something stands there already */
	char end[EMIT_DEPTH + 1];	/* the bracket that closes */
};

void emit_init(struct emit *j, FILE *f);

/* key: NULL in an array and at the top.  bracket: '{' or '['. */
void emit_open(struct emit *j, const char *key, char bracket);
void emit_close(struct emit *j);

/* Bytes that are not UTF-8, or that a terminal would obey, become U+FFFD. */
void emit_string(struct emit *j, const char *key, const char *s);
void emit_bool(struct emit *j, const char *key, int v);
void emit_u64(struct emit *j, const char *key, uint64_t v);
/* The shortest decimal that reads back as the same number; null when it is
 * not finite. */
void emit_f64(struct emit *j, const char *key, double v);
void emit_f32(struct emit *j, const char *key, float v);

/* emit_unwind(j, depth): closes down to that depth, whatever is open. */
void emit_unwind(struct emit *j, int depth);
/* emit_end(j): closes all and ends the line: one document a line. */
void emit_end(struct emit *j);

#endif
