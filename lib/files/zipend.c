/* PKWARE, APPNOTE.TXT 6.3.10: 4.3.14 to 4.3.16. */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "files/seekable.h"
#include "files/zipend.h"

enum {
	ZIPEND_SIZE = 22,		/* end of central directory record */
	ZIPEND_LOCATOR = 20,		/* zip64 locator, just before it */
	ZIPEND_SIZE64 = 56		/* zip64 end record, no extensions */
};

struct zipend {
	uint64_t at;			/* of the first end record */
	uint64_t directory, size, entries;
};

static int
zipend_bad(const char *name, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: directory of '%s'", name);
}

/* The zip64 record, when the locator is there. */
static int
zipend_64(struct zipend *z, int fd, const char *name, struct err *e)
{
	unsigned char b[ZIPEND_SIZE64];
	uint64_t at = z->at;
	int r;

	if (at < ZIPEND_LOCATOR + ZIPEND_SIZE64)
		return 0;
	if ((r = seekable_pread(fd, b, ZIPEND_LOCATOR, at - ZIPEND_LOCATOR, name,
	    e)) < 0)
		return r;
	if (memcmp(b, "PK\6\7", 4) != 0)
		return 0;
	z->at = bytes_le64(b + 8);
	if (z->at > at - ZIPEND_LOCATOR - ZIPEND_SIZE64)
		return zipend_bad(name, e);
	if ((r = seekable_pread(fd, b, ZIPEND_SIZE64, z->at, name, e)) < 0)
		return r;
	if (memcmp(b, "PK\6\6", 4) != 0 ||
	    bytes_le64(b + 4) != at - ZIPEND_LOCATOR - z->at - 12)
		return zipend_bad(name, e);
	z->entries = bytes_le64(b + 32);
	z->size = bytes_le64(b + 40);
	z->directory = bytes_le64(b + 48);
	return 0;
}

int
zipend_check(int fd, uint64_t size, const char *name, uint64_t *n,
    struct err *e)
{
	struct zipend z = { 0, 0, 0, 0 };
	unsigned char b[ZIPEND_SIZE];
	int r;

	if (size < ZIPEND_SIZE)
		return err_set(e, ERR_DATA, "truncated: '%s' has %llu bytes, no "
		    "zip file", name, (unsigned long long)size);
	if ((r = seekable_pread(fd, b, 4, 0, name, e)) < 0)
		return r;
	if (memcmp(b, "PK\3\4", 4) != 0 && memcmp(b, "PK\5\6", 4) != 0)
		return err_set(e, ERR_DATA, "corrupt: '%s' is no zip file",
		    name);
	z.at = size - ZIPEND_SIZE;
	if ((r = seekable_pread(fd, b, ZIPEND_SIZE, z.at, name, e)) < 0)
		return r;
	if (memcmp(b, "PK\5\6", 4) != 0 || bytes_le16(b + 20) != 0)
		return err_set(e, ERR_DATA, "truncated: '%s' does not end with "
		    "the end record of a zip file", name);
	z.entries = bytes_le16(b + 10);
	z.size = bytes_le32(b + 12);
	z.directory = bytes_le32(b + 16);
	if ((r = zipend_64(&z, fd, name, e)) < 0)
		return r;
	if (z.size > z.at || z.directory != z.at - z.size ||
	    (z.size == 0) != (z.entries == 0))
		return zipend_bad(name, e);
	if (z.size > ZIPEND_MAX_DIRECTORY)
		return err_set(e, ERR_DATA, "limit: directory of '%s' has %llu "
		    "bytes, at most %d", name, (unsigned long long)z.size,
		    ZIPEND_MAX_DIRECTORY);
	*n = z.entries;
	return 0;
}
