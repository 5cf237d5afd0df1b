#include "base/alloc.h"
#include "base/err.h"
#include "codec/exact.h"
#include "model/fold.h"
#include "model/model.h"

/* The codings of parts that are given old words. */
static int
fold_chain(const struct series *s, const struct series_part *list, size_t n,
    struct buf *body, struct buf *more, struct err *e)
{
	size_t i, all = 0;
	int r;

	for (i = 0; i < n; i++, all += (size_t)r)
		if ((r = series_fetch(s, &list[i], more, e)) < 0 ||
		    (r = exact_join(list[i].param, more->p, more->n, body, e)) < 0)
			return r;
	if (all > EXACT_CHAIN_MOST)
		return err_set(e, ERR_DATA, "limit: group %lu was changed %zu times, "
		    "and a patch can have %d", (unsigned long)list->group, all,
		    EXACT_CHAIN_MOST);
	return 0;
}

int
fold_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, unsigned char *new, struct buf *body,
    struct buf *more, uint8_t *param, struct err *e)
{
	size_t i = n;
	int r;

	body->n = 0;
	while (i > 0 && !list[i - 1].whole)
		i--;
	*param = list[n - 1].param;
	if (i == 0 && n == 1)
		return series_fetch(s, list, body, e);
	if (i == 0) {
		*param = (uint8_t)(span->form | EXACT_GIVEN | EXACT_CHAIN);
		return fold_chain(s, list, n, body, more, e);
	}
	if ((r = series_group(s, list + i - 1, n - i + 1, span, NULL, new, body,
	    e)) < 0 || i == n)
		return r;
	body->n = 0;
	r = exact_put(span->form, NULL, new, span->words, body, param, e);
	return r < 0 ? r : 0;
}
