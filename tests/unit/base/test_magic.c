/* Kinds of files, each with the fewest bytes that identify it; tar, torch.save; unknown bytes. */
#include "../test.h"
#include "base/magic.h"

static const struct {
	const char *bytes;
	size_t n;
	const char *want;	/* beginning of the expected kind's name */
	int packed;
} kinds[] = {
	{ "\x1f\x8b\x08", 3, "a gzip file (unpack it with gzip -dc)", 1 },
	{ "\xfd" "7zXZ", 6, "an xz file (unpack it with xz -dc)", 1 },
	{ "\x28\xb5\x2f\xfd", 4, "a zstd file (unpack it with zstd -dc)", 1 },
	{ "\x04\x22\x4d\x18", 4, "an lz4 file (unpack it with lz4 -dc)", 1 },
	{ "\x50\x2a\x4d\x18", 4, "a zstd file (unpack it with zstd -dc)", 1 },
	{ "\x5f\x2a\x4d\x18", 4, "a zstd file (unpack it with zstd -dc)", 1 },
	{ "BZh", 3, "a bzip2 file (unpack it with bzip2 -dc)", 1 },
	{ "PK\5\6", 4, "an empty zip archive", 1 },
	{ "PK\3\4", 4, "a zip archive (unpack it with unzip -p; ace-import reads .npz)", 1 },
	{ "\x93NUMPY", 6, "an npy array (ace-import -f npy)", 0 },
	{ "\x89HDF", 4, "an HDF5 file", 0 },
	{ "\x80\x02\x8a\nl", 5, "a torch.save file (", 0 },
	{ "\xac" "ACE", 4, "a stream of shards", 0 },
	{ "GGUF", 4, "a GGUF file", 0 },
	{ "tjgg", 4, "a GGML file", 0 },
	{ "PAR1", 4, "a Parquet file", 0 },
	{ "ARROW1", 6, "an Arrow file", 0 },
	{ "Rar!\x1a\x07", 6, "a RAR archive", 0 },
	{ "7z\xbc\xaf\x27\x1c", 6, "a 7z archive", 0 },
	{ "\x7f" "ELF", 4, "a program or a library", 0 },
	{ "\0\0\0\0TFL3", 8, "a TensorFlow Lite model", 0 },
	{ "\x80\4\x95", 3, "a Python pickle", 0 },
	{ "\x80\2}", 3, "a Python pickle", 0 },
	{ "version https://git-lfs", 23, "a Git LFS pointer", 0 },
	{ " \n<!DocType HTML", 16, "a page of HTML", 0 },
	{ "<HTML", 5, "a page of HTML", 0 },
	{ "<?xml", 5, "XML", 0 },
	{ "{\"", 2, "JSON", 0 },
	{ "\xef\xbb\xbf[ {", 6, "JSON", 0 },
	{ "\2\0\0\0\0\0\0\0{", 9, "a safetensors file (ace-import -f safetensors)", 0 }
};

TEST(test_kinds)
{
	unsigned char p[MAGIC_SIZE];
	const char *name;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		memset(p, 0, sizeof(p));
		memcpy(p, kinds[i].bytes, kinds[i].n);
		name = magic_name(p, sizeof(p));
		ok(name != NULL && strncmp(name, kinds[i].want,
		    strlen(kinds[i].want)) == 0, "%s", kinds[i].want);
		ok(magic_packed(p, sizeof(p)) == kinds[i].packed,
		    "it is%s unpacked here", kinds[i].packed ? "" : " not");
		ok(magic_name(p, kinds[i].n - 1) == NULL &&
		    !magic_packed(p, kinds[i].n - 1),
		    "with one byte less the kind is unknown");
	}
}

TEST(test_tar)
{
	static const char tar[] = "a tar archive (unpack it with tar -xO)";
	unsigned char p[MAGIC_SIZE] = { 0 };
	const char *name;

	memcpy(p + 257, "ustar", 5);
	name = magic_name(p, sizeof(p));
	ok(name != NULL && strcmp(name, tar) == 0 && magic_packed(p, 262),
	    "a tar is known by byte 257");
	ok(magic_name(p, 261) == NULL, "and not before");
	memcpy(p, "\x1f\x8b", 2);
	name = magic_name(p, sizeof(p));
	ok(name != NULL && strcmp(name, tar) == 0,
	    "a tar is known whatever its first name");
}

/* Return the name of the kind of a zip whose first entry is `first'; set *packed. */
static const char *
zip(const char *first, int *packed)
{
	unsigned char p[MAGIC_SIZE] = "PK\3\4";

	p[26] = (unsigned char)strlen(first);
	memcpy(p + 30, first, strlen(first));
	*packed = magic_packed(p, sizeof(p));
	return magic_name(p, sizeof(p));
}

TEST(test_torch)
{
	unsigned char p[MAGIC_SIZE] = "PK\3\4";
	int packed;

	ok(strncmp(zip("archive/data.pkl", &packed), "a torch.save file", 17) ==
	    0 && !packed, "what torch.save writes is no zip to unpack");
	ok(strncmp(zip("archive/data.pk", &packed), "a zip archive", 13) == 0 &&
	    packed, "with another first name it is a zip archive");
	p[26] = 4;
	memcpy(p + 30, "name/data.pkl", 13);
	ok(strncmp(magic_name(p, sizeof(p)), "a zip archive", 13) == 0,
	    "bytes after the name do not matter");
}

TEST(test_none)
{
	unsigned char p[MAGIC_SIZE] = { 0 };

	ok(magic_name(p, sizeof(p)) == NULL && !magic_packed(p, sizeof(p)),
	    "zeros have no kind");
	p[8] = '{';
	p[3] = 0x10;
	ok(magic_name(p, sizeof(p)) == NULL,
	    "a header of 256 MiB is not safetensors");
	p[3] = 0x0f;
	ok(magic_name(p, sizeof(p)) != NULL, "a shorter one may be");
	memset(p, 0, sizeof(p));
	memcpy(p, "\x4f\x2a\x4d\x18", 4);
	ok(magic_name(p, sizeof(p)) == NULL, "a frame that is not passed over");
}
