/*
 * What ace-ack does: takes the receipts out of a return stream and into the
 * state; what else the stream holds (the aggregate) goes on.
 */
#ifndef ACE_STAGE_ACK_H
#define ACE_STAGE_ACK_H

struct cli;
struct err;
struct filter;

struct stage_ack_opts {
	struct filter *f;	/* the program's: input and output */
	const char *dir;	/* the device's state */
	int fence;		/* it was restored: take what ace-recv --fence
				   says, and nothing else */
	const struct cli *cli;	/* whom to speak for */
};

/* stage_ack_run(o, path, e): all of path, NULL for standard input.
 * -ERR_REFUSED: a shard of the device was. */
int stage_ack_run(const struct stage_ack_opts *o, const char *path,
    struct err *e);

#endif
