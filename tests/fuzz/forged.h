/*
 * A mutator for streams.  It changes a payload, or a frame's type or flags; it removes,
 * copies or swaps frames.  Then it corrects checksums, counts and offsets (tests/forge.h),
 * so that the reader reaches the change.  One mutation in eight corrects nothing, nor does
 * a mutation of input that is not one stream of fewer than FORGE_MAX frames.
 *
 * FORGED_AT, defined before inclusion: the offset of the stream in the input.
 */
#ifndef FORGED_H
#define FORGED_H

#include <stddef.h>
#include <stdint.h>

#include "../forge.h"

#ifndef FORGED_AT
#define FORGED_AT 0
#endif

size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed);

enum { FORGED_MORE = 64 };	/* most bytes by which a payload may grow */

static uint32_t
forged_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

/* Take one stream apart, without unpacking. Return -1 if it is not one stream of fewer than
 * FORGE_MAX frames. The caller frees s in any case. */
static int
forged_open(struct forge *s, const uint8_t *p, size_t n)
{
	struct forge_frame *f;
	size_t at = 0, wire;

	memset(s, 0, sizeof(*s));
	while (at < n && s->n < FORGE_MAX - 1) {
		if (n - at < 64 || bytes_le32(p + at) != FRAME_SYNC)
			return -1;
		wire = bytes_le32(p + at + 16);
		if (wire > n - at - 64 ||
		    frame_padding(wire) > n - at - 64 - wire)
			return -1;
		f = &s->f[s->n++];
		memcpy(f->head, p + at, 64);
		forge_payload(f, p + at + 64, wire);
		f->raw = bytes_le32(p + at + 20);
		if ((forge_type(f) == FRAME_HEAD) != (at == 0))
			return -1;
		at += 64 + wire + frame_padding(wire);
	}
	return at == n && s->n > 0 ? 0 : -1;
}

static void
forged_payload(struct forge_frame *f)
{
	unsigned char *p = malloc(f->n + FORGED_MORE);
	const int packed = (f->head[8] & FRAME_LZ4) != 0;
	const size_t raw = f->raw;

	assert(p != NULL);
	memcpy(p, f->p, f->n);
	forge_payload(f, p, LLVMFuzzerMutate(p, f->n, f->n + FORGED_MORE));
	if (packed)
		f->raw = raw;
	free(p);
}

static void
forged_frame(struct forge *s, uint64_t *state)
{
	static const uint32_t types[] = { FRAME_SCHM, FRAME_SHRD, FRAME_DATA,
		FRAME_SEND, FRAME_TAIL, FRAME_RCPT, FRAME_MODL, FRAME_PROV,
		FRAME_STAT, FRAME_SCOR, FRAME_PLAN, FRAME_POLI,
		FRAME_MEMB, FRAME_TIME, FRAME_SIGN };
	const uint32_t what = forged_random(state) % 16;
	const size_t a = forged_random(state) % s->n;
	const size_t b = forged_random(state) % s->n;

	if (what < 11)
		forged_payload(&s->f[a]);
	else if (what == 11)
		bytes_set32(s->f[a].head + 4, types[forged_random(state) %
		    (sizeof(types) / sizeof(types[0]))]);
	else if (what == 12)
		s->f[a].head[8 + forged_random(state) % 2] ^=
		    (unsigned char)(1u << forged_random(state) % 8);
	else if (what == 13 && a > 0)
		forge_delete(s, a);
	else if (what == 14 && a > 0 && s->n < FORGE_MAX)
		(void)forge_insert(s, a, forge_type(&s->f[b]), s->f[b].p,
		    s->f[b].n);
	else if (what == 15 && a > 0 && b > 0)
		forge_swap(s, a, b);
}

/* Let forge_seal keep the sums of a tail that is too short for them, and those inside a
 * packed payload. */
static void
forged_keep(struct forge *s)
{
	struct forge_frame *f;
	size_t i;

	for (i = 0; i < s->n; i++) {
		f = &s->f[i];
		f->keep = (forge_type(f) == FRAME_TAIL && f->n < 40) ||
		    (f->head[8] & FRAME_LZ4) != 0 ? KEEP_BODY : 0;
		if ((f->head[8] & FRAME_LZ4) == 0)
			f->raw = f->n;
	}
}

size_t
LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed)
{
	uint64_t state = seed;
	unsigned char *out;
	struct forge s;
	size_t k, rounds;

	if (n < FORGED_AT + 64 || forged_random(&state) % 8 == 0)
		return LLVMFuzzerMutate(p, n, max);
	if (forged_open(&s, p + FORGED_AT, n - FORGED_AT) < 0) {
		forge_free(&s);
		return LLVMFuzzerMutate(p, n, max);
	}
	for (rounds = 1 + forged_random(&state) % 3; rounds > 0; rounds--)
		forged_frame(&s, &state);
	forged_keep(&s);
	out = forge_seal(&s, &k);
	forge_free(&s);
	if (k <= max - FORGED_AT) {
		memcpy(p + FORGED_AT, out, k);
		n = FORGED_AT + k;
	}
	free(out);
	return n;
}

#endif
