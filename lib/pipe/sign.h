/*
 * Who made a shard: Ed25519 signatures over BLAKE2b, both libsodium's
 * (ace-stream(5), SIGNATURES). The checksums in a stream are made to find
 * accidents, and somebody who wants to finds other bytes with the same one;
 * nobody does with BLAKE2b.
 */
#ifndef ACE_SIGN_H
#define ACE_SIGN_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct schema;
struct shard;

enum {
	SIGN_KEY = 32,		/* bytes of a public key */
	SIGN_SIZE = 8 + SIGN_KEY + 64	/* of the payload of sIGN */
};

/* ---- what is signed ---- */

struct sign_sum;

/* sign_sum_new(e): NULL when there is no memory, or no libsodium. */
struct sign_sum *sign_sum_new(struct err *e);
void sign_sum_free(struct sign_sum *s);
/* sign_sum_begin(s, sh, sc, e): a shard begins; its schema and its SHRD are the
 * first of what is signed. sign_sum_add: and the unpacked payload of each frame
 * that follows, in their order, p of n bytes. */
int sign_sum_begin(struct sign_sum *s, const struct shard *sh,
    const struct schema *sc, struct err *e);
void sign_sum_add(struct sign_sum *s, uint32_t type, const unsigned char *p,
    size_t n);

/* ---- keys ---- */

struct sign_key;		/* secret */

/* sign_key_read(path, e): the Ed25519 key in a PEM file (PKCS #8), such as
 * `openssl genpkey -algorithm ed25519' makes. NULL: -ERR_SYS, -ERR_DATA what is
 * no such key, -ERR_REFUSED a file that others can read; in e. */
struct sign_key *sign_key_read(const char *path, struct err *e);
void sign_key_free(struct sign_key *k);

struct sign_ring;		/* public ones, by device */

/* sign_ring_read(path, e): lines of a device's name and a public key of it in
 * base64 (SubjectPublicKeyInfo, as in a PEM file between its first and its last
 * line); a device may have several, # begins a comment. NULL as above. */
struct sign_ring *sign_ring_read(const char *path, struct err *e);
void sign_ring_free(struct sign_ring *r);

/* ---- signing ---- */

/* sign_make(k, s, out): the payload of sIGN for what s added up. s begins anew
 * with the next shard. */
void sign_make(const struct sign_key *k, struct sign_sum *s,
    unsigned char out[SIGN_SIZE]);

/*
 * sign_check(r, device, s, p, n, e): whether the payload p of n bytes signs what
 * s added up, with a key that r has for this device. 0; -ERR_DATA when it is
 * malformed or of other bytes; -ERR_REFUSED when the key is not in r.
 */
int sign_check(const struct sign_ring *r, const char *device,
    struct sign_sum *s, const unsigned char *p, size_t n, struct err *e);

/* sign_who(p, out): the first characters of the public key in a payload, as a
 * key ring has them behind the 16 that all such keys begin with. */
enum { SIGN_WHO = 12 };
void sign_who(const unsigned char p[SIGN_SIZE], char out[SIGN_WHO + 1]);

#endif
