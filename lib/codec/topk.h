/*
 * The meaning of the parameter byte of a plan for CODEC_TOPK.  The plan's arg
 * is a fraction or, for that way of picking, the threshold.
 */
#ifndef ACE_TOPK_H
#define ACE_TOPK_H

enum {
	TOPK_F16 = 0, TOPK_Q4 = 1, TOPK_Q2 = 2, TOPK_MAG = 3,	/* values */
	TOPK_KIND = 3,		/* mask */
	TOPK_RICE = 4,		/* not range coded: larger and faster */
	TOPK_PICK = 3,		/* shift of what follows */
	TOPK_EXACT = 0, TOPK_SAMPLED = 1, TOPK_THRESHOLD = 2,
	TOPK_CHUNK = 4		/* and above: by chunks of 2^that */
};

#endif
