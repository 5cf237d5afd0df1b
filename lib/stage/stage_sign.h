/*
 * What ace-sign does to a shard: it puts a signature behind all else, or holds
 * the shard back from being whole until the one that it has is found right.
 */
#ifndef ACE_STAGE_SIGN_H
#define ACE_STAGE_SIGN_H

#include "stage/stage.h"

struct stage_sign_opts {
	const char *key;	/* file of the secret key to sign with */
	const char *ring;	/* file of public keys to check with; one of
				 * the two is NULL */
	const struct filter *f;	/* the program's: set by make */
};

extern const struct opt stage_sign_rows[];	/* its options */

extern const struct stage_kind stage_sign;

#endif
