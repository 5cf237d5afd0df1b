#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "base/limits_file.h"
#include "format/checks.h"
#include "format/frame.h"
#include "format/schema.h"
#include "format/shard.h"
#include "pipe/sign.h"

enum {
	SIGN_SCHEME = 1,	/* Ed25519 over BLAKE2b of 64 bytes */
	SIGN_HASH = 64,
	SIGN_FILE = 1 << 20	/* limit on the bytes of a file of keys */
};

/* DER before the 32 bytes of an Ed25519 key (RFC 8410): PKCS #8 for secret keys,
 * SubjectPublicKeyInfo for public ones. */
static const unsigned char sign_secret[16] = { 0x30, 0x2e, 0x02, 0x01, 0x00,
	0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };
static const unsigned char sign_public[12] = { 0x30, 0x2a, 0x30, 0x05, 0x06,
	0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

static int
sign_ready(struct err *e)
{
	return sodium_init() >= 0 ? 0 : err_set(e, ERR_SYS, "libsodium cannot be set up");
}

/* ---- the signed data ---- */

struct sign_sum {
	crypto_generichash_state h;
};

struct sign_sum *
sign_sum_new(struct err *e)
{
	return sign_ready(e) < 0 ? NULL : alloc_get(1, sizeof(struct sign_sum), e);
}

void
sign_sum_free(struct sign_sum *s)
{
	alloc_free(s);
}

void
sign_sum_add(struct sign_sum *s, uint32_t type, const unsigned char *p, size_t n)
{
	unsigned char head[12];

	bytes_set32(head, type);
	bytes_set64(head + 4, n);
	(void)crypto_generichash_update(&s->h, head, sizeof(head));
	(void)crypto_generichash_update(&s->h, p, n);
}

int
sign_sum_begin(struct sign_sum *s, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	static const char what[] = "ace-stream shard, signature 1";
	struct buf b = BUF_INIT;
	int r;

	(void)crypto_generichash_init(&s->h, NULL, 0, SIGN_HASH);
	(void)crypto_generichash_update(&s->h, (const unsigned char *)what,
	    sizeof(what));
	if ((r = schema_encode(sc, &b, e)) == 0) {
		sign_sum_add(s, FRAME_SCHM, b.p, b.n);
		b.n = 0;
		if ((r = shard_encode(sh, &b, e)) == 0)
			sign_sum_add(s, FRAME_SHRD, b.p, b.n);
	}
	buf_release(&b);
	return r;
}

static void
sign_sum_get(struct sign_sum *s, unsigned char out[SIGN_HASH])
{
	(void)crypto_generichash_final(&s->h, out, SIGN_HASH);
}

/* Decode a key from the base64 of DER with this head. Return 0 or -1. */
static int
sign_der(unsigned char key[SIGN_KEY], const unsigned char *head, size_t n_head,
    const char *text, size_t n)
{
	unsigned char der[sizeof(sign_secret) + SIGN_KEY];
	size_t len;
	int k = sodium_base642bin(der, sizeof(der), text, n, " \r\n", &len, NULL,
	    sodium_base64_VARIANT_ORIGINAL);

	if (k == 0 && (len != n_head + SIGN_KEY || memcmp(der, head, n_head) != 0))
		k = -1;
	if (k == 0)
		memcpy(key, der + n_head, SIGN_KEY);
	sodium_memzero(der, sizeof(der));
	return k;
}

/* ---- the secret key ---- */

struct sign_key {
	unsigned char public[crypto_sign_PUBLICKEYBYTES];
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
};

static int
sign_private(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(e, "'%s'", path);
	return (st.st_mode & 077) == 0 || S_ISDIR(st.st_mode) || S_ISCHR(st.st_mode) ? 0 :
	    err_set(e, ERR_REFUSED,
	    "other users have access to secret key '%s': run chmod 600 on it", path);
}

struct sign_key *
sign_key_read(const char *path, struct err *e)
{
	static const char first[] = "-----BEGIN PRIVATE KEY-----";
	static const char last[] = "-----END PRIVATE KEY-----";
	unsigned char seed[SIGN_KEY];
	struct sign_key *k = NULL;
	struct buf b = BUF_INIT;
	const char *from = NULL, *to;

	if (sign_ready(e) < 0 || sign_private(path, e) < 0)
		return NULL;
	if (io_named_text(&b, path, SIGN_FILE, e) < 0) {
		if (e->code == ERR_DATA)
			(void)err_after(e, 0, " (a key in PEM, see ace-sign(1))");
		goto out;
	}
	from = strstr((const char *)b.p, first);
	to = from != NULL ? strstr(from, last) : NULL;
	if (to == NULL)
		(void)err_set(e, ERR_DATA, from != NULL ? "'%s' ends before the line END "
		    "PRIVATE KEY: copy the whole file" : "'%s' lacks the lines BEGIN "
		    "PRIVATE KEY and END PRIVATE KEY of an openssl key without a "
		    "passphrase: make one, see ace-sign(1)", path);
	else if (sign_der(seed, sign_secret, sizeof(sign_secret),
	    from + sizeof(first) - 1, (size_t)(to - from) - sizeof(first) + 1) < 0)
		(void)err_set(e, ERR_DATA, "the key in '%s' is not an Ed25519 key, or is damaged: "
		    "make one with 'openssl genpkey -algorithm ed25519 -out FILE'", path);
	else if ((k = alloc_get(1, sizeof(*k), e)) != NULL)
		(void)crypto_sign_seed_keypair(k->public, k->secret, seed);
out:
	sodium_memzero(seed, sizeof(seed));
	if (b.p != NULL)
		sodium_memzero(b.p, b.n);
	buf_release(&b);
	return k;
}

void
sign_key_free(struct sign_key *k)
{
	if (k != NULL)
		sodium_memzero(k, sizeof(*k));
	alloc_free(k);
}

/* ---- the public keys ---- */

struct sign_ring {
	struct sign_known {
		char *device;
		unsigned char key[SIGN_KEY];
	} *key;
	size_t n, cap;
};

void
sign_ring_free(struct sign_ring *r)
{
	size_t i;

	for (i = 0; r != NULL && i < r->n; i++)
		alloc_free(r->key[i].device);
	if (r != NULL)
		alloc_free(r->key);
	alloc_free(r);
}

static int
sign_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Parse a line: a name, which may contain blanks and #, and the key after the last
 * blank. */
static int
sign_ring_line(struct sign_ring *r, char *name, struct err *e)
{
	struct sign_known *k;
	char *end, *key;

	while (sign_blank(*name))
		name++;
	limits_file_uncomment(name);
	end = name + strlen(name);
	while (end > name && sign_blank(end[-1]))
		end--;
	*end = '\0';
	if (end == name)
		return 0;
	for (key = end; key > name && !sign_blank(key[-1]); key--)
		;
	if (key == name)
		return err_set(e, ERR_DATA, "no key follows '%.80s': expected a "
		    "line NAME KEY", name);
	for (end = key; sign_blank(end[-1]); end--)
		;
	*end = '\0';
	if (alloc_grow(&r->key, &r->cap, r->n + 1, sizeof(*r->key), e) < 0)
		return -ERR_SYS;
	k = &r->key[r->n];
	if (sign_der(k->key, sign_public, sizeof(sign_public), key, strlen(key)) < 0)
		return err_set(e, ERR_DATA, "the key of '%.80s' is not an Ed25519 key in "
		    "base64: on the device, take it from 'openssl pkey -in FILE -pubout -outform "
		    "DER | base64', where FILE is its private key", name);
	if ((k->device = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	r->n++;
	return 0;
}

struct sign_ring *
sign_ring_read(const char *path, struct err *e)
{
	struct sign_ring *ring = NULL;
	struct buf b = BUF_INIT;
	char *line, *next;
	unsigned at = 0;
	int r = sign_ready(e);

	if (r == 0 && (r = io_named_text(&b, path, SIGN_FILE, e)) == 0 &&
	    (ring = alloc_get(1, sizeof(*ring), e)) == NULL)
		r = -ERR_SYS;
	for (line = (char *)b.p; line != NULL && r == 0; line = next) {
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		at++;
		if ((r = sign_ring_line(ring, line, e)) == -ERR_DATA)
			(void)err_before(e, r, "'%s', line %u: ", path, at);
	}
	buf_release(&b);
	if (r == 0)
		return ring;
	sign_ring_free(ring);
	return NULL;
}

/* ---- signing ---- */

void
sign_make(const struct sign_key *k, struct sign_sum *s, unsigned char out[SIGN_SIZE])
{
	unsigned char hash[SIGN_HASH];

	sign_sum_get(s, hash);
	memset(out, 0, 8);
	bytes_set32(out, SIGN_SCHEME);
	memcpy(out + 8, k->public, SIGN_KEY);
	(void)crypto_sign_detached(out + 8 + SIGN_KEY, NULL, hash, sizeof(hash),
	    k->secret);
}

void
sign_who(const unsigned char p[SIGN_SIZE], char out[SIGN_WHO + 1])
{
	char text[sodium_base64_ENCODED_LEN(SIGN_KEY,
	    sodium_base64_VARIANT_ORIGINAL)];

	(void)sodium_bin2base64(text, sizeof(text), p + 8, SIGN_KEY,
	    sodium_base64_VARIANT_ORIGINAL);
	memcpy(out, text, SIGN_WHO);
	out[SIGN_WHO] = '\0';
}

int
sign_check(const struct sign_ring *r, const char *device,
    struct sign_sum *s, const unsigned char *p, size_t n, struct err *e)
{
	unsigned char hash[SIGN_HASH];
	int named = 0, k;
	size_t i;

	sign_sum_get(s, hash);
	if ((k = checks_sign(p, n, e)) < 0)
		return k;
	for (i = 0; i < r->n; i++) {
		if (strcmp(r->key[i].device, device) != 0)
			continue;
		named = 1;
		if (memcmp(r->key[i].key, p + 8, SIGN_KEY) != 0)
			continue;
		if (crypto_sign_verify_detached(p + 8 + SIGN_KEY, hash,
		    sizeof(hash), r->key[i].key) == 0)
			return 0;
		return err_set(e, ERR_DATA, "mismatch: the signature with the key of '%.80s' does "
		    "not fit the shard: one of them was changed", device);
	}
	return err_set(e, ERR_REFUSED, named ? "the shard of '%.80s' is signed with a key "
	    "that --check FILE does not list for that device" : "--check FILE has no key "
	    "of '%.80s': add a line with its key", device);
}
