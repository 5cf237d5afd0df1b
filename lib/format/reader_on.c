#include <string.h>

#include "base/err.h"
#include "base/pack.h"
#include "format/frame.h"
#include "format/note.h"
#include "format/reader_impl.h"
#include "format/receipt.h"

static int
reader_corrupt(struct reader *r, struct err *e, const char *what)
{
	return chain_corrupt(&r->c, e, what);
}

int
reader_on_table(struct reader *r, struct err *e)
{
	const struct chain_frame *f = &r->c.frame;
	int k;

	r->table_wire += f->wire_len;
	if (r->table.n == 0 && (k = schema_bytes(f->raw, f->raw_len,
	    r->o.max_elements, r->table_wire, &r->table_size, e)) < 0)
		return k;
	if (r->o.max_table != 0 && r->table_size > r->o.max_table)
		return err_set(e, ERR_DATA, "limit: a tensor table of %llu "
		    "bytes, at most %llu here",
		    (unsigned long long)r->table_size,
		    (unsigned long long)r->o.max_table);
	if (f->raw_len == 0 || f->raw_len > r->table_size - r->table.n)
		return reader_corrupt(r, e, "sizes in the schema");
	if ((k = buf_put(&r->table, f->raw, f->raw_len, e)) < 0)
		return k;
	if (r->table.n < r->table_size)
		return 0;
	k = schema_decode(&r->own_schema, r->table.p, r->table.n,
	    r->o.max_elements, r->table_wire, e);
	buf_release(&r->table);
	r->have_schema = k == 0;
	return k;
}

void
reader_on_no_table(struct reader *r)
{
	r->table.n = 0;
	r->table_wire = 0;
	r->have_schema = 0;
}

static int
reader_on_schema(struct reader *r, struct err *e)
{
	char why[256];
	int k;

	if (r->pos.at != AT_HEAD || r->have_schema || r->prov.n > 1)
		return reader_corrupt(r, e, "misplaced");
	if ((k = reader_on_table(r, e)) < 0 || !r->have_schema)
		return k;
	if (memcmp(r->own_schema.id, r->c.schema_id, 16) != 0) {
		r->have_schema = 0;
		return reader_corrupt(r, e, "schema is not the announced one");
	}
	if (r->o.schema != NULL && !r->o.any_model &&
	    schema_diff(r->o.schema, &r->own_schema, why) != 0) {
		r->have_schema = 0;
		return err_set(e, ERR_DATA, "mismatch: not of the model of "
		    "--schema: %.200s", why);
	}
	return 0;
}

static int
reader_on_shard(struct reader *r, struct err *e)
{
	const struct schema *s = reader_schema(r);
	int k;

	if (r->pos.at == AT_SHARD)
		return reader_corrupt(r, e, "shard inside a shard");
	if (r->table.n != 0)
		return reader_corrupt(r, e, "schema is not whole");
	if ((k = shard_decode(&r->shard, r->c.frame.raw, r->c.frame.raw_len, e)) < 0)
		return k;
	r->pos.key = shard_key(&r->shard);
	if (r->c.frame.shard_key != r->pos.key)
		return reader_corrupt(r, e, "shard key");
	r->pos.at = AT_SHARD;
	if (s == NULL)
		return err_set(e, ERR_DATA,
		    "mismatch: the stream has no schema of its own (--schema)");
	if (memcmp(r->shard.schema_id, s->id, 16) != 0)
		return err_set(e, ERR_DATA,
		    "mismatch: the shard's schema is not the stream's");
	memset(&r->pos.data, 0, sizeof(r->pos.data));
	memset(r->pos.noted, 0, sizeof(r->pos.noted));
	*r->tally = (struct reader_tally){ 0, 0 };
	pack_sum_reset(r->digest);
	reader_digest_add(r->digest, FRAME_SHRD, r->c.frame.wire_len,
	    r->c.frame.wire_hash);
	return READER_SHARD;
}

static int
reader_on_data(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "outside a shard");
	if ((k = data_decode(&r->data, &r->pos.data, &r->c, reader_schema(r),
	    e)) < 0)
		return k;
	reader_digest_add(r->digest, FRAME_DATA, r->c.frame.wire_len,
	    r->c.frame.wire_hash);
	return READER_DATA;
}

static int
reader_on_send(struct reader *r, struct err *e)
{
	const struct data_pos *d = &r->pos.data;
	unsigned char digest[16];
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "outside a shard");
	if ((k = shard_end_decode(&r->end, r->c.frame.raw, r->c.frame.raw_len,
	    e)) < 0)
		return k;
	if (r->end.status == SHARD_ABORTED)
		return chain_aborted(&r->c, e);
	pack_sum_get(r->digest, digest);
	if (memcmp(digest, r->end.digest, 16) != 0)
		return reader_corrupt(r, e, "digest of the shard");
	if (r->end.n_data != d->frames || r->end.n_records != d->records ||
	    r->end.raw != d->raw || r->end.wire != d->wire)
		return reader_corrupt(r, e, "counts of the shard");
	if (r->tally->records == d->records &&
	    r->tally->nonzero != r->end.sums.nonzero)
		return reader_corrupt(r, e, "count of values that are not 0");
	r->pos.at = AT_BODY;
	return READER_SEND;
}

static int
reader_on_prov(struct reader *r, struct err *e)
{
	const char *s = (const char *)r->c.frame.raw;
	size_t n = r->c.frame.raw_len;

	if (r->pos.at != AT_HEAD || r->prov.n > 1 || r->table.n != 0)
		return reader_corrupt(r, e, "misplaced");
	if (n > TEXT_MAX_KV)
		return err_set(e, ERR_DATA, "limit: provenance over 64 KiB");
	if (!text_lines(s, n))
		return reader_corrupt(r, e, "text");
	r->prov.n--;
	if (buf_put(&r->prov, s, n, e) < 0 || buf_put(&r->prov, "", 1, e) < 0)
		return -ERR_SYS;
	return READER_NOTE;
}

/* Ranges of one type rise, so that none is spoken of twice. */
static int
reader_on_range(struct reader *r, size_t which, uint32_t entry, struct err *e)
{
	struct note note;
	int k = note_get(&note, r->c.frame.raw, r->c.frame.raw_len, entry,
	    reader_schema(r)->ngroups, e);

	if (k < 0)
		return k;
	if (note.first < r->pos.noted[which])
		return reader_corrupt(r, e, "groups do not rise");
	r->pos.noted[which] = (uint64_t)note.first + note.n;
	return READER_NOTE;
}

static int
reader_on_note(struct reader *r, struct err *e)
{
	uint32_t type = r->c.frame.type;
	int k;

	if (r->pos.at != AT_SHARD) {
		if (frame_of_shard(type))
			return reader_corrupt(r, e, "outside a shard");
		if (r->table.n != 0)
			return reader_corrupt(r, e, "schema is not whole");
		r->pos.at = AT_BODY;
		k = r->loose != NULL ? r->loose(r->loose_arg, r, e) : 0;
		return k < 0 ? k : READER_NOTE;
	}
	if (type == FRAME_STAT)
		return reader_on_range(r, 0, NOTE_STAT, e);
	if (type == FRAME_SCOR)
		return reader_on_range(r, 1, NOTE_SCORE, e);
	if (type == FRAME_PLAN)
		return reader_on_range(r, 2, NOTE_PLAN, e);
	return READER_NOTE;
}

int
reader_on_frame(struct reader *r, struct err *e)
{
	struct receipt receipt;
	char name[16];
	int k;

	/* the digest is over bytes on the wire: of these there is one form */
	if ((r->c.frame.flags & FRAME_LZ4) != 0 &&
	    (r->c.frame.type == FRAME_SHRD || r->c.frame.type == FRAME_SEND ||
	    r->c.frame.type == FRAME_RCPT))
		return reader_corrupt(r, e, "may not be LZ4");
	switch (r->c.frame.type) {
	case FRAME_SCHM:
		return (k = reader_on_schema(r, e)) < 0 ? k : READER_NOTE;
	case FRAME_SHRD:
		return reader_on_shard(r, e);
	case FRAME_DATA:
		return reader_on_data(r, e);
	case FRAME_SEND:
		return reader_on_send(r, e);
	case FRAME_PROV:
		return reader_on_prov(r, e);
	case FRAME_RCPT:
		if (r->pos.at == AT_SHARD)
			return reader_corrupt(r, e, "inside a shard");
		if (r->table.n != 0)
			return reader_corrupt(r, e, "schema is not whole");
		if ((k = receipt_decode(&receipt, r->c.frame.raw,
		    r->c.frame.raw_len, e)) < 0)
			return k;
		r->pos.at = AT_BODY;
		return READER_RCPT;
	default:
		if (frame_ancillary(r->c.frame.type))
			return reader_on_note(r, e);
		return err_set(e, ERR_DATA, "unsupported: critical frame %s",
		    frame_name(r->c.frame.type, name));
	}
}

int
reader_on_tail(struct reader *r, struct err *e)
{
	if (r->pos.at == AT_SHARD)
		return err_set(e, ERR_DATA, "truncated: no end of the stream");
	if (r->table.n != 0)
		return reader_corrupt(r, e, "schema is not whole");
	r->pos.at = AT_START;
	return 0;
}
