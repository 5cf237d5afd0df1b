#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/temp.h"
#include "format/writer.h"
#include "pipe/aside.h"

/* Writes r's shard as a whole stream; of its annotations only the policy and
 * the names are kept. */
static int
aside_copy(struct reader *r, struct writer *w, struct err *e)
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
aside_again(struct reader **out, int fd, const struct reader_opts *o,
    struct err *e)
{
	struct io *io;
	int k;

	reader_free(*out);
	*out = NULL;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "<temporary>");
	if ((k = io_open_fd(&io, fd, "<temporary>", e)) < 0 ||
	    (k = reader_open(out, io, o, e)) < 0)
		return k;
	while ((k = reader_next(*out, e)) > 0 && k != READER_SHARD)
		continue;
	return k < 0 ? reader_blame(*out, k, e) : 0;
}

int
aside_shard(struct reader **out, int *fd, struct reader *from,
    const struct reader_opts *o, struct err *e)
{
	struct writer_opts wo = { "ace-aggregate", NULL, 0 };
	struct writer *w;
	struct io *io;
	int k;

	*out = NULL;
	*fd = -1;
	if ((k = temp_open(fd, e)) < 0)
		return k;
	if ((k = io_create_fd(&io, *fd, "<temporary>", e)) == 0 &&
	    (k = writer_open(&w, io, &wo, e)) == 0) {
		k = aside_copy(from, w, e);
		writer_free(w);
	}
	return k < 0 ? k : aside_again(out, *fd, o, e);
}
