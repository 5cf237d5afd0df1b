#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/array.h"
#include "format/shard.h"
#include "format/text.h"

enum { ARRAY_HEAD = 8 };		/* u32 count, u32 0 */

int
array_add(struct array_names *l, const char *s, struct err *e)
{
	if (alloc_grow(&l->p, &l->cap, l->n + 1, sizeof(*l->p), e) < 0 ||
	    (l->p[l->n] = alloc_dup(s, e)) == NULL)
		return -ERR_SYS;
	l->n++;
	return 0;
}

int
array_name(struct array_names *l, const char *s, size_t len, struct err *e)
{
	char name[SHARD_NAME + 1];

	if (len == 0 || len > SHARD_NAME || !text_clean(s, len))
		return err_set(e, ERR_DATA, "corrupt: the list of contributors has a name of %zu "
		    "B, expected 1 to %d B of UTF-8 without control characters", len, SHARD_NAME);
	memcpy(name, s, len);
	name[len] = '\0';
	return array_add(l, name, e);
}

int
array_get_names(struct array_names *l, const unsigned char *p, size_t n, struct err *e)
{
	struct bytes b = BYTES(p, n);
	uint32_t count = bytes_next32(&b), i;
	size_t len;
	const unsigned char *s;
	int r = 0;

	if (!bytes_zero(&b, 4))
		return err_set(e, ERR_DATA, "corrupt: the head of the list of "
		    "contributors is damaged");
	for (i = 0; i < count && r == 0; i++) {
		len = bytes_u16(&b);
		if ((s = bytes_take(&b, len)) == NULL || b.bad)
			break;
		r = array_name(l, (const char *)s, len, e);
		if (r == 0 && l->n > 1 && strcmp(l->p[l->n - 2], l->p[l->n - 1]) >= 0)
			break;
	}
	if (r == 0 && (i < count || b.bad || b.at != b.n))
		r = err_set(e, ERR_DATA, "corrupt: the list of contributors %s", b.bad ?
		    "is incomplete" : i < count ? "is not sorted or has a name twice" :
		    "has bytes after its end");
	return r;
}

static int
array_order(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

void
array_sort(struct array_names *l)
{
	if (l->n > 1)
		qsort(l->p, l->n, sizeof(*l->p), array_order);
}

int
array_put_names(struct array_names *l, struct buf *out, struct err *e)
{
	unsigned char head[ARRAY_HEAD] = { 0 };
	size_t i, len;
	int r;

	array_sort(l);
	bytes_set32(head, (uint32_t)l->n);
	r = buf_put(out, head, sizeof(head), e);
	for (i = 0; i < l->n && r == 0; i++) {
		len = strlen(l->p[i]);
		bytes_set16(head, (uint16_t)len);
		if ((r = buf_put(out, head, 2, e)) == 0)
			r = buf_put(out, l->p[i], len, e);
	}
	return r;
}

void
array_release(struct array_names *l)
{
	while (l->n != 0)
		alloc_free(l->p[--l->n]);
	alloc_free(l->p);
	*l = (struct array_names)ARRAY_NAMES_INIT;
}

int
array_put_times(const double *v, size_t n, struct buf *out, struct err *e)
{
	unsigned char *p;
	size_t i;
	int r = buf_room(out, ARRAY_HEAD + 8 * n, e);

	if (r < 0)
		return r;
	p = out->p + out->n;
	memset(p, 0, ARRAY_HEAD);
	bytes_set32(p, (uint32_t)n);
	for (i = 0; i < n; i++)
		bytes_set_f64(p + ARRAY_HEAD + 8 * i, v[i]);
	out->n += ARRAY_HEAD + 8 * n;
	return 0;
}

int
array_get_times(const unsigned char *p, size_t len, size_t n, double *v, struct err *e)
{
	struct bytes b = BYTES(p, len);
	uint32_t count = bytes_next32(&b);
	size_t i;
	int bad = !bytes_zero(&b, 4) || count != n || len - ARRAY_HEAD != 8 * n;

	for (i = 0; i < n && !bad; i++) {
		v[i] = bytes_f64(&b);
		bad = !(v[i] >= 0 && v[i] <= ARRAY_LONGEST);
	}
	return bad == 0 ? 0 :
	    err_set(e, ERR_DATA, "corrupt: the times of tensors: expected %zu "
	    "numbers from 0 to %g s, one for each tensor", n, ARRAY_LONGEST);
}
