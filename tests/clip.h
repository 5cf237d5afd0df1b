/*
 * The interface between a test and clip.so in the programs that it starts: a page that all of
 * them share, with one count of the calls of all processes, and a log of their changes.
 */
#ifndef TESTS_CLIP_H
#define TESTS_CLIP_H

#include <stdint.h>

enum clip_call {
	CLIP_READ, CLIP_WRITE, CLIP_OPEN, CLIP_FSYNC, CLIP_RENAME, CLIP_LINK,
	CLIP_CLOSE, CLIP_FLOCK, CLIP_MALLOC, CLIP_UNLINK, CLIP_MKDIR,
	CLIP_STAT, CLIP_SEEK, CLIP_OTHER, CLIP_NCALL
};
/* calls that count as changes */
#define CLIP_CHANGES (1u << CLIP_WRITE | 1u << CLIP_OPEN | 1u << CLIP_FSYNC | \
	1u << CLIP_RENAME | 1u << CLIP_LINK | 1u << CLIP_CLOSE | \
	1u << CLIP_FLOCK | 1u << CLIP_UNLINK | 1u << CLIP_MKDIR)

enum clip_action { CLIP_COUNT, CLIP_KILL, CLIP_FAIL, CLIP_FAIL_ON };

struct clip {
	uint32_t mask;		/* which calls count: one bit per call */
	uint32_t action;	/* what is done to the call at which left is 0;
				   CLIP_FAIL_ON: to all later ones, too */
	int64_t left;		/* at first N for the N-th call; counts down */
	int32_t error;		/* errno of calls that fail */
	uint32_t fired;		/* number of calls that failed or killed by `action' */
	char what[24];		/* name of the last such call */
};

/* An entry of the file of CLIP_LOG is a struct clip_rec and then npath, nother and ndata bytes:
 * a path, the other path of two, and the data written. */
enum clip_op {
	CLIP_OP_CREATE = 1, CLIP_OP_WRITE, CLIP_OP_SYNC, CLIP_OP_SYNCDIR,
	CLIP_OP_RENAME, CLIP_OP_LINK, CLIP_OP_UNLINK, CLIP_OP_MKDIR,
	CLIP_OP_OUT,		/* bytes went to standard output */
	CLIP_OP_CUT,		/* a file was truncated to `at' bytes */
	CLIP_OP_SWAP		/* two names were exchanged */
};
struct clip_rec {
	uint32_t op;
	uint32_t npath, nother, ndata;
	uint64_t ino, at;
};

#endif
