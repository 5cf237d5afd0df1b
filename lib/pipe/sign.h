/*
 * Signatures of shards: Ed25519 over BLAKE2b, from libsodium (ace-stream(5),
 * SIGNATURES). A stream's checksums detect accidents only: an attacker can find other
 * bytes with the same checksum, but not with the same BLAKE2b.
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
	SIGN_SIZE = 8 + SIGN_KEY + 64	/* bytes of the payload of sIGN */
};

/* ---- the signed data ---- */

struct sign_sum;

/* Return NULL if there is no memory or libsodium cannot be set up. */
struct sign_sum *sign_sum_new(struct err *e);
void sign_sum_free(struct sign_sum *s);
/* Begin a shard: the sum begins with schema and SHRD. sign_sum_add: add the unpacked
 * payload p[n] of each later frame, in order. */
int sign_sum_begin(struct sign_sum *s, const struct shard *sh,
    const struct schema *sc, struct err *e);
void sign_sum_add(struct sign_sum *s, uint32_t type, const unsigned char *p,
    size_t n);

/* ---- keys ---- */

struct sign_key;		/* secret */

/* Read the Ed25519 key of a PEM file (PKCS #8), as made by `openssl genpkey -algorithm
 * ed25519'. On errors return NULL; e has ERR_DATA for another kind of file, ERR_REFUSED if
 * other users have any access to the file, else ERR_SYS. */
struct sign_key *sign_key_read(const char *path, struct err *e);
void sign_key_free(struct sign_key *k);

struct sign_ring;		/* public keys, by device */

/* Read lines of a device's name and its public key in base64 (SubjectPublicKeyInfo, the
 * text between the first and last line of a PEM file). A device may have several keys. A # at
 * the beginning or after a blank begins a comment; \# is #. Return NULL on errors. */
struct sign_ring *sign_ring_read(const char *path, struct err *e);
void sign_ring_free(struct sign_ring *r);

/* ---- signing ---- */

/* Write the payload of sIGN for the sum. This ends s, and so does sign_check: call
 * sign_sum_begin before s is used again. */
void sign_make(const struct sign_key *k, struct sign_sum *s,
    unsigned char out[SIGN_SIZE]);

/* Check that payload p[n] signs the sum with one of this device's keys in r. Return 0;
 * -ERR_DATA if it is malformed or signs other bytes; -ERR_REFUSED if its key is none of
 * these. */
int sign_check(const struct sign_ring *r, const char *device,
    struct sign_sum *s, const unsigned char *p, size_t n, struct err *e);

/* Write the first characters of a payload's public key as it is in key rings, but without
 * the 16 characters with which all such keys begin. */
enum { SIGN_WHO = 12 };
void sign_who(const unsigned char p[SIGN_SIZE], char out[SIGN_WHO + 1]);

#endif
