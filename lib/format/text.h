/* Text in streams: UTF-8 without control characters, and sorted key=value pairs. */
#ifndef ACE_TEXT_H
#define ACE_TEXT_H

#include <stddef.h>

#include "base/alloc.h"

struct err;

/* Return 1 if s[n] is valid UTF-8 without control or invisible characters (bytes_unseen). */
int text_clean(const char *s, size_t n);
/* Return 1 if s[n] consists of lines that text_clean accepts, each with a newline at its end. */
int text_lines(const char *s, size_t n);

/* Key/value pairs, sorted by key. Keys are [a-z0-9._-]{1,64}. */
enum { TEXT_MAX_KV = 64 * 1024, TEXT_MAX_KEY = 64 };
struct text_kv {
	struct text_pair {
		char *key, *value;
	} *p;
	size_t n, cap;
	size_t bytes;		/* of all keys and values, and 2 for each pair */
};
#define TEXT_KV_INIT { NULL, 0, 0, 0 }

/* Set a key to a copy of value; NULL removes the key. -ERR_DATA: key or value is invalid. */
int text_set(struct text_kv *kv, const char *key, const char *value, struct err *e);
/* Like text_set, with a formatted value, which is cut after 39 bytes. */
int text_setf(struct text_kv *kv, const char *key, struct err *e,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
const char *text_get(const struct text_kv *kv, const char *key);	/* NULL if absent */
/* Set all keys of `from' in `to'. */
int text_add(struct text_kv *to, const struct text_kv *from, struct err *e);
int text_copy(struct text_kv *to, const struct text_kv *from, struct err *e);
void text_release(struct text_kv *kv);

/* Encoded pairs: {u16 klen, u16 vlen, key, value}*, sorted, unique. Append them to out; decode
 * them in place of what kv has, or leave kv empty on errors. -ERR_DATA above TEXT_MAX_KV. */
int text_encode(const struct text_kv *kv, struct buf *out, struct err *e);
int text_decode(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e);

/* The same for lines "key=value\n", the form of pOLi frames. Only reading has a limit. */
int text_put_lines(const struct text_kv *kv, struct buf *out, struct err *e);
int text_get_lines(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e);

#endif
