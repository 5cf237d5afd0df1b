/*
 * Write JSON to a file member by member, with commas, escapes and brackets. Nothing is
 * kept in memory, so a document may have any length.
 */
#ifndef ACE_JSON_OUT_H
#define ACE_JSON_OUT_H

#include <stdint.h>
#include <stdio.h>

enum { JSON_OUT_DEPTH = 8 };

struct json_out {
	FILE *f;
	int depth;
	int used[JSON_OUT_DEPTH + 1];	/* 1: write a comma before the next member */
	char end[JSON_OUT_DEPTH + 1];	/* closing bracket of each level */
};

void json_out_init(struct json_out *j, FILE *f);

/* Open an object or an array. In all functions key is the member's name, or NULL in an
 * array and at the top. bracket: '{' or '['. */
void json_out_open(struct json_out *j, const char *key, char bracket);
void json_out_close(struct json_out *j);

/* Write a string with JSON's escapes. Other bytes that text_clean refuses become U+FFFD. */
void json_out_string(struct json_out *j, const char *key, const char *s);
void json_out_bool(struct json_out *j, const char *key, int v);
void json_out_u64(struct json_out *j, const char *key, uint64_t v);
/* Write a short decimal that restores the number, or null if it is not finite. */
void json_out_f64(struct json_out *j, const char *key, double v);
void json_out_f32(struct json_out *j, const char *key, float v);

/* Close all levels deeper than `depth'. */
void json_out_unwind(struct json_out *j, int depth);
/* Close everything and end the line: a document is one line. */
void json_out_end(struct json_out *j);

#endif
