/*
 * Changes to a valid stream for mkgolden; most break one rule, some break none.  Each takes a
 * number. A comment or a macro names its fields, if it has several, highest bits first.
 */
#ifndef ACE_BREAKS_H
#define ACE_BREAKS_H

#include <stdio.h>

#include "forge.h"
#include "lies.h"

enum { HEAD, SCHM, PROV, SHRD, NOTE, DATA, SEND, TAIL };

/* ---- frame headers ---- */

static inline void
head8(struct forge *s, unsigned long arg)	/* frame, byte, value */
{
	struct forge_frame *f = &s->f[arg >> 16];

	f->keep |= KEEP_SEQ | KEEP_ID | KEEP_OFFSET | KEEP_KEY | KEEP_LENGTHS |
	    KEEP_PAYLOAD_HASH;
	f->head[arg >> 8 & 255] = (unsigned char)arg;
}
#define HEAD8(frame, byte, value) head8, \
	(unsigned long)(frame) << 16 | (byte) << 8 | (value)

static inline void
head32(struct forge *s, unsigned long arg)	/* frame, byte, shift: value 2^shift - 1 */
{
	struct forge_frame *f = &s->f[arg >> 16];

	f->keep |= KEEP_LENGTHS | KEEP_SEQ | KEEP_OFFSET;
	bytes_set32(f->head + (arg >> 8 & 255),
	    (uint32_t)(((uint64_t)1 << (arg & 255)) - 1));
}
#define HEAD32(frame, byte, shift) head32, \
	(unsigned long)(frame) << 16 | (byte) << 8 | (shift)

/* Corrupt the shard's key in the header of frame `at'. */
static inline void
key(struct forge *s, unsigned long at)
{
	s->f[at].keep |= KEEP_KEY;
	s->f[at].head[32] ^= 0x55;
}

/* Corrupt kind and key: the message must say corrupt (the key), not unsupported (the kind). */
static inline void
key_first(struct forge *s, unsigned long kind)
{
	key(s, SHRD);
	s->f[SHRD].p[64] = (unsigned char)kind;
}

static inline void
no_id(struct forge *s, unsigned long arg)
{
	size_t i;

	(void)arg;
	for (i = 0; i < s->n; i++)
		memset(s->f[i].head + 24, 0, 8);
}

static inline void
raw_bomb(struct forge *s, unsigned long arg)
{
	struct forge_frame *f = &s->f[SCHM];

	f->head[8] |= FRAME_LZ4;
	f->raw = (size_t)1 << arg;
}

/* Store an LZ4 block of 64 KiB of zeros with arg as raw_len. */
static inline void
lz4_block(struct forge *s, unsigned long arg)
{
	static unsigned char zeros[65536], out[1024];
	struct forge_frame *f = &s->f[SCHM];
	size_t n = lz4_block_pack(out, sizeof(out), zeros, sizeof(zeros));

	assert(n != 0);
	forge_payload(f, out, n);
	f->head[8] |= FRAME_LZ4;
	f->raw = arg;
}

/* Compress the payload of a frame whose type forbids LZ4. */
static inline void
lz4_frame(struct forge *s, unsigned long at)
{
	struct forge_frame *f = &s->f[at];
	unsigned char out[1024];
	size_t n, raw = f->n;

	f->p = realloc(f->p, raw + 1);
	assert(f->p != NULL);
	n = lz4_block_pack(out, sizeof(out), f->p, raw);
	assert(n != 0);
	forge_payload(f, out, n);
	f->head[8] |= FRAME_LZ4;
	f->raw = raw;
	f->keep |= KEEP_BODY;
}

static inline void
padding(struct forge *s, unsigned long arg)
{
	s->f[SHRD].pad = (unsigned char)arg;
}

static inline void
hash(struct forge *s, unsigned long arg)
{
	s->f[DATA].keep |= (unsigned)arg;
	s->f[DATA].head[arg == KEEP_HEAD_HASH ? 56 : 40] ^= 1;
}

/* ---- change one byte, one number or one bit of a payload ---- */

static inline void
pay8(struct forge *s, unsigned long arg)
{
	struct forge_frame *f = &s->f[arg >> 24];

	assert((arg >> 8 & 0xffff) < f->n);
	f->keep |= KEEP_BODY;
	f->p[arg >> 8 & 0xffff] = (unsigned char)arg;
}
#define PAY8(frame, byte, value) pay8, \
	(unsigned long)(frame) << 24 | (unsigned long)(byte) << 8 | (value)

/* Compute all fields, then change one byte of the payload of TAIL, which is not corrected. */
static inline void
sealed8(struct forge *s, unsigned long arg)
{
	size_t n;

	free(forge_seal(s, &n));
	pay8(s, arg);
}
#define SEALED8(frame, byte, value) sealed8, \
	(unsigned long)(frame) << 24 | (unsigned long)(byte) << 8 | (value)

static inline void
pay64(struct forge *s, unsigned long arg)	/* frame, byte, shift: value 2^shift - 1 */
{
	struct forge_frame *f = &s->f[arg >> 24];

	f->keep |= KEEP_BODY;
	bytes_set64(f->p + (arg >> 8 & 0xffff), (arg & 255) == 64 ?
	    ~(uint64_t)0 : ((uint64_t)1 << (arg & 255)) - 1);
}
#define PAY64(frame, byte, shift) pay64, \
	(unsigned long)(frame) << 24 | (unsigned long)(byte) << 8 | (shift)

static inline void
cut_payload(struct forge *s, unsigned long arg)	/* frame, bytes to remove */
{
	struct forge_frame *f = &s->f[arg >> 16];

	f->keep |= KEEP_BODY;
	f->n -= arg & 0xffff;
	f->raw = f->n;
}
#define CUT(frame, bytes) cut_payload, (unsigned long)(frame) << 16 | (bytes)

static inline void
longer(struct forge *s, unsigned long arg)
{
	struct forge_frame *f = &s->f[arg];

	f->p = realloc(f->p, f->n + 8);
	assert(f->p != NULL);
	memset(f->p + f->n, 0, 8);
	f->n += 8;
	f->raw = f->n;
	f->keep |= KEEP_BODY;
}

/* ---- the grammar ---- */

static inline void
drop(struct forge *s, unsigned long at)
{
	forge_delete(s, at);
}

static inline void
twice(struct forge *s, unsigned long at)
{
	struct forge_frame f = s->f[at];

	if (at == SCHM)		/* keep the id of the single table in HEAD and SHRD */
		s->f[HEAD].keep = s->f[SHRD].keep = KEEP_BODY;
	(void)forge_insert(s, at + 1, forge_type(&f), f.p, f.n);
}

static inline void
move(struct forge *s, unsigned long arg)	/* from, to */
{
	size_t from = arg >> 8, to = arg & 255;

	for (; from < to; from++)
		forge_swap(s, from, from + 1);
	for (; from > to; from--)
		forge_swap(s, from, from - 1);
}
#define MOVE(from, to) move, (unsigned long)(from) << 8 | (to)

static inline void
stranger(struct forge *s, unsigned long type)
{
	(void)forge_insert(s, DATA, (uint32_t)type, "?", 1);
}

static inline void
between(struct forge *s, unsigned long type)
{
	(void)forge_insert(s, SHRD, (uint32_t)type, "?", 1);
}

/* Insert a receipt: inside the shard if `at' is 0, otherwise before the shard, with byte `at'
 * of its payload set to 1 (to 99 if `at' is 44). */
static inline void
receipt(struct forge *s, unsigned long at)
{
	unsigned char b[80] = { 0 };

	(void)forge_insert(s, at == 0 ? DATA : SHRD, FRAME_RCPT, b,
	    sizeof(b));
	if (at != 0)
		s->f[SHRD].p[at] = at == 44 ? 99 : 1;
}

static inline void
lz4_receipt(struct forge *s, unsigned long arg)
{
	(void)arg;
	receipt(s, 48);
	lz4_frame(s, SHRD);
}

/* Insert a receipt whose reason contains an escape sequence for terminals. */
static inline void
reason(struct forge *s, unsigned long arg)
{
	unsigned char b[84] = { 0 };

	(void)arg;
	memcpy(b + 80, "\033[2J", 4);
	(void)forge_insert(s, SHRD, FRAME_RCPT, b, sizeof(b));
}

/* Insert two annotations of this frame type for the only group. */
static inline void
again(struct forge *s, unsigned long type)
{
	unsigned char b[16 + 152] = { 0 };
	size_t n = type == FRAME_STAT ? 152 : 4;

	b[4] = 1;
	b[8] = (unsigned char)n;
	b[16] = type == FRAME_STAT ? 16 : 0;
	(void)forge_insert(s, DATA, (uint32_t)type, b, 16 + n);
	(void)forge_insert(s, DATA, (uint32_t)type, b, 16 + n);
}

/* Insert a plan for the only group; `which' selects its fault. */
static inline void
plan(struct forge *s, unsigned long which)
{
	unsigned char b[40] = { 0 };

	bytes_set32(b + 4, 1);		/* groups */
	bytes_set32(b + 8, 8);
	switch (which) {
	case 1: bytes_set16(b + 32, 15); break;
	case 2: b[35] = 1; break;
	case 3: bytes_set32(b + 36, 0x7fc00000); break;
	case 4: bytes_set32(b, 1); break;
	case 5: bytes_set64(b + 24, (uint64_t)0xbff << 52); break;
	case 6: b[12] = 1; break;
	case 7: bytes_set16(b + 32, 1 << 14); break;
	case 9: bytes_set64(b + 24, (uint64_t)0x7ff << 52); break;
	case 10: bytes_set16(b + 32, 4); b[34] = 1; break;
	case 11: bytes_set16(b + 32, 8); break;
	case 12: bytes_set16(b + 32, 11); b[34] = 128 + 65; break;
	default: break;
	}
	(void)forge_insert(s, DATA, FRAME_PLAN, b, sizeof(b));
	if (which == 0)
		(void)forge_insert(s, DATA, FRAME_PLAN, b, sizeof(b));
}

/* Insert an annotation of each type except MODL, and three of unknown types. */
static inline void
annotated(struct forge *s, unsigned long arg)
{
	unsigned char b[16 + 152] = { 0 };

	(void)arg;
	bytes_set32(b + 4, 1);
	bytes_set32(b + 8, 4);
	(void)forge_insert(s, DATA, FRAME_SCOR, b, 20);
	bytes_set32(b + 8, 8);
	(void)forge_insert(s, DATA, FRAME_PLAN, b, 40);
	bytes_set32(b + 8, 152);
	bytes_set32(b + 16, 16);
	(void)forge_insert(s, DATA, FRAME_STAT, b, 168);
	(void)forge_insert(s, DATA, FRAME_MEMB, "\1\0\0\0\0\0\0\0\1\0a", 11);
	(void)forge_insert(s, DATA, FRAME_TIME,
	    "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	(void)forge_insert(s, DATA, FRAME_POLI, "interval=2\n", 11);
	(void)forge_insert(s, DATA, FRAME_TYPE('l', 'I', 'N', 'k'), "a=b\n", 4);
	(void)forge_insert(s, DATA, FRAME_TYPE('t', 'E', 'X', 't'), "", 0);
	(void)forge_insert(s, DATA, FRAME_TYPE('x', 'y', 'Z', 'Z'), "", 0);
	memset(b, 0, sizeof(b));
	b[0] = 1;
	(void)forge_insert(s, s->n - 2, FRAME_SIGN, b, 104);
}

/* Insert annotations or set fields of SHRD that break a rule of ace-stream(5). Filters that
 * do not use them pass them on; verification finds the error. */
enum noted {
	NOTED_SCORE_NAN, NOTED_STATS, NOTED_STATS_INFINITE,
	NOTED_STATS_VALUES, NOTED_STATS_OCTAVES, NOTED_MEMBERS_ORDER, NOTED_MEMBERS_TWICE,
	NOTED_MEMBERS_MANY, NOTED_MEMBERS_EMPTY, NOTED_TIMES_COUNT, NOTED_TIMES,
	NOTED_POLICY_ORDER, NOTED_POLICY_RANGE, NOTED_POLICY_LINE, NOTED_POLICY_END,
	NOTED_POLICY_UNSEEN, NOTED_MODEL, NOTED_SIGN_SHORT, NOTED_SIGN_SCHEME, NOTED_SIGN_MBZ,
	NOTED_SIGN_BEFORE, NOTED_SIGN_TWICE,
	NOTED_TWO_SAME, NOTED_TWO_BACK,
	NOTED_SHARD_NOBODY, NOTED_SHARD_SECONDS, NOTED_SHARD_NORM,
	NOTED_SHARD_STAMP, NOTED_SHARD_PREDICT, NOTED_SHARD_DIFFERENCE,
	NOTED_SHARD_HOW, NOTED_SHARD_HISTORY
};

static inline void
noted_sign(struct forge *s, unsigned long which)
{
	unsigned char b[104] = { which == NOTED_SIGN_SCHEME ? 2 : 1 };

	b[7] = which == NOTED_SIGN_MBZ;
	(void)forge_insert(s, which == NOTED_SIGN_BEFORE ? DATA : SEND,
	    FRAME_SIGN, b, which == NOTED_SIGN_SHORT ? 103 : 104);
	if (which == NOTED_SIGN_TWICE)
		(void)forge_insert(s, SEND, FRAME_SIGN, b, 104);
}

static inline void
noted_groups(struct forge *s, unsigned long which)
{
	unsigned char b[16 + 152] = { 0 };
	const int score = which == NOTED_SCORE_NAN;
	const size_t n = score ? 4 : 152;

	bytes_set32(b + 4, 1);
	bytes_set32(b + 8, (uint32_t)n);
	if (which == NOTED_SCORE_NAN)
		bytes_set32(b + 16, 0x7fc00000);
	else
		bytes_set32(b + 16, which == NOTED_STATS_VALUES ? 15 : 16);
	if (which == NOTED_STATS_OCTAVES)
		bytes_set32(b + 16 + 24, 1);
	if (which == NOTED_STATS) {
		bytes_set32(b + 20, 17);
		bytes_set32(b + 16 + 24, 17);
	}
	if (which == NOTED_STATS_INFINITE)
		bytes_set32(b + 24, 0x7f800000);
	(void)forge_insert(s, DATA, score ? FRAME_SCOR : FRAME_STAT, b, 16 + n);
}

/* Insert two lists of one contributor each: twice the same contributor, or in falling order. */
static inline void
noted_two(struct forge *s, unsigned long which)
{
	unsigned char b[11] = { 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 'b' };

	s->f[SHRD].p[72] = 2;
	(void)forge_insert(s, DATA, FRAME_MEMB, b, sizeof(b));
	b[10] = which == NOTED_TWO_SAME ? 'b' : 'a';
	(void)forge_insert(s, DATA + 1, FRAME_MEMB, b, sizeof(b));
}

/* Replace the keys of SHRD, and with them the names of run and device, and set flags. */
static inline void
noted_shard(struct forge *s, unsigned long which)
{
	static const struct { size_t n; unsigned flags; const char *kv; } t[] = {
		[NOTED_SHARD_SECONDS] = { 21, 0, "\17\0\2\0compute.seconds-1" },
		[NOTED_SHARD_NORM] = { 17, 0, "\12\0\3\0model.normnan" },
		[NOTED_SHARD_STAMP] = { 15, 0, "\10\0\3\0residualnon" },
		[NOTED_SHARD_PREDICT] = { 33, 0,
		    "\7\0\4\0historynone\7\0\7\0predictcache:1" },
		[NOTED_SHARD_DIFFERENCE] = { 15, 16, "\7\0\4\0historynone" },
		[NOTED_SHARD_HOW] = { 33, 16,
		    "\7\0\4\0historynone\7\0\7\0predictcache:2" },
		[NOTED_SHARD_HISTORY] = { 33, 16,
		    "\7\0\4\0historynono\7\0\7\0predictcache:1" }
	};
	struct forge_frame *f = &s->f[SHRD];
	unsigned char b[96 + 40];

	if (which == NOTED_SHARD_NOBODY) {
		f->p[72] = 0;
		return;
	}
	memcpy(b, f->p, 96);		/* all fields before the keys */
	memset(b, 0, 32);
	memcpy(b + 96, t[which].kv, t[which].n);
	b[68] = (unsigned char)t[which].flags;
	bytes_set32(b + 80, (uint32_t)t[which].n);
	forge_payload(f, b, 96 + t[which].n);
}

static inline void
noted(struct forge *s, unsigned long which)
{
	static const char nothing[41];
	static const struct { uint32_t type; size_t n; const char *text; } t[] = {
		[NOTED_MEMBERS_ORDER] = { FRAME_MEMB, 14, "\2\0\0\0\0\0\0\0\1\0b\1\0a" },
		[NOTED_MEMBERS_TWICE] = { FRAME_MEMB, 14, "\2\0\0\0\0\0\0\0\1\0a\1\0a" },
		[NOTED_MEMBERS_MANY] = { FRAME_MEMB, 14, "\2\0\0\0\0\0\0\0\1\0a\1\0b" },
		[NOTED_MEMBERS_EMPTY] = { FRAME_MEMB, 10, "\1\0\0\0\0\0\0\0\0\0" },
		[NOTED_TIMES_COUNT] = { FRAME_TIME, 8, "\0\0\0\0\0\0\0\0" },
		[NOTED_TIMES] = { FRAME_TIME, 16, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\xf8\x7f" },
		[NOTED_POLICY_ORDER] = { FRAME_POLI, 8, "b=1\na=1\n" },
		[NOTED_POLICY_RANGE] = { FRAME_POLI, 9, "delay=-1\n" },
		[NOTED_POLICY_LINE] = { FRAME_POLI, 2, "x\n" },
		[NOTED_POLICY_END] = { FRAME_POLI, 7, "a=b\nc=d" },
		[NOTED_POLICY_UNSEEN] = { FRAME_POLI, 6, "a=\xe2\x80\xae\n" },
		/* no group, but one count of changed values; and the kind is not model */
		[NOTED_MODEL] = { FRAME_MODL, 41, nothing }
	};

	if (which >= NOTED_SHARD_NOBODY)
		noted_shard(s, which);
	else if (which >= NOTED_TWO_SAME)
		noted_two(s, which);
	else if (which >= NOTED_SIGN_SHORT)
		noted_sign(s, which);
	else if (which < NOTED_MEMBERS_ORDER)
		noted_groups(s, which);
	else
		(void)forge_insert(s, DATA, t[which].type, t[which].text, t[which].n);
}

/* Split the tensor table into two frames, the first of `at' bytes. If `at' is 0, delete the
 * second half of the table instead. */
static inline void
split(struct forge *s, unsigned long at)
{
	struct forge_frame f = s->f[SCHM];
	size_t first = at != 0 ? at : f.n / 2;

	if (at != 0)
		(void)forge_insert(s, SCHM + 1, FRAME_SCHM, f.p + first,
		    f.n - first);
	s->f[SCHM].n = s->f[SCHM].raw = first;
}

/* Split the tensor table, and insert an empty SCHM frame between the parts. */
static inline void
split_empty(struct forge *s, unsigned long at)
{
	split(s, at);
	(void)forge_insert(s, SCHM + 1, FRAME_SCHM, "", 0);
}

static inline void
nothing(struct forge *s, unsigned long arg)
{
	(void)s;
	(void)arg;
}

/* Empty PROV.  If `then' is PROV, add a second one; if it is SCHM, move PROV before SCHM. */
static inline void
no_provenance(struct forge *s, unsigned long then)
{
	forge_payload(&s->f[PROV], "", 0);
	if (then == PROV)
		(void)forge_insert(s, SHRD, FRAME_PROV, "x 1\n", 4);
	if (then == SCHM)
		move(s, SCHM << 8 | PROV);
}

static inline void
long_provenance(struct forge *s, unsigned long n)
{
	unsigned char *p = malloc(n), out[1024];

	assert(p != NULL);
	memset(p, 'x', n);
	p[n - 1] = '\n';
	forge_payload(&s->f[PROV], out, lz4_block_pack(out, sizeof(out), p, n));
	s->f[PROV].head[8] |= FRAME_LZ4;
	s->f[PROV].raw = n;
	free(p);
}

/* Replace the key/values at the end of SHRD, and their length. */
static inline void
shard_kv(struct forge *s, unsigned long which)
{
	static const char *const kv[] = {
		"\1\0\1\0ba\1\0\1\0ab", "\1\0\1\0ab\1\0\1\0ab",
		"\1\0\1\0Ab\1\0\1\0bb", "\1\0\1\0a\n\1\0\1\0bb",
		"\1\0\1\0ab\1\0\2\0bb", "\1\0\1\0ab\0\0\1\0bb"
	};
	struct forge_frame *f = &s->f[SHRD];
	unsigned char b[96 + 12];

	memcpy(b, f->p, 96);		/* all fields before the keys */
	memcpy(b + 96, kv[which], 12);
	bytes_set32(b + 80, 12);
	forge_payload(f, b, sizeof(b));
}

/* Replace the field `samples' of SHRD by the field `incarnation', with the value 2^arg. */
static inline void
incarnation(struct forge *s, unsigned long arg)
{
	s->f[SHRD].p[76] = 0x80;
	bytes_set64(s->f[SHRD].p + 88, (uint64_t)1 << arg);
}

/* ---- the schema: one tensor, given whole ---- */

struct tensor {
	uint64_t numel, base, dim[9];
	unsigned ndim, dtype, dims;	/* dims: number of dimensions in the table; 0: ndim */
	const char *name;
	size_t len;
	uint32_t group, n;	/* group size, 0 for 65536, 1 for 0; number of tensors, 0 for 1 */
	uint64_t total;
	uint32_t name_off;
};

static const struct tensor tensors[] = {
	/* 0 */ { .dim = { (uint64_t)1 << 32, (uint64_t)1 << 32 }, .ndim = 2 },
	/* 1 */ { .dim = { (uint64_t)1 << 41 }, .ndim = 1,
	    .numel = (uint64_t)1 << 41, .total = (uint64_t)1 << 41 },
	/* 2: a small file with terabytes of zeros */
	{ .dim = { (uint64_t)1 << 40 }, .ndim = 1,
	    .numel = (uint64_t)1 << 40, .total = (uint64_t)1 << 40 },
	/* 3 */ { .dim = { 8 }, .ndim = 1, .numel = 7, .total = 7 },
	/* 4 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .base = 8, .total = 16 },
	/* 5 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 9 },
	/* 6 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name = "a\nb", .len = 3 },
	/* 7 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name = "a\033[2J", .len = 5 },
	/* 8 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name = "a\0b", .len = 3 },
	/* 9: an overlong slash */ { .dim = { 8 }, .ndim = 1, .numel = 8,
	    .total = 8, .name = "a\300\257", .len = 3 },
	/* 10 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name = "", .len = (size_t)-1 },
	/* 11 */ { .ndim = 255, .dims = 1, .numel = 1, .total = 1 },
	/* 12 */ { .dim = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, .ndim = 9,
	    .numel = 1, .total = 1 },
	/* 13 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8, .dtype = 12 },
	/* 14 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .group = UINT32_MAX },
	/* 15 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .n = 1000000 },
	/* 16 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .n = UINT32_MAX },
	/* 17 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name_off = 1 },
	/* 18 */ { .dim = { 8 }, .ndim = 1, .numel = 8, .total = 8,
	    .name_off = UINT32_MAX },
	/* 19 */ { .dim = { 8 }, .ndim = 1, .dims = 7, .numel = 8, .total = 8 },
	/* 20 */ { .dim = { 1u << 31 }, .ndim = 1, .group = 1,
	    .numel = (uint64_t)1 << 31, .total = (uint64_t)1 << 31 },
	/* 21: 2^31 groups in a few hundred bytes */
	{ .dim = { (uint64_t)1 << 32 }, .ndim = 1, .group = 2,
	    .numel = (uint64_t)1 << 32, .total = (uint64_t)1 << 32 },
	/* 22: nearly 2^32 groups, of 2^36 elements */
	{ .dim = { (uint64_t)1 << 36 }, .ndim = 1, .group = 17,
	    .numel = (uint64_t)1 << 36, .total = (uint64_t)1 << 36 }
};

static inline void
schema(struct forge *s, unsigned long which)
{
	const struct tensor *t = &tensors[which];
	unsigned dims = t->dims != 0 ? t->dims : t->ndim, i;
	size_t len = t->len == (size_t)-1 ? 0 : t->len != 0 ? t->len : 1;
	unsigned char b[512];
	unsigned char *p = b + 32;

	memset(b, 0, sizeof(b));
	bytes_set32(b, t->n != 0 ? t->n : 1);
	bytes_set32(b + 4, t->group != 0 ? t->group == 1 ? 0 : t->group :
	    65536);
	bytes_set64(b + 8, t->total);
	bytes_set32(b + 16, (uint32_t)len);
	bytes_set32(b + 20, dims);
	bytes_set64(p, t->numel);
	bytes_set64(p + 8, t->base);
	bytes_set32(p + 16, t->name_off);
	bytes_set16(p + 20, (uint16_t)len);
	p[22] = (unsigned char)t->ndim;
	p[23] = (unsigned char)t->dtype;
	for (i = 0; i < dims && i < 9; i++)
		bytes_set64(p + 40 + 8 * i, t->dim[i]);
	memcpy(p + 40 + 8 * dims, t->name != NULL ? t->name : "w", len);
	forge_payload(&s->f[SCHM], b, 32 + 40 + 8 * dims + len);
}

/* Make n tensors of one value each; if n is 2, both have the same name. */
static inline void
schema_many(struct forge *s, unsigned long n)
{
	size_t len = 32 + 40 * n + n * 6, i;
	unsigned char *b = calloc(len, 1), *p;
	char name[32];

	assert(b != NULL);
	bytes_set32(b, (uint32_t)n);
	bytes_set32(b + 4, 65536);
	bytes_set64(b + 8, n);
	bytes_set32(b + 16, (uint32_t)n * 6);
	for (i = 0; i < n; i++) {
		p = b + 32 + 40 * i;
		bytes_set64(p, 1);
		bytes_set64(p + 8, i);
		bytes_set32(p + 16, (uint32_t)i * 6);
		bytes_set16(p + 20, 6);
		(void)snprintf(name, sizeof(name), "%06lu",
		    n == 2 ? 0 : (unsigned long)i);
		memcpy(b + 32 + 40 * n + 6 * i, name, 6);
	}
	forge_payload(&s->f[SCHM], b, len);
	free(b);
}

/* ---- DATA: a directory made here, and bodies of zeros only ---- */

static inline void
data(struct forge *s, unsigned long which)
{
	static const struct {
		uint32_t n, len;	/* len: directory bytes given */
		unsigned char dir[24];
		uint32_t dir_len;	/* directory length that is written; 0: len */
		size_t bodies;
	} d[] = {
	/* 0: no record */ { 0, 0, { 0 }, 0, 0 },
	/* 1: more than the directory can hold */
	    { UINT32_MAX, 2, { 0x10, 64 }, 0, 64 },
	/* 2: group beyond the schema */
	    { 2, 7, { 0x10, 64, 0xf0, 0xff, 0xff, 0x03, 0 }, 0, 64 },
	/* 3: gap that would wrap round */
	    { 2, 14, { 0x10, 64, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0x01, 64 }, 0, 128 },
	/* 4: body beyond the frame */
	    { 1, 4, { 0x10, 0xff, 0xff, 0x03 }, 0, 64 },
	/* 5: body length of 2^64 - 1 */
	    { 1, 11, { 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0x01 }, 0, 64 },
	/* 6: bytes after the last body */ { 1, 2, { 0x10, 64 }, 0, 65 },
	/* 7: bytes after the directory's last entry */ { 1, 3, { 0x10, 64, 0 }, 0, 64 },
	/* 8: directory longer than the frame */
	    { 1, 2, { 0x10, 64 }, UINT32_MAX, 64 },
	/* 9: a varint not in its shortest form */
	    { 1, 3, { 0x10, 0xc0, 0 }, 0, 64 },
	/* 10: codec 15 */ { 1, 3, { 0x1f, 15, 64 }, 0, 64 },
	/* 11: f32 with a parameter */ { 1, 3, { 0x00, 1, 64 }, 0, 64 },
	/* 12: f32 of the wrong length */ { 1, 2, { 0x10, 63 }, 0, 63 },
	/* 13: f32 of no length */ { 1, 2, { 0x10, 0 }, 0, 0 },
	/* 14: q8 of the wrong length */ { 1, 2, { 0x14, 64 }, 0, 64 },
	/* 15: topk with an empty body */ { 1, 2, { 0x17, 0 }, 0, 0 },
	/* 16: exact with an empty body */ { 1, 3, { 0x1f, 17, 0 }, 0, 0 },
	/* 17: a private codec */
	    { 1, 5, { 0x1f, 0x80, 0x80, 0x01, 64 }, 0, 64 },
	/* 18: a codec below 15 after 15, the escape to larger numbers */
	    { 1, 3, { 0x1f, 3, 64 }, 0, 64 },
	/* 19: a codec above the last */
	    { 1, 5, { 0x1f, 0xff, 0xff, 0x03, 64 }, 0, 64 },
	/* 20: a gap in the first entry */ { 1, 2, { 0x30, 64 }, 0, 64 },
	/* 21: f32 of one value more than the group has */
	    { 1, 2, { 0x10, 68 }, 0, 68 },
	/* 22: exact with a parameter above 26 */ { 1, 4, { 0x0f, 17, 77, 64 }, 0, 64 }
	};
	size_t at = 12 + d[which].len, head = at + frame_padding(at);
	unsigned char b[1024] = { 0 };

	bytes_set32(b, d[which].n);
	bytes_set32(b + 4, d[which].dir_len != 0 ? d[which].dir_len :
	    d[which].len);
	memcpy(b + 12, d[which].dir, d[which].len);
	forge_payload(&s->f[DATA], b, head + d[which].bodies);
	/* make SEND consistent: the bytes of the bodies, and only values of zero */
	bytes_set64(s->f[SEND].p + 8, 0);
	bytes_set64(s->f[SEND].p + 24, d[which].bodies);
}

/* Set the tensor's dtype, and code its values with f16. */
static inline void
exact(struct forge *s, unsigned long dtype)
{
	unsigned char b[16 + 32] = { 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
		0x11, 32 };

	s->f[SCHM].p[32 + 23] = (unsigned char)dtype;
	forge_payload(&s->f[DATA], b, sizeof(b));
}

/* Write one record with a body of lies.h. */
static inline void
body(struct forge *s, unsigned long which)
{
	const struct lie *l = &lies[which];
	unsigned char b[256] = { 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
		l->codec, l->param };
	size_t dir;

	if (l->codec >= 15) {	/* 15, then the codec's number */
		b[12] = 15;
		b[13] = l->codec;
		b[14] = l->param;
	}
	dir = bytes_set_varint(b + (l->codec < 15 ? 14 : 15), l->n);
	b[4] = (unsigned char)((l->codec < 15 ? 2 : 3) + dir);
	memcpy(b + 16, l->body, l->n < sizeof(l->body) ? l->n :
	    sizeof(l->body));
	forge_payload(&s->f[DATA], b, 16u + l->n);
}

/* Set fields that readers ignore, as a later minor version may, and the number of shards. */
static inline void
later(struct forge *s, unsigned long arg)
{
	(void)arg;
	s->f[HEAD].p[2] = 9;		/* minor version */
	s->f[HEAD].p[8] = 0xff;		/* optional features */
	s->f[HEAD].p[16] = 1;		/* created */
	s->f[HEAD].p[40] = 1;		/* shards */
	s->f[HEAD].head[9] = 0x80;	/* flags that readers ignore */
	s->f[SHRD].head[9] = 0x80;
	s->f[NOTE].head[9] = 0x80;
	s->f[SEND].head[9] = 0x80;
	s->f[TAIL].head[9] = 0x80;
}

static inline void
no_shard(struct forge *s, unsigned long arg)
{
	(void)arg;
	while (s->n > SHRD + 1)
		forge_delete(s, SHRD);
}

#endif
