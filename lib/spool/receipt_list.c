#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/reader.h"
#include "format/writer.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"

int
receipt_list_add(struct receipt_list *l, const struct receipt *r, const char *file,
    struct err *e)
{
	if (alloc_grow(&l->line, &l->cap, l->n + 1, sizeof(*l->line), e) < 0)
		return -ERR_SYS;
	l->line[l->n].r = *r;
	(void)snprintf(l->line[l->n].name, RECEIPT_LIST_NAME, "%s", file);
	l->n++;
	return 0;
}

/* Compare two receipts, or lines, which begin with their receipt. */
static int
receipt_list_order(const void *a, const void *b)
{
	const struct receipt *x = a, *y = b;

	return x->step != y->step ? (x->step < y->step ? -1 : 1) :
	    memcmp(x->device, y->device, SHARD_ID);
}

void
receipt_list_sort(struct receipt_list *l)
{
	if (l->n != 0)
		qsort(l->line, l->n, sizeof(*l->line), receipt_list_order);
}

struct receipt_list_line *
receipt_list_find(const struct receipt_list *l, const struct receipt *r)
{
	return l->n == 0 ? NULL :
	    bsearch(r, l->line, l->n, sizeof(*l->line), receipt_list_order);
}

void
receipt_list_release(struct receipt_list *l)
{
	alloc_free(l->line);
	memset(l, 0, sizeof(*l));
}

int
receipt_list_write(const struct receipt_list *l, const char *path, enum io_sync sync,
    struct err *e)
{
	struct writer *w;
	size_t i;
	int k = writer_file(&w, path, "spool", e);

	for (i = 0; i < l->n && k == 0; i++)
		k = writer_receipt(w, &l->line[i].r, e);
	if (k == 0)
		k = writer_end(w, sync, e);
	writer_free(w);
	return k;
}

int
receipt_list_read(struct receipt_list *l, const char *path, struct err *e)
{
	struct reader *r;
	int k = spool_reader(&r, path, e), there = k > 0;

	while (there && (k = reader_next(r, e)) > 0)
		if (k == READER_RCPT &&
		    (k = receipt_list_add(l, reader_receipt(r), "", e)) < 0)
			break;
	reader_free(r);
	if (k == -ERR_DATA && e != NULL) {
		e->kind = ERR_CORRUPT;
		(void)err_before(e, k, "'%s': ", path);
	}
	return k < 0 ? k : there;
}
