#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/magic.h"

#define TORCH "a torch.save file (ace-import and ace-diff read what " \
    "safetensors.torch.save_file writes)"

static const struct {
	size_t at, n;
	const char *bytes, *name;
	int packed;		/* 1: base/arc.h reads it */
} magic[] = {
	{ 257, 5, "ustar", "a tar archive (unpack it with tar -xO)", 1 },
	{ 0, 3, "\x1f\x8b\x08", "a gzip file (unpack it with gzip -dc)", 1 },
	{ 0, 6, "\xfd" "7zXZ", "an xz file (unpack it with xz -dc)", 1 },
	{ 0, 4, "\x28\xb5\x2f\xfd", "a zstd file (unpack it with zstd -dc)", 1 },
	{ 0, 4, "\x04\x22\x4d\x18", "an lz4 file (unpack it with lz4 -dc)", 1 },
	{ 1, 3, "\x2a\x4d\x18", "a zstd file (unpack it with zstd -dc)", 1 },
	{ 0, 3, "BZh", "a bzip2 file (unpack it with bzip2 -dc)", 1 },
	{ 0, 4, "PK\5\6", "an empty zip archive", 1 },
	{ 0, 6, "\x93NUMPY", "an npy array (ace-import -f npy)", 0 },
	{ 0, 4, "\x89HDF", "an HDF5 file", 0 },
	{ 0, 5, "\x80\x02\x8a\nl", TORCH, 0 },
	{ 0, 4, "\xac" "ACE", "a stream of shards (ace-export reads it)", 0 },
	{ 0, 4, "GGUF", "a GGUF file, which no program of ace reads", 0 },
	{ 0, 4, "tjgg", "a GGML file, from before GGUF", 0 },
	{ 0, 4, "PAR1", "a Parquet file", 0 },
	{ 0, 6, "ARROW1", "an Arrow file", 0 },
	{ 0, 6, "Rar!\x1a\x07", "a RAR archive", 0 },
	{ 0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", 0 },
	{ 0, 4, "\x7f" "ELF", "a program or a library", 0 },
	{ 4, 4, "TFL3", "a TensorFlow Lite model", 0 }
};

enum { SKIPPABLE = 5, NMAGIC = sizeof(magic) / sizeof(magic[0]) };

/* Kinds of text, by their beginning after blanks, ignoring case. */
static const struct {
	const char *begin, *name;
} text[] = {
	{ "version https://git-lfs", "a Git LFS pointer in place of the file (run "
	    "'git lfs pull')" },
	{ "<!doctype html", "a page of HTML, maybe a server's answer in place of the "
	    "file" },
	{ "<html", "a page of HTML, maybe a server's answer in place of the file" },
	{ "<?xml", "XML, maybe a server's answer in place of the file" }
};

static const char plain[] = "text";

/* Return the length of the ASCII text at the beginning of p. */
static size_t
magic_print(const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n && (p[i] >= ' ' ? p[i] < 0x7f :
	    p[i] == '\t' || p[i] == '\n' || p[i] == '\r'); i++)
		continue;
	return i;
}

/* Return the name of the JSON object or list that p[n], n > 0, begins; NULL if it seems to be
 * none. */
static const char *
magic_json(const unsigned char *p, size_t n)
{
	static const char index[] = "\"weight_map\"";
	const unsigned char *end = p + n, *q;

	for (q = p + 1; q < end && strchr(" \t\r\n", *q) != NULL; q++)
		continue;
	if (q == end || (*p == '{' ? *q != '"' && *q != '}' :
	    *p != '[' || strchr("]{[\"-0123456789", *q) == NULL))
		return NULL;
	for (q = p; q + sizeof(index) - 1 <= end; q++)
		if (memcmp(q, index, sizeof(index) - 1) == 0)
			return "the index of a model in several files (give ace-diff or "
			    "ace-patch its folder)";
	return "JSON, maybe a server's answer in place of the file";
}

static const char *
magic_text(const unsigned char *p, size_t n)
{
	const size_t mark = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	const size_t all = mark + magic_print(p + mark, n - mark);
	const unsigned char *end = p + all;
	const char *name;
	size_t i, k;

	p += mark;
	while (p < end && strchr(" \t\r\n", *p) != NULL)
		p++;
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		k = strlen(text[i].begin);
		if ((size_t)(end - p) >= k &&
		    strncasecmp((const char *)p, text[i].begin, k) == 0)
			return text[i].name;
	}
	name = p < end ? magic_json(p, (size_t)(end - p)) : NULL;
	/* 32 bytes of text are not a coincidence */
	return name != NULL || all < n || n < 32 ? name : plain;
}

/* Return 1 if p[n] has the opcodes that begin a pickle, after its version. */
static int
magic_pickle(const unsigned char *p, size_t n)
{
	static const char first[] = "}](c)XKMNGJT\x8c\x95";

	return n > 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5 &&
	    memchr(first, p[2], sizeof(first) - 1) != NULL;
}

/* Return the name for a zip archive that begins with p[n]. An archive of torch.save begins
 * with NAME/data.pkl. */
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
	return "a zip archive (unpack it with unzip -p; ace-import reads .npz)";
}

int
magic_safetensors(const unsigned char *p, size_t n)
{
	return n > 8 && bytes_le64(p) < (uint64_t)1 << 28 && p[8] == '{';
}

size_t
magic_passed(const unsigned char p[8])
{
	return (p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0 ?
	    8 + (size_t)bytes_le32(p + 4) : 0;
}

/* Return the index in magic[] of the kind that p[n] begins, or NMAGIC. */
static size_t
magic_find(const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < NMAGIC; i++)
		if (magic[i].at + magic[i].n <= n &&
		    memcmp(p + magic[i].at, magic[i].bytes, magic[i].n) == 0 &&
		    (i != SKIPPABLE || (p[0] & 0xf0) == 0x50))
			return i;
	return NMAGIC;
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
	if (magic_safetensors(p, n))
		return "a safetensors file (ace-import -f safetensors)";
	if (magic_pickle(p, n))
		return "a Python pickle, which is not read here since it can run "
		    "programs (ace-import and ace-diff read what "
		    "safetensors.torch.save_file writes)";
	return magic_text(p, n);
}

const char *
magic_say(const unsigned char *p, size_t n, const char *if_text,
    char out[MAGIC_WORDS])
{
	const char *name = magic_name(p, n);
	size_t k = magic_print(p, n < 64 ? n : 64), i;

	if (name != NULL && name != plain) {
		(void)snprintf(out, MAGIC_WORDS, ": this is %s", name);
	} else if (k >= 4) {
		for (; k > 1 && (*p == '\n' || *p == '\r'); p++)	/* empty lines */
			k--;
		for (i = 0; i < k && p[i] != '\n' && p[i] != '\r'; i++)
			continue;
		(void)snprintf(out, MAGIC_WORDS, ": it begins with '%.*s'%s",
		    (int)i, (const char *)p, if_text);
	} else {
		k = (size_t)snprintf(out, MAGIC_WORDS, ": it begins with the bytes");
		for (i = 0; i < n && i < 8; i++)
			k += (size_t)snprintf(out + k, MAGIC_WORDS - k, " %02x", p[i]);
		if (n == 0)
			out[0] = '\0';
	}
	return out;
}
