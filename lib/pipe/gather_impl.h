/*
 * The contributions of a step; for gather.c and gather_window.c.
 */
#ifndef ACE_GATHER_IMPL_H
#define ACE_GATHER_IMPL_H

#include "pipe/aside.h"
#include "pipe/gather.h"
#include "pipe/gather_in.h"

enum { GATHER_OPEN = 256 };	/* contributions that are open at a time */

struct gather {
	struct reader_opts o;
	uint64_t expect;
	int whole;		/* all contributions are open at a time */
	uint64_t bytes;		/* of them all, coded */
	int twice;		/* the steps of `src' are set aside */
	struct reader *one;	/* the single input, */
	int ahead;		/* which stands at a shard of the next step; */
	struct reader **src;	/* or several, each with a shard for a step; */
	size_t nsrc;
	char **path;		/* or files that are opened for each step; */
	size_t npath;
	uint64_t done;		/* so many steps of which are over */
	int once;		/* they have one shard each */
	struct intake *intake;	/* or inputs that are not waited for */
	struct aside aside;	/* what was set aside of this step */
	struct schema schema;	/* of all contributions of this step */
	int have_schema;
	size_t blame;		/* whose fault an error is, its place + 1; 0 */
	struct gather_in *in;	/* one per contribution of this step, sorted */
	size_t n, cap;
	size_t lo, hi;		/* those that are open */
};

/* How many files are open at a time: at most half of what the system allows. */
size_t gather_window_files(void);

#endif
