#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/temp.h"
#include "format/writer.h"
#include "pipe/spill.h"

/* Writes r's shard as a whole stream; of its annotations only the policy and
 * the names are kept. */
static int
spill_copy(struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_shard(w, reader_shard(r), reader_schema(r), e);

	if (k < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND) {
			k = writer_send(w, &reader_end_of_shard(r)->sums, e);
			return k < 0 ? k : writer_finish(w, e);
		}
		if ((k == READER_DATA || (k == READER_NOTE &&
		    (reader_frame(r)->type == FRAME_POLI ||
		    reader_frame(r)->type == FRAME_MEMB))) &&
		    (k = writer_pass(w, r, e)) < 0)
			return k;
	}
	return reader_blame(r, k, e);
}

int
spill_put(struct spill *a, struct reader *from, uint64_t *at, struct err *e)
{
	struct writer *w;
	off_t end;
	int k;

	if (a->fd < 0 && (k = temp_open(&a->fd, e)) < 0) {
		a->fd = -1;
		return k;
	}
	if ((end = lseek(a->fd, 0, SEEK_CUR)) < 0)
		return err_sys(e, "<temporary>");
	*at = (uint64_t)end;
	if ((k = writer_fd(&w, a->fd, "ace-aggregate", e)) == 0)
		k = spill_copy(from, w, e);
	writer_free(w);
	return k;
}

int
spill_get(const struct spill *a, uint64_t at, struct reader **out,
    const struct reader_opts *o, struct err *e)
{
	struct io *io;
	int k;

	*out = NULL;
	if ((k = io_open_at(&io, a->fd, at, "<temporary>", e)) < 0 ||
	    (k = reader_open(out, io, o, e)) < 0)
		return k;
	k = reader_to_shard(*out, e);
	return k < 0 ? reader_blame(*out, k, e) : 0;
}

int
spill_empty(struct spill *a, struct err *e)
{
	if (a->fd >= 0 && (ftruncate(a->fd, 0) < 0 ||
	    lseek(a->fd, 0, SEEK_SET) < 0))
		return err_sys(e, "<temporary>");
	return 0;
}

void
spill_close(struct spill *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
}
