/*
 * JSON, written as it comes: commas, escapes and brackets are dealt with here.
 * Nothing is kept, so a document may be of any length.
 */
#ifndef ACE_JSON_H
#define ACE_JSON_H

#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 8 };

struct json {
	FILE *f;
	int depth;
	int used[JSON_DEPTH + 1];	/* something stands there already */
	char end[JSON_DEPTH + 1];	/* the bracket that closes */
};

void json_init(struct json *j, FILE *f);

/* key: NULL in an array and at the top.  bracket: '{' or '['. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j);

/* Bytes that are not UTF-8, or that a terminal would obey, become U+FFFD. */
void json_string(struct json *j, const char *key, const char *s);
void json_bool(struct json *j, const char *key, int v);
void json_u64(struct json *j, const char *key, uint64_t v);
/* The shortest decimal that reads back as the same number; null when it is
 * not finite. */
void json_f64(struct json *j, const char *key, double v);
void json_f32(struct json *j, const char *key, float v);

/* json_unwind(j, depth): closes down to that depth, whatever is open. */
void json_unwind(struct json *j, int depth);
/* json_end(j): closes all and ends the line: one document a line. */
void json_end(struct json *j);

#endif
