/*
 * What ace-sign does to a shard: it puts a signature behind all else, or holds
 * the shard back from being whole until the one that it has is found right.
 */
#ifndef ACE_STAGE_SIGN_H
#define ACE_STAGE_SIGN_H

struct cli;
struct err;
struct stage;

struct stage_sign_opts {
	const char *key;	/* file of the secret key to sign with */
	const char *ring;	/* file of public keys to check with; one of
				 * the two is NULL */
	const struct cli *cli;	/* whom to speak for */
};

/* stage_sign_new(out, o, e): what o points to stays the caller's until
 * stage_free. */
int stage_sign_new(struct stage **out, const struct stage_sign_opts *o,
    struct err *e);

#endif
