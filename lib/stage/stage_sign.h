/*
 * The stage of ace-sign: sign a shard at its end, or pass on the end of a shard only
 * after its signature was checked.
 */
#ifndef ACE_STAGE_SIGN_H
#define ACE_STAGE_SIGN_H

#include "stage/stage.h"

struct stage_sign_opts {
	const char *key;	/* file of the secret key to sign with */
	const char *ring;	/* file of public keys to check with; one of
				 * the two is NULL */
	const struct filter *f;	/* filter of the program; stage_new sets it */
};

extern const struct opt stage_sign_rows[];	/* options of the stage */

extern const struct stage_kind stage_sign;

#endif
