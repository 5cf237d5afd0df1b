#include <string.h>

#include "base/err.h"
#include "pipe/track.h"

/* How many bytes the current header, or the current frame, still lacks. */
static uint64_t
track_want(const struct track *t)
{
	return t->left != 0 ? t->left : FRAME_HEAD_SIZE - t->have;
}

uint64_t
track_unseen(const struct track *t)
{
	return t->lost || t->h.type != FRAME_DATA ? 0 : t->left;
}

/* Keeps as much as there is room for: the header and the first bytes of the
 * payload. */
static void
track_keep(struct track *t, const unsigned char *p, size_t n)
{
	size_t k = sizeof(t->head) - t->have < n ? sizeof(t->head) - t->have : n;

	memcpy(t->head + t->have, p, k);
	t->have += k;
}

size_t
track_bytes(struct track *t, const unsigned char *p, size_t n, uint32_t *end)
{
	struct err e = ERR_INIT;
	uint64_t want = track_want(t);
	int header = t->left == 0;
	size_t k = want < n ? (size_t)want : n;

	*end = 0;
	if (t->lost)
		return n;
	if (header || t->h.type != FRAME_DATA)
		track_keep(t, p, k);
	if (!header)
		t->left -= k;
	else if (k < want)
		return k;
	else if (frame_decode(&t->h, t->head, FRAME_MAX_HARD, 0, &e) < 0)
		t->lost = 1;
	else
		t->left = t->h.wire_len + frame_padding(t->h.wire_len);
	if (t->left == 0 && !t->lost) {
		*end = t->h.type;
		t->have = 0;
	}
	return k;
}
