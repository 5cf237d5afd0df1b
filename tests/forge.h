/*
 * Split a stream into frames, change some, and join them with correct checksums, digests,
 * lengths, offsets and numbers of frames, except those that the test keeps wrong.  So a reader
 * that refuses the result refuses it because of the change.
 *
 * For tests only: errors are assertions.
 */
#ifndef FORGE_H
#define FORGE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/lz4_block.h"
#include "format/frame.h"

enum { FORGE_MAX = 64 };

/* Fields of a frame that forge_seal must not correct. */
enum {
	KEEP_SEQ = 1, KEEP_ID = 2, KEEP_OFFSET = 4, KEEP_KEY = 8,
	KEEP_PAYLOAD_HASH = 16, KEEP_HEAD_HASH = 32, KEEP_LENGTHS = 64,
	KEEP_BODY = 128	/* schema's id in HEAD and SHRD; numbers and digest in SEND and TAIL */
};

struct forge_frame {
	unsigned char head[64];
	unsigned char *p;	/* payload; packed only if head has FRAME_LZ4 */
	size_t n, raw;		/* bytes of p; raw: bytes when unpacked (raw_len) */
	unsigned char pad;	/* byte that the padding consists of */
	unsigned keep;
};

struct forge {
	struct forge_frame f[FORGE_MAX];
	size_t n;
};

static inline uint32_t
forge_type(const struct forge_frame *f)
{
	return bytes_le32(f->head + 4);
}

static inline void
forge_payload(struct forge_frame *f, const void *p, size_t n)
{
	unsigned char *q = malloc(n + 1);

	assert(q != NULL);
	if (n != 0)
		memcpy(q, p, n);
	free(f->p);
	f->p = q;
	f->n = f->raw = n;
}

/* Split a valid stream of at most FORGE_MAX frames, and unpack their payloads. */
static inline void
forge_open(struct forge *s, const unsigned char *b, size_t n)
{
	size_t at = 0, wire, raw;
	struct forge_frame *f;

	memset(s, 0, sizeof(*s));
	while (at + 64 <= n && s->n < FORGE_MAX) {
		f = &s->f[s->n++];
		memcpy(f->head, b + at, 64);
		wire = bytes_le32(f->head + 16);
		raw = bytes_le32(f->head + 20);
		if ((f->head[8] & FRAME_LZ4) != 0) {
			f->p = calloc(raw + 1, 1);
			assert(f->p != NULL);
			assert(lz4_block_unpack(f->p, raw, b + at + 64, wire) == 0);
			f->n = f->raw = raw;
			f->head[8] &= (unsigned char)~FRAME_LZ4;
		} else {
			forge_payload(f, b + at + 64, wire);
		}
		at += 64 + wire + frame_padding(wire);
	}
	assert(at == n);
}

static inline void
forge_free(struct forge *s)
{
	while (s->n != 0)
		free(s->f[--s->n].p);
}

/* Return the i-th frame of a type, i from 0. */
static inline struct forge_frame *
forge_find(struct forge *s, uint32_t type, size_t i)
{
	size_t k;

	for (k = 0; k < s->n; k++)
		if (forge_type(&s->f[k]) == type && i-- == 0)
			return &s->f[k];
	assert(0);	/* no such frame */
	return NULL;
}

/* Insert a new frame before frame `at'. */
static inline struct forge_frame *
forge_insert(struct forge *s, size_t at, uint32_t type, const void *p, size_t n)
{
	struct forge_frame *f = &s->f[at];

	assert(s->n < FORGE_MAX && at <= s->n);
	memmove(f + 1, f, (s->n++ - at) * sizeof(*f));
	memset(f, 0, sizeof(*f));
	memcpy(f->head, s->f[at > 0 ? at - 1 : 1].head, 64);
	bytes_set32(f->head + 4, type);
	bytes_set16(f->head + 8, 0);
	forge_payload(f, p, n);
	return f;
}

static inline void
forge_delete(struct forge *s, size_t at)
{
	free(s->f[at].p);
	memmove(&s->f[at], &s->f[at + 1], (--s->n - at) * sizeof(s->f[0]));
}

static inline void
forge_swap(struct forge *s, size_t a, size_t b)
{
	struct forge_frame t = s->f[a];

	s->f[a] = s->f[b];
	s->f[b] = t;
}

/* Compute the schema's id and the shards' keys from the fields that they hash. */
static inline void
forge_ids(struct forge *s)
{
	unsigned char id[16] = { 0 }, key[40];
	struct buf table = BUF_INIT;
	struct forge_frame *f;
	uint64_t k = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (forge_type(&s->f[i]) == FRAME_SCHM &&
		    (s->f[i].head[8] & FRAME_LZ4) == 0)
			assert(buf_put(&table, s->f[i].p, s->f[i].n, NULL) == 0);
	if (table.n != 0)
		hash_128(table.p, table.n, id);
	buf_release(&table);
	for (i = 0; i < s->n; i++) {
		f = &s->f[i];
		if ((f->keep & KEEP_BODY) == 0 && id[0] + id[1] + id[2] != 0) {
			if (forge_type(f) == FRAME_HEAD && f->n >= 40)
				memcpy(f->p + 24, id, 16);
			if (forge_type(f) == FRAME_SHRD && f->n >= 56)
				memcpy(f->p + 40, id, 16);
		}
		if (forge_type(f) == FRAME_SHRD && f->n >= 40) {
			memcpy(key, f->p, 40);
			k = hash_64(key, 40);
		}
		if (forge_type(f) == FRAME_TAIL)
			k = 0;
		if ((f->keep & KEEP_KEY) == 0)
			bytes_set64(f->head + 32, k);
		if (forge_type(f) == FRAME_SEND)
			k = 0;
	}
}

/* Compute the number of DATA frames and the digest in SEND; see ace-stream(5). */
static inline void
forge_send(struct forge *s, size_t at)
{
	struct forge_frame *f = &s->f[at], *g;
	struct hash_sum *sum = hash_sum_new(NULL);
	unsigned char b[16];
	uint32_t n = 0;
	size_t i = at;

	assert(sum != NULL);
	while (i > 0 && forge_type(&s->f[i]) != FRAME_SHRD)
		i--;
	for (; i < at; i++) {
		g = &s->f[i];
		if (forge_type(g) != FRAME_SHRD && forge_type(g) != FRAME_DATA)
			continue;
		bytes_set32(b, forge_type(g));
		bytes_set32(b + 4, (uint32_t)g->n);
		bytes_set64(b + 8, hash_64(g->p, g->n));
		hash_sum_add(sum, b, sizeof(b));
		n += forge_type(g) == FRAME_DATA;
	}
	if (f->n >= 48) {
		bytes_set32(f->p, n);
		hash_sum_get(sum, f->p + 32);
	}
	hash_sum_free(sum);
}

static inline void
forge_tail(struct forge *s, size_t at, uint64_t offset, uint64_t raw)
{
	struct forge_frame *f = &s->f[at];
	struct hash_sum *sum = hash_sum_new(NULL);
	uint32_t shards = 0;
	size_t i;

	assert(sum != NULL && f->n >= 40);
	for (i = 0; i < at; i++) {
		hash_sum_add(sum, s->f[i].head, 64);
		shards += forge_type(&s->f[i]) == FRAME_SHRD;
	}
	bytes_set32(f->p, (uint32_t)at);
	bytes_set32(f->p + 4, shards);
	bytes_set64(f->p + 8, offset);
	hash_sum_get(sum, f->p + 16);
	bytes_set64(f->p + 32, raw);
	hash_sum_free(sum);
}

static inline void
forge_head(struct forge_frame *f, uint32_t seq, uint64_t offset)
{
	if ((f->keep & KEEP_LENGTHS) == 0) {
		bytes_set32(f->head + 16, (uint32_t)f->n);
		bytes_set32(f->head + 20, (uint32_t)f->raw);
	}
	if ((f->keep & KEEP_SEQ) == 0)
		bytes_set32(f->head + 12, seq);
	if ((f->keep & KEEP_OFFSET) == 0)
		bytes_set64(f->head + 48, offset);
	if ((f->keep & KEEP_PAYLOAD_HASH) == 0)
		bytes_set64(f->head + 40, hash_64(f->p, f->n));
	if ((f->keep & KEEP_HEAD_HASH) == 0)
		bytes_set64(f->head + 56, hash_64(f->head, 56));
}

/* Return the bytes of the joined stream, and set *n to their number. The caller frees them. */
static inline unsigned char *
forge_seal(struct forge *s, size_t *n)
{
	struct buf out = BUF_INIT;
	struct forge_frame *f;
	uint64_t raw = 0;
	size_t i;

	forge_ids(s);
	for (i = 0; i < s->n; i++) {
		f = &s->f[i];
		if (forge_type(f) == FRAME_SEND && (f->keep & KEEP_BODY) == 0)
			forge_send(s, i);
		if (forge_type(f) == FRAME_TAIL && (f->keep & KEEP_BODY) == 0)
			forge_tail(s, i, out.n, raw);
		forge_head(f, (uint32_t)i, out.n);
		raw += bytes_le32(f->head + 20);
		assert(buf_put(&out, f->head, 64, NULL) == 0);
		assert(buf_put(&out, f->p, f->n, NULL) == 0);
		for (size_t k = frame_padding(f->n); k != 0; k--)
			assert(buf_put(&out, &f->pad, 1, NULL) == 0);
	}
	*n = out.n;
	return out.p;
}

#endif
