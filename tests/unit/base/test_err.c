#include <errno.h>

#include "base/err.h"

#include "../test.h"

static int
says(const struct err *e, const char *want)
{
	return strcmp(ERR_MSG(e), want) == 0;
}

TEST(test_set)
{
	struct err e = ERR_INIT, all = ERR_INIT;

	ok(says(&e, ""), "no error at first");
	ok(err_set(&e, ERR_DATA, "corrupt: %s", "limit: x") == -ERR_DATA &&
	    e.code == ERR_DATA && e.kind == ERR_CORRUPT &&
	    says(&e, "corrupt: limit: x"), "the kind is the format's: %s",
	    ERR_MSG(&e));
	ok(err_set(&e, ERR_SYS, "later") == -ERR_SYS && e.code == ERR_DATA &&
	    says(&e, "corrupt: limit: x"), "the first error stays");
	err_clear(&e);
	ok(says(&e, "") && e.code == ERR_OK && e.kind == ERR_PLAIN,
	    "cleared");
	ok(err_set(&e, ERR_USAGE, "%s", "corrupt: is a name") == -ERR_USAGE &&
	    e.kind == ERR_PLAIN, "a kind is never read out of the words");
	err_clear(&e);
	{
		char name[4096];
		const char *s;

		(void)memset(name, 'n', sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		errno = ENOENT;
		ok(err_sys(&e, "cannot open '%s' for writing", name) == -ERR_SYS &&
		    strncmp(ERR_MSG(&e), "cannot open 'nnn", 16) == 0 &&
		    (s = strstr(ERR_MSG(&e), "n...n")) != NULL &&
		    strstr(s, "n' for writing: ") != NULL &&
		    strcmp(strstr(s, ": ") + 2, strerror(ENOENT)) == 0,
		    "of a long name the middle goes, not what is wrong: %.20s...",
		    ERR_MSG(&e));
		(void)err_before(&e, 0, "%s: ", "first");
		ok(strncmp(ERR_MSG(&e), "first: cannot open '", 20) == 0 &&
		    strcmp(ERR_MSG(&e) + strlen(ERR_MSG(&e)) -
		    strlen(strerror(ENOENT)), strerror(ENOENT)) == 0,
		    "nor when more is said");
		err_clear(&e);
	}
	ok(err_set(NULL, ERR_DATA, "x") == -ERR_DATA &&
	    err_file(NULL, -3, "x") == -3 && err_after(NULL, -3, "x") == -3,
	    "without anybody who wants to know");
	errno = ENOENT;
	ok(err_sys(&all, "'%s'", "f") == -ERR_SYS &&
	    says(&all, "'f': No such file or directory"), "%s", ERR_MSG(&all));
	err_clear(&e);
	ok(err_move(&e, &all) == -ERR_SYS && says(&e, ERR_MSG(&all)) &&
	    e.code == ERR_SYS, "moved");
	err_clear(&all);
	(void)err_set(&all, ERR_DATA, "corrupt: later");
	ok(err_move(&e, &all) == -ERR_DATA && e.code == ERR_SYS &&
	    says(&e, "'f': No such file or directory"),
	    "moved to one that is set: the first stays");
}

TEST(test_place)
{
	struct err e = ERR_INIT;

	ok(err_data(&e, 0, "truncated: empty input") == -ERR_DATA &&
	    says(&e, "truncated: empty input, at byte 0"), "%s", ERR_MSG(&e));
	err_clear(&e);
	(void)err_data(&e, 5, "corrupt: payload");
	(void)err_before(&e, 0, "line %d: ", 3);
	(void)err_after(&e, 0, " (%s)", "DATA");
	ok(err_shard(&e, -3, 2, "edge\n1", 42, 64) == -3 &&
	    says(&e, "corrupt: line 3: payload (DATA), shard 2 'edge?1/42', "
	    "at byte 64"), "%s", ERR_MSG(&e));
	(void)err_file(&e, 0, "in");
	(void)err_file(&e, 0, "other");
	ok(says(&e, "corrupt: line 3: payload (DATA), shard 2 'edge?1/42', "
	    "at byte 64, file 'in'"), "the first file: %s", ERR_MSG(&e));
	ok(strcmp(e.text, "line 3: payload (DATA)") == 0 &&
	    strcmp(e.file, "in") == 0 && e.byte == 64 && e.shard == 2 &&
	    e.step == 42, "each of them is kept apart");
	err_clear(&e);
	(void)err_file(&e, err_set(&e, ERR_SYS, "'in': gone"), "in");
	ok(says(&e, "'in': gone"), "a name is said once: %s", ERR_MSG(&e));
	e.file[1] = '\0';
	ok(says(&e, "'in': gone, file 'i'"), "another file: %s", ERR_MSG(&e));
}

/* Valid visible UTF-8 is kept; each byte of anything else becomes '?'. */
TEST(test_seen)
{
	struct err e = ERR_INIT;

	(void)err_set(&e, ERR_SYS, "\xc3\xa9 \x9b" "31m \xc2\x9b \xe2\x80\xae "
	    "\xc3 \xff \xf0\x9f\x98\x80 \xc0\x9b \xe0\x82\x9b \xed\xa0\x80 \xf4\x90\x80\x80 "
	    "\xe2\x82");
	ok(says(&e, "\xc3\xa9 ?31m ?? ??? ? ? \xf0\x9f\x98\x80 ?? ??? ??? ???? ??"), "%s",
	    ERR_MSG(&e));
}

/* If all arguments are too long, the message still fits the buffer and has its place. */
TEST(test_long)
{
	char word[2000];
	struct err e = ERR_INIT;

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	(void)err_set(&e, ERR_DATA, "unsupported: %s", word);
	(void)err_before(&e, 0, "%s", word);
	(void)err_after(&e, 0, "%s", word);
	(void)err_shard(&e, 0, UINT64_MAX, word, UINT64_MAX, UINT64_MAX);
	(void)err_file(&e, 0, word);
	ok(strlen(ERR_MSG(&e)) < ERR_LINE &&
	    strstr(ERR_MSG(&e), ", at byte 18446744073709551615, file '...x") !=
	    NULL, "the place is never what is cut: %zu bytes", strlen(ERR_MSG(&e)));
}
