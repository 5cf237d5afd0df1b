#include <string.h>

#include "format/reader.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "report/recover.h"

/* r is at the beginning of a shard.  Returns 1 when the shard is whole; r is
 * then back at its beginning. */
static int
recover_whole(struct reader *r, struct err *damage, struct err *e)
{
	int k;

	if ((k = reader_mark(r, 0, e)) < 0)
		return k;
	while ((k = reader_next(r, damage)) > 0)
		if (k == READER_SEND) {
			k = reader_rewind(r, e);
			return k < 0 ? k : 1;
		}
	return k == -ERR_DATA ? 0 : err_move(e, damage);
}

static int
recover_copy(struct reader *r, struct writer *w, struct err *e)
{
	struct shard s;
	int k;

	shard_init(&s);
	if ((k = writer_history(w, reader_provenance(r), e)) == 0 &&
	    (k = shard_copy(&s, reader_shard(r), e)) == 0) {
		s.flags |= SHARD_RECOVERED;
		k = writer_shard(w, &s, reader_schema(r), e);
	}
	shard_release(&s);
	return k < 0 ? k : filter_rest(r, w, e);
}

/* Until the chain breaks (*damage) or the file ends. */
static int
recover_run(struct recover *x, struct reader *r, struct writer *w,
    struct err *damage, struct err *e)
{
	int k;

	while ((k = reader_next(r, damage)) > 0) {
		if (k != READER_SHARD)
			continue;
		if ((k = recover_whole(r, damage, e)) <= 0)
			return k;
		if ((k = recover_copy(r, w, e)) < 0)
			return k;
		x->saved++;
	}
	if (k < 0 && k != -ERR_DATA)
		return err_move(e, damage);
	return 0;
}

int
recover_stream(struct recover *x, struct reader *r, struct writer *w,
    struct err *e)
{
	struct err damage;
	uint64_t from = 0;
	int k;

	memset(x, 0, sizeof(*x));
	filter_loose(r, w, 0);
	if (!reader_can_seek(r))
		return err_set(e, ERR_USAGE, "'%s' is not a file that can seek",
		    reader_name(r));
	do {
		/* whatever went wrong before, it is at `from' or behind it */
		damage = (struct err)ERR_INIT;
		if ((k = recover_run(x, r, w, &damage, e)) < 0)
			return k;
		if (damage.code == ERR_OK)
			return 0;
		if (reader_unknown(r))
			return err_move(e, &damage);
		if (x->damages++ == 0)
			x->first = damage;
		from = reader_offset(r) > from ? reader_offset(r) : from + 1;
		if ((k = reader_recover(r, from, e)) > 0)
			from = reader_offset(r);
	} while (k > 0);
	return k;
}
