#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/text.h"

int
text_clean(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += bytes_utf8((unsigned char)s[i]))
		if (bytes_unseen((const unsigned char *)s + i, n - i) != 0)
			return 0;
	return 1;
}

int
text_lines(const char *s, size_t n)
{
	size_t i, line = 0;

	for (i = 0; i < n; i++)
		if (s[i] == '\n') {
			if (!text_clean(s + line, i - line))
				return 0;
			line = i + 1;
		}
	return line == n;
}

static int
text_is_key(const char *s, size_t n)
{
	size_t i;

	if (n == 0 || n > TEXT_MAX_KEY)
		return 0;
	for (i = 0; i < n; i++)
		if (s[i] == '\0' || strchr("abcdefghijklmnopqrstuvwxyz"
		    "0123456789._-", s[i]) == NULL)
			return 0;
	return 1;
}

/* Return the index of key and set *found to 1, or return where to insert key and set *found
 * to 0. The search is binary, because the sender chooses how many keys there are. */
static size_t
text_find(const struct text_kv *kv, const char *key, int *found)
{
	size_t lo = 0, hi = kv->n, at;
	int c;

	*found = 0;
	while (lo < hi && !*found) {
		at = lo + (hi - lo) / 2;
		c = strcmp(kv->p[at].key, key);
		*found = c == 0;
		if (c < 0)
			lo = at + 1;
		else
			hi = at;
	}
	return hi;
}

int
text_setf(struct text_kv *kv, const char *key, struct err *e, const char *fmt, ...)
{
	char value[40];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return text_set(kv, key, value, e);
}

int
text_add(struct text_kv *to, const struct text_kv *from, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = text_set(to, from->p[i].key, from->p[i].value, e);
	return r;
}

const char *
text_get(const struct text_kv *kv, const char *key)
{
	int found;
	size_t i = text_find(kv, key, &found);

	return found ? kv->p[i].value : NULL;
}

static void
text_drop(struct text_kv *kv, size_t i)
{
	kv->bytes -= strlen(kv->p[i].key) + strlen(kv->p[i].value) + 2;
	alloc_free(kv->p[i].key);
	alloc_free(kv->p[i].value);
	memmove(&kv->p[i], &kv->p[i + 1], (kv->n - i - 1) * sizeof(kv->p[0]));
	kv->n--;
}

int
text_set(struct text_kv *kv, const char *key, const char *value, struct err *e)
{
	struct text_pair new;
	int found, r;
	size_t i = text_find(kv, key, &found);

	if (value == NULL) {
		if (found)
			text_drop(kv, i);
		return 0;
	}
	if (!text_is_key(key, strlen(key)))
		return err_set(e, ERR_DATA, "unsupported: key '%.64s%s': expected 1 to "
		    "%d characters of a-z, 0-9, '.', '_' and '-'", key,
		    strlen(key) > 64 ? "..." : "", TEXT_MAX_KEY);
	if (strlen(value) > 65535 || !text_clean(value, strlen(value)))
		return err_set(e, ERR_DATA, "unsupported: value of key '%s': expected at "
		    "most 65535 bytes of UTF-8 without control characters", key);
	if (found) {		/* replace the value in place */
		if ((new.value = alloc_dup(value, e)) == NULL)
			return -ERR_SYS;
		kv->bytes += strlen(value) - strlen(kv->p[i].value);
		alloc_free(kv->p[i].value);
		kv->p[i].value = new.value;
		return 0;
	}
	if ((r = alloc_grow(&kv->p, &kv->cap, kv->n + 1, sizeof(kv->p[0]), e)) < 0)
		return r;
	new.key = alloc_dup(key, e);
	new.value = alloc_dup(value, e);
	if (new.key == NULL || new.value == NULL) {
		alloc_free(new.key);
		alloc_free(new.value);
		return -ERR_SYS;
	}
	memmove(&kv->p[i + 1], &kv->p[i], (kv->n - i) * sizeof(kv->p[0]));
	kv->p[i] = new;
	kv->bytes += strlen(key) + strlen(value) + 2;
	kv->n++;
	return 0;
}

int
text_copy(struct text_kv *to, const struct text_kv *from, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int r = text_add(&kv, from, e);

	text_release(r == 0 ? to : &kv);
	if (r == 0)
		*to = kv;
	return r;
}

void
text_release(struct text_kv *kv)
{
	while (kv->n != 0)
		text_drop(kv, kv->n - 1);
	alloc_free(kv->p);
	*kv = (struct text_kv)TEXT_KV_INIT;
}

static int
text_large(size_t n, struct err *e)
{
	return n <= TEXT_MAX_KV ? 0 : err_set(e, ERR_DATA, "limit: the list of keys and values "
	    "has %zu bytes, expected at most %d", n, TEXT_MAX_KV);
}

int
text_encode(const struct text_kv *kv, struct buf *out, struct err *e)
{
	unsigned char head[4];
	size_t i, klen, vlen, start = out->n;
	int r;

	for (i = 0; i < kv->n; i++) {
		klen = strlen(kv->p[i].key);
		vlen = strlen(kv->p[i].value);
		bytes_set16(head, (uint16_t)klen);
		bytes_set16(head + 2, (uint16_t)vlen);
		if ((r = buf_put(out, head, 4, e)) < 0 ||
		    (r = buf_put(out, kv->p[i].key, klen, e)) < 0 ||
		    (r = buf_put(out, kv->p[i].value, vlen, e)) < 0)
			return r;
	}
	return text_large(out->n - start, e);
}

/* Append a pair, which must sort after all others. */
static int
text_append(struct text_kv *kv, const char *k, size_t klen, const char *v,
    size_t vlen, struct err *e)
{
	char key[TEXT_MAX_KEY + 1];
	char *value;
	int r;

	if (!text_is_key(k, klen) || !text_clean(v, vlen))
		return err_set(e, ERR_DATA, "corrupt: the list of keys and values is damaged");
	memcpy(key, k, klen);
	key[klen] = '\0';
	if (kv->n != 0 && strcmp(kv->p[kv->n - 1].key, key) >= 0)
		return err_set(e, ERR_DATA,
		    "corrupt: the keys of the list are not sorted or not unique");
	if ((value = alloc_get(vlen + 1, 1, e)) == NULL)
		return -ERR_SYS;
	memcpy(value, v, vlen);
	r = text_set(kv, key, value, e);
	alloc_free(value);
	return r;
}

int
text_decode(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e)
{
	struct bytes b = BYTES(p, n);
	int r = text_large(n, e);

	text_release(kv);
	while (b.at < n && r == 0) {
		size_t klen = bytes_u16(&b), vlen = bytes_u16(&b);
		const unsigned char *k = bytes_take(&b, klen);
		const unsigned char *v = bytes_take(&b, vlen);

		if (b.bad)
			r = err_set(e, ERR_DATA, "corrupt: the list of keys and values is damaged");
		else
			r = text_append(kv, (const char *)k, klen,
			    (const char *)v, vlen, e);
	}
	if (r < 0)
		text_release(kv);
	return r;
}

int
text_put_lines(const struct text_kv *kv, struct buf *out, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < kv->n && r == 0; i++) {
		if ((r = buf_put(out, kv->p[i].key, strlen(kv->p[i].key),
		    e)) < 0 || (r = buf_put(out, "=", 1, e)) < 0 ||
		    (r = buf_put(out, kv->p[i].value, strlen(kv->p[i].value),
		    e)) < 0)
			break;
		r = buf_put(out, "\n", 1, e);
	}
	return r;
}

int
text_get_lines(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e)
{
	const char *s = (const char *)p, *end = s + n, *nl, *eq;
	int r = text_large(n, e);

	text_release(kv);
	while (s < end && r == 0) {
		nl = memchr(s, '\n', (size_t)(end - s));
		eq = nl != NULL ? memchr(s, '=', (size_t)(nl - s)) : NULL;
		if (eq == NULL) {
			r = err_set(e, ERR_DATA, "corrupt: a line of keys and values "
			    "has no '=' or no line end");
			break;
		}
		r = text_append(kv, s, (size_t)(eq - s), eq + 1,
		    (size_t)(nl - eq - 1), e);
		s = nl + 1;
	}
	if (r < 0)
		text_release(kv);
	return r;
}
