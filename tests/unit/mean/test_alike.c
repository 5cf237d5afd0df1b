/*
 * Devices that state a digest of their model: the one that the majority contradicts is
 * blamed, none without a majority, and versions are compared separately.
 */
#include <stdint.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "format/shard.h"
#include "format/writer.h"
#include "mean/alike.h"
#include "mean/gather.h"

#include "../tap.h"
#include "../model.h"

enum { FILES = 6 };

static struct err e;
static char dir[] = "/tmp/ace-alike.XXXXXX";
static char paths[FILES][64];
static char *path[FILES];

/* Make device i state this digest ("-": none) of this version. */
static void
say(int i, char digest, char version)
{
	const char word[2] = { digest, '\0' }, device[2] = { (char)('a' + i), '\0' };
	struct writer_opts o = { "test", NULL, 0 };
	struct schema sc = model_of(4, 0, 4);
	float x[4] = { 1, 2, 3, 4 };
	struct writer *w;
	struct shard s;
	struct io *io;

	(void)snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	path[i] = paths[i];
	shard_init(&s);
	s.step = 7;
	s.base_version = (uint64_t)(version - '0');
	(void)shard_set_run(&s, "run", &e);
	(void)shard_set_device(&s, device, &e);
	if (digest != '-')
		(void)text_set(&s.kv, SHARD_KEY_MODEL, word, &e);
	(void)io_create(&io, path[i], 0, &e);
	(void)writer_open(&w, io, &o, &e);
	(void)writer_shard(w, &s, &sc, &e);
	(void)writer_values(w, 0, x, 4, &e);
	(void)writer_send(w, NULL, &e);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	shard_release(&s);
	schema_release(&sc);
}

/* Return the device at fault as a letter; '=': all are alike; '?': undecided. left: the
 * device left out, or -1. *put: the digest of the sum, '-' for none. */
static char
fault(const char *digests, const char *versions, int left, char *put)
{
	const size_t n = strlen(digests);
	struct reader_opts o = { .max_elements = 0 };
	struct text_kv kv = TEXT_KV_INIT;
	struct gather *g;
	char c = '!';
	size_t i;
	int r;

	err_clear(&e);
	for (i = 0; i < n; i++)
		say((int)i, digests[i], versions[i]);
	if (gather_many(&g, 7, path, n, 0, &o, &e) == 0 && gather_step(g, &e) == 1) {
		r = alike_check(g, &e);
		c = r == 0 ? '=' : r != -ERR_DATA ? '!' : gather_blamed(g) == 0 ?
		    '?' : (char)('a' + gather_blamed(g) - 1);
		for (i = 0; i < n; i++)
			gather_leave(g, i, shard_device(gather_shard(g, i))[0]
			    == 'a' + left);
		if (alike_put(g, &kv, &e) < 0)
			c = '!';
	}
	*put = text_get(&kv, SHARD_KEY_MODEL) == NULL ? '-' :
	    text_get(&kv, SHARD_KEY_MODEL)[0];
	text_release(&kv);
	gather_free(g);
	return c;
}

TEST(test_alike)
{
	static const struct {
		const char *digests, *versions;
		int left;
		char fault, put;
	} t[] = {
		{ "111", "777", -1, '=', '1' },
		{ "1", "7", -1, '=', '1' },
		{ "---", "777", -1, '=', '-' },
		/* a device without a digest is not compared, and the sum has none */
		{ "1-1", "777", -1, '=', '-' },
		{ "1-1", "777", 1, '=', '1' },
		{ "-11", "777", 0, '=', '1' },
		/* one against two, at any position and in any order */
		{ "112", "777", -1, 'c', '-' },
		{ "121", "777", -1, 'b', '-' },
		{ "122", "777", -1, 'a', '-' },
		{ "122", "777", 0, 'a', '2' },
		{ "12233", "77777", -1, '?', '-' },
		{ "12333", "77777", -1, 'a', '-' },
		{ "33312", "77777", -1, 'd', '-' },
		{ "12", "77", -1, '?', '-' },
		{ "12-", "777", -1, '?', '-' },
		/* models of two versions are different models; within a version they are
		 * compared */
		{ "12", "78", -1, '=', '-' },
		{ "11", "78", -1, '=', '-' },
		{ "12", "78", 1, '=', '1' },
		{ "11233", "88877", -1, 'c', '-' },
		{ "11233", "77788", -1, 'c', '-' },
		{ "11211", "78787", -1, 'c', '-' },
		{ "211211", "787878", -1, 'a', '-' },
	};
	char c, put;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		c = fault(t[i].digests, t[i].versions, t[i].left, &put);
		ok(c == t[i].fault && put == t[i].put, "%s of %s: %c, %c (%s)",
		    t[i].digests, t[i].versions, c, put, ERR_MSG(&e));
	}
	(void)fault("112", "777", -1, &put);
	ok(strstr(ERR_MSG(&e), "'c' has model 2, most devices have 1: give it "
	    "their model and begin again at step 7") != NULL, "%s", ERR_MSG(&e));
}

int
main(void)
{
	int i;

	if (mkdtemp(dir) == NULL)
		return 99;
	run_tests();
	for (i = 0; i < FILES; i++)
		if (path[i] != NULL)
			(void)unlink(path[i]);
	(void)rmdir(dir);
	return done_testing();
}
