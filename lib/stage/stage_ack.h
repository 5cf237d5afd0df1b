/*
 * What ace-ack does: moves the receipts of a return stream into the state, and
 * passes on everything else, such as the aggregate.
 */
#ifndef ACE_STAGE_ACK_H
#define ACE_STAGE_ACK_H

#include <stddef.h>

struct err;
struct filter;

struct stage_ack_opts {
	struct filter *f;	/* the program's: input and output */
	const char *dir;	/* the device's state */
	int fence;		/* it was restored: take what ace-recv --fence
				   says, and nothing else */
};

/* stage_ack_run(o, path, n, e): a cli_run with struct stage_ack_opts; reads all of
 * *path, NULL is standard input.  -ERR_REFUSED: a receipt says that a shard of
 * the device was refused. */
int stage_ack_run(void *o, char **path, size_t n, struct err *e);

#endif
