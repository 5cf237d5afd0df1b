#include <unistd.h>

#include "base/err.h"
#include "base/room.h"
#include "pipe/gather_impl.h"

/* Of contributions that are open at a time, up to GATHER_OPEN: fewer where they
 * would take more memory, but for a few. */
enum { GATHER_FEW = 16, GATHER_MEMORY = 32 << 20 };
/* Of one: what its reader takes, and the largest frame of our writers. */
enum { GATHER_READER = 80 << 10, GATHER_FRAME = 1 << 20 };

uint64_t
gather_window_memory(const struct gather *g)
{
	uint64_t frame = g->n != 0 ? g->bytes / g->n : 0;

	return GATHER_READER + 4 * (uint64_t)g->schema.group_size +
	    (frame < GATHER_FRAME ? frame : GATHER_FRAME);
}

size_t
gather_window_files(void)
{
	const long files = sysconf(_SC_OPEN_MAX) / 2;

	return files > 0 && files < GATHER_OPEN ? (size_t)files : GATHER_OPEN;
}

/* What is lent is open, so that it makes one window. */
static size_t
gather_room(const struct gather *g)
{
	const size_t files = gather_window_files();
	uint64_t room = room_of(GATHER_MEMORY) / gather_window_memory(g);

	if (g->whole || (g->n != 0 && g->in[0].lent))
		return g->n;
	if (room > files)
		room = files;
	return room < GATHER_FEW ? GATHER_FEW : (size_t)room;
}

size_t
gather_windows(const struct gather *g)
{
	return g->n == 0 ? 1 : (g->n - 1) / gather_room(g) + 1;
}

int
gather_window(struct gather *g, size_t w, struct err *e)
{
	const size_t room = gather_room(g);
	int k = 0;

	for (; g->lo < g->hi; g->lo++)
		gather_in_shut(&g->in[g->lo]);
	g->lo = g->hi = w * room;
	while (g->hi < g->n && g->hi - g->lo < room && k == 0) {
		struct gather_in *in = &g->in[g->hi++];

		if ((k = gather_in_open(in, &g->o, e)) == 0 || (k > 0 &&
		    shard_key(reader_shard(in->r)) !=
		    shard_key(gather_in_head(in))))
			k = err_set(e, ERR_DATA, "mismatch: '%s' was changed "
			    "while it was read", in->path);
		if (k > 0)
			k = gather_in_values(in, e);
		(void)gather_blame(g, g->hi - 1, k);
	}
	return k;
}

void
gather_window_range(const struct gather *g, size_t *lo, size_t *hi)
{
	*lo = g->lo;
	*hi = g->hi;
}
