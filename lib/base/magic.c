#include <string.h>

#include "base/bytes.h"
#include "base/magic.h"

#define TORCH "a torch.save file (ace-import reads what " \
    "safetensors.torch.save_file writes)"

static const struct {
	size_t at, n;
	const char *bytes, *name;
	int packed;		/* base/arc.h reads it */
} magic[] = {
	/* first: where TAR is */
	{ 257, 5, "ustar", "a tar archive (tar -xO)", 1 },
	{ 0, 2, "\x1f\x8b", "a gzip file (gzip -dc)", 1 },
	{ 0, 6, "\xfd" "7zXZ", "an xz file (xz -dc)", 1 },
	{ 0, 4, "\x28\xb5\x2f\xfd", "a zstd file (zstd -dc)", 1 },
	{ 0, 4, "\x04\x22\x4d\x18", "an lz4 file (lz4 -dc)", 1 },
	{ 0, 3, "BZh", "a bzip2 file (bzip2 -dc)", 1 },
	{ 0, 2, "\x1f\x9d", "a compressed file (zcat)", 1 },
	{ 0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", 1 },
	{ 0, 6, "070701", "a cpio archive", 1 },
	{ 0, 6, "070702", "a cpio archive", 1 },
	{ 0, 6, "070707", "a cpio archive", 1 },
	{ 0, 2, "\xc7\x71", "a cpio archive", 1 },
	{ 0, 4, "PK\5\6", "an empty zip archive", 1 },
	{ 0, 6, "\x93NUMPY", "an npy array (ace-import -f npy)", 0 },
	{ 0, 4, "\x89HDF", "an HDF5 file", 0 },
	{ 0, 5, "\x80\x02\x8a\nl", TORCH, 0 },
	{ 0, 4, "GGUF", "a GGUF file", 0 }
};

enum { TAR = 0, NMAGIC = sizeof(magic) / sizeof(magic[0]) };

/* A zip archive of torch.save begins with NAME/data.pkl. */
static const char *
magic_zip(const unsigned char *p, size_t n)
{
	static const char pickle[] = "/data.pkl";
	const size_t m = sizeof(pickle) - 1;
	size_t i, end;

	if (n >= 30) {
		end = 30 + (size_t)bytes_le16(p + 26);
		for (i = 30; i + m <= end && i + m <= n; i++)
			if (memcmp(p + i, pickle, m) == 0)
				return TORCH;
	}
	return "a zip archive (unzip -p; ace-import reads .npz)";
}

/* A tar from before POSIX has no name for itself, but the sum of its head in it,
 * counted with blanks in its own place. */
static int
magic_tar(const unsigned char *p, size_t n)
{
	enum { HEAD = 512, SUM = 148, DIGITS = 8 };
	unsigned sum = DIGITS * ' ', said = 0;
	size_t i;

	if (n < HEAD || p[0] == '\0')
		return 0;
	for (i = 0; i < HEAD; i++)
		sum += i < SUM || i >= SUM + DIGITS ? p[i] : 0;
	for (i = SUM; i < SUM + DIGITS - 1 && p[i] == ' '; i++)
		continue;
	for (; i < SUM + DIGITS && p[i] >= '0' && p[i] <= '7'; i++)
		said = 8 * said + (unsigned)(p[i] - '0');
	return said == sum;
}

/* The place in the table of what begins so, or of none. */
static size_t
magic_find(const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < NMAGIC; i++)
		if (magic[i].at + magic[i].n <= n &&
		    memcmp(p + magic[i].at, magic[i].bytes, magic[i].n) == 0)
			return i;
	return magic_tar(p, n) ? TAR : NMAGIC;
}

int
magic_packed(const unsigned char *p, size_t n)
{
	size_t i;

	if (n >= 4 && memcmp(p, "PK\3\4", 4) == 0)
		return strcmp(magic_zip(p, n), TORCH) != 0;
	i = magic_find(p, n);
	return i < NMAGIC && magic[i].packed;
}

const char *
magic_name(const unsigned char *p, size_t n)
{
	size_t i;

	if (n >= 4 && memcmp(p, "PK\3\4", 4) == 0)
		return magic_zip(p, n);
	if ((i = magic_find(p, n)) < NMAGIC)
		return magic[i].name;
	if (n > 8 && bytes_le64(p) < (uint64_t)1 << 28 && p[8] == '{')
		return "a safetensors file (ace-import)";
	return NULL;
}
