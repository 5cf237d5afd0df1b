#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "base/io_share.h"
#include "base/pack.h"
#include "format/frame.h"
#include "format/reader_impl.h"

int
reader_open(struct reader **out, struct io *io, const struct reader_opts *o,
    struct err *e)
{
	struct reader *r = alloc_get(1, sizeof(*r), e);

	*out = NULL;
	if (r == NULL) {
		io_free(io);
		return -ERR_SYS;
	}
	if (o != NULL)
		r->o = *o;
	if (r->o.max_elements == 0)
		r->o.max_elements = SCHEMA_MAX_ELEMENTS;
	r->own_schema = (struct schema)SCHEMA_INIT;
	shard_init(&r->shard);
	r->digest = pack_sum_new(e);
	r->mark_digest = pack_sum_new(e);
	r->tally = alloc_get(1, sizeof(*r->tally), e);
	if (chain_init(&r->c, io, e) < 0 || r->digest == NULL ||
	    r->mark_digest == NULL || r->tally == NULL || buf_put(&r->prov, "", 1, e) < 0) {
		reader_free(r);
		return -ERR_SYS;
	}
	*out = r;
	return 0;
}

void
reader_free(struct reader *r)
{
	if (r == NULL)
		return;
	chain_release(&r->c);
	schema_release(&r->own_schema);
	shard_release(&r->shard);
	pack_sum_free(r->digest);
	pack_sum_free(r->mark_digest);
	alloc_free(r->tally);
	buf_release(&r->prov);
	buf_release(&r->table);
	alloc_free(r->data.rec);
	alloc_free(r);
}

const char *
reader_where(const struct reader *r, char buf[160])
{
	unsigned long long at = r->c.pos.offset;

	if (r->pos.at == AT_SHARD)
		(void)snprintf(buf, 160, "shard %lu '%.80s/%llu', at byte %llu",
		    (unsigned long)r->c.pos.n_shards, shard_device(&r->shard),
		    (unsigned long long)r->shard.step, at);
	else
		(void)snprintf(buf, 160, "at byte %llu", at);
	return buf;
}

const char *
reader_name(const struct reader *r)
{
	return io_name(r->c.io);
}

int
reader_blame(const struct reader *r, int k, struct err *e)
{
	return k == -ERR_DATA ? err_file(e, k, reader_name(r)) : k;
}

int
reader_place(const struct reader *r, int k, struct err *e)
{
	if (r->pos.at == AT_SHARD)
		return err_shard(e, k, r->c.pos.n_shards,
		    shard_device(&r->shard), r->shard.step, r->c.pos.offset);
	if (e != NULL && !e->has_byte) {
		e->byte = r->c.pos.offset;
		e->has_byte = 1;
	}
	return k;
}

const struct schema *
reader_schema(const struct reader *r)
{
	if (r->have_schema)
		return &r->own_schema;
	return r->o.schema;
}

void
reader_decoded(const struct reader *r, uint64_t nonzero)
{
	/* several threads may decode at a time, and sums have no order */
	(void)__atomic_fetch_add(&r->tally->records, 1, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&r->tally->nonzero, nonzero, __ATOMIC_RELAXED);
}

void
reader_digest_add(struct pack_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash)
{
	unsigned char b[16];

	bytes_set32(b, type);
	bytes_set32(b + 4, (uint32_t)wire_len);
	bytes_set64(b + 8, wire_hash);
	pack_sum_add(s, b, sizeof(b));
}

/* ---- events ---- */

static int
reader_begin(struct reader *r, struct err *e)
{
	int k = chain_begin(&r->c, e);

	if (k < 0)
		return k;
	if (k == 0) {
		r->pos.at = AT_DONE;
		return READER_END;
	}
	memset(&r->pos, 0, sizeof(r->pos));
	r->pos.at = AT_HEAD;
	reader_on_no_table(r);
	r->prov.n = 0;
	k = buf_put(&r->prov, "", 1, e);
	return k < 0 ? k : READER_HEAD;
}

static int
reader_step(struct reader *r, struct err *e)
{
	int k;

	for (;;) {
		if (r->pos.at == AT_START)
			return reader_begin(r, e);
		if ((k = chain_next(&r->c, e)) < 0)
			return k;
		if (k == 0) {
			if ((k = reader_on_tail(r, e)) < 0)
				return k;
			continue;
		}
		if (r->c.frame.shard_key != (r->pos.at == AT_SHARD ?
		    r->pos.key : 0) && r->c.frame.type != FRAME_SHRD)
			return chain_corrupt(&r->c, e, "frame of another shard");
		if ((k = reader_on_frame(r, e)) < 0)
			return k;
		/* what is of the stream is no event, but for receipts */
		if (k != READER_NOTE || r->pos.at == AT_SHARD)
			return k;
	}
}

int
reader_next(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at == AT_FAILED)
		return r->failed;
	if (r->pos.at == AT_DONE)
		return READER_END;
	k = reader_step(r, e);
	if (k < 0) {
		k = k == -ERR_DATA ? reader_place(r, k, e) : k;
		r->failed = k;
		r->pos.at = AT_FAILED;
	}
	return k;
}

const struct shard *
reader_shard(const struct reader *r)
{
	return r->c.pos.n_shards != 0 ? &r->shard : NULL;
}

const struct record *
reader_records(const struct reader *r, size_t *n)
{
	*n = r->data.n;
	return r->data.rec;
}

const struct chain_frame *
reader_frame(const struct reader *r)
{
	return &r->c.frame;
}

const struct shard_end *
reader_end_of_shard(const struct reader *r)
{
	return &r->end;
}

const char *
reader_provenance(const struct reader *r)
{
	return (const char *)r->prov.p;
}

int
reader_empty(const struct reader *r)
{
	return io_bytes(r->c.io) == 0;
}

int
reader_is_pipe(const struct reader *r)
{
	return io_is_pipe(r->c.io);
}

void
reader_patience(struct reader *r, double silence, double whole)
{
	io_patience(r->c.io, silence, whole);
}

int
reader_ready(struct reader *r)
{
	return io_ready(r->c.io, 0, NULL) > 0;
}

int
reader_can_seek(const struct reader *r)
{
	return io_can_seek(r->c.io);
}

int
reader_mark(struct reader *r, size_t limit, struct err *e)
{
	r->mark = r->pos;
	r->mark_tally = *r->tally;
	pack_sum_copy(r->mark_digest, r->digest);
	return chain_mark(&r->c, limit, e);
}

int
reader_rewind(struct reader *r, struct err *e)
{
	int k = chain_rewind(&r->c, e);

	if (k < 0)
		return k;
	r->pos = r->mark;
	*r->tally = r->mark_tally;
	pack_sum_copy(r->digest, r->mark_digest);
	return 0;
}

void
reader_share(struct reader *r, const struct io *to, int blind)
{
	r->c.blind = io_share(r->c.io, to) && blind;
}

void
reader_blind(struct reader *r)
{
	if (io_can_seek(r->c.io)) {
		r->c.blind = 1;
		io_sparse(r->c.io);
	}
}

int
reader_skim(struct reader *r, int on)
{
	int was = r->c.skim;

	r->c.skim = on;
	return was;
}

int
reader_fetch(struct reader *r, struct err *e)
{
	int k = chain_fetch(&r->c, e);

	return k == -ERR_DATA ? reader_place(r, k, e) : k;
}

int
reader_unknown(const struct reader *r)
{
	return r->c.unknown;
}

void
reader_loose(struct reader *r, reader_loose_fn *fn, void *arg)
{
	r->loose = fn;
	r->loose_arg = arg;
}

/* A frame that is neither: skipped, its schema taken.  *from: what is next. */
static int
reader_skip(struct reader *r, uint64_t *from, struct err *e)
{
	struct err own = ERR_INIT;
	int k = chain_next(&r->c, &own);

	*from = k > 0 ? io_bytes(r->c.io) : r->c.pos.offset + 1;
	if (k > 0 && r->c.frame.type == FRAME_SCHM) {
		if (r->have_schema)
			reader_on_no_table(r);
		if ((k = reader_on_table(r, &own)) < 0)
			reader_on_no_table(r);
	}
	return k < 0 && k != -ERR_DATA ? err_move(e, &own) : 0;
}

int
reader_recover(struct reader *r, uint64_t from, struct err *e)
{
	int k;

	while ((k = chain_find(&r->c, from, e)) > 0) {
		r->pos.at = AT_BODY;
		if (r->c.head.type == FRAME_HEAD)
			r->pos.at = AT_START;
		if (r->c.head.type == FRAME_HEAD ||
		    r->c.head.type == FRAME_SHRD) {
			if (!r->have_schema)
				reader_on_no_table(r);	/* a piece of one */
			return 1;
		}
		if ((k = reader_skip(r, &from, e)) < 0)
			return k;
	}
	return k;
}

uint64_t
reader_offset(const struct reader *r)
{
	return r->c.pos.offset;
}
