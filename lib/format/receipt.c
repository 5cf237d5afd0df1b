#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/receipt.h"
#include "format/text.h"

enum { RECEIPT_FIXED = 80 };

static const char *const receipt_names[] = {
	"accepted", "duplicate", "late", "invalid", "equivocation", "fenced"
};

const char *
receipt_verdict_name(unsigned verdict)
{
	return verdict < RECEIPT_NVERDICT ? receipt_names[verdict] : "?";
}

/* Copy the reason without a NUL, and return its length. It may have names that were cut within
 * a character, so bytes that are not valid UTF-8, or are of control characters, become '?'. */
static size_t
receipt_reason(const struct receipt *r, char to[RECEIPT_REASON])
{
	const size_t n = strlen(r->reason);
	size_t i = 0, k;

	while (i < n) {
		k = bytes_utf8((unsigned char)r->reason[i]);
		if (k > n - i || !text_clean(r->reason + i, k))
			k = 0;
		memcpy(to + i, k > 0 ? r->reason + i : "?", k > 0 ? k : 1);
		i += k > 0 ? k : 1;
	}
	return n;
}

int
receipt_encode(const struct receipt *r, struct buf *out, struct err *e)
{
	unsigned char b[RECEIPT_FIXED];
	char reason[RECEIPT_REASON];
	const size_t n = receipt_reason(r, reason);
	int k;

	memset(b, 0, sizeof(b));
	memcpy(b, r->run, 16);
	memcpy(b + 16, r->device, 16);
	bytes_set64(b + 32, r->step);
	bytes_set32(b + 44, r->verdict);
	memcpy(b + 48, r->digest, 16);
	bytes_set64(b + 64, r->clock);
	bytes_set64(b + 72, r->version);
	if ((k = buf_put(out, b, sizeof(b), e)) < 0)
		return k;
	return buf_put(out, reason, n, e);
}

int
receipt_decode(struct receipt *r, const unsigned char *p, size_t n, struct err *e)
{
	memset(r, 0, sizeof(*r));
	if (n < RECEIPT_FIXED || bytes_le32(p + 40) != 0 ||
	    n - RECEIPT_FIXED >= RECEIPT_REASON ||
	    !text_clean((const char *)p + RECEIPT_FIXED, n - RECEIPT_FIXED))
		return err_set(e, ERR_DATA, "corrupt: the receipt's fields are damaged");
	memcpy(r->run, p, 16);
	memcpy(r->device, p + 16, 16);
	r->step = bytes_le64(p + 32);
	r->verdict = bytes_le32(p + 44);
	memcpy(r->digest, p + 48, 16);
	r->clock = bytes_le64(p + 64);
	r->version = bytes_le64(p + 72);
	memcpy(r->reason, p + RECEIPT_FIXED, n - RECEIPT_FIXED);
	if (r->verdict >= RECEIPT_NVERDICT)
		return err_set(e, ERR_DATA, "unsupported: result %lu of the receipt is "
		    "unknown: a newer release of ace may read it", (unsigned long)r->verdict);
	return 0;
}

int
receipt_is_for(const struct receipt *r, const struct shard *s)
{
	return shard_is_of(s, r->run, r->device) && r->step == s->step;
}
