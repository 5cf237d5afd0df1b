/*
 * Lists of receipts in files: the manifest of a closed step (spool/manifest.h), and the
 * rejected shards of a device in a step.  A file is a stream of RCPT frames.
 */
#ifndef ACE_RECEIPT_LIST_H
#define ACE_RECEIPT_LIST_H

#include "base/io.h"
#include "format/receipt.h"

struct err;

enum { RECEIPT_LIST_NAME = 256 };
struct receipt_list {
	struct receipt_list_line {
		struct receipt r;		/* must be first for receipt_list_order */
		char name[RECEIPT_LIST_NAME];	/* name of the shard's file; "": not known */
	} *line;
	size_t n, cap;
};
void receipt_list_release(struct receipt_list *l);

/* receipt_list_add(l, r, file, e): append r and the name of its shard's file. */
int receipt_list_add(struct receipt_list *l, const struct receipt *r, const char *file,
    struct err *e);
/* receipt_list_sort(l): sort by step, then by device id.
 * receipt_list_find(l, r): return the line of a sorted list that has r's step and device,
 * or NULL. */
void receipt_list_sort(struct receipt_list *l);
struct receipt_list_line *receipt_list_find(const struct receipt_list *l,
    const struct receipt *r);
/* receipt_list_write: replace the file at path by the receipts, without the names.
 * receipt_list_read: append the receipts of a file.  Return 1, or 0 if it is absent. */
int receipt_list_write(const struct receipt_list *l, const char *path,
    enum io_sync sync, struct err *e);
int receipt_list_read(struct receipt_list *l, const char *path, struct err *e);

#endif
