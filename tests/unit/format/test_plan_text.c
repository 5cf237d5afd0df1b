/* A plan as text, written and read, and the line named in errors. */
#include "../tap.h"
#include "base/alloc.h"
#include "base/err.h"
#include "format/plan_text.h"
#include "format/schema.h"
#include "format/shard.h"

static struct err e;
static char path[] = "/tmp/test_plan.XXXXXX";

static int
from(struct plan_text *t, const char *text, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (f == NULL || fwrite(text, 1, n, f) != n || fclose(f) != 0)
		abort();
	err_clear(&e);
	return plan_text_read(t, path, &e);
}

static void
refused(const char *text, const char *want)
{
	struct plan_text t;

	ok(from(&t, text, strlen(text)) == -ERR_USAGE && t.p == NULL &&
	    strstr(ERR_MSG(&e), want) != NULL, "%s", ERR_MSG(&e));
}

TEST(test_good)
{
	static const char good[] = "# shard 'edge1/7'\n\n0 q8 a name\r\n"
	    "\t2\ttopk:0.25 b\n  # 3 q4\n5 f16";
	struct plan_text t;

	ok(from(&t, good, strlen(good)) == 0 && t.n == 6,
	    "six groups: %s", ERR_MSG(&e));
	ok(t.p[0].codec == CODEC_Q8 && t.p[2].codec == CODEC_TOPK &&
	    t.p[2].arg == 0.25f && t.p[5].codec == CODEC_F16,
	    "each line its group's");
	ok(t.p[1].codec == CODEC_NONE && t.p[3].codec == CODEC_NONE &&
	    t.p[4].codec == CODEC_NONE, "those without are not sent");
	plan_text_release(&t);
	ok(from(&t, "", 0) == 0 && t.n == 0, "nothing sends nothing");
	plan_text_release(&t);
}

TEST(test_put)
{
	static const char want[] = "# shard 'edge1/7'\n1 q8 w\n2 topk:0.25 v\n";
	struct codec_plan p = { CODEC_Q8, 0, 0 };
	struct schema_tensor w = { .name = (char[]){ "w" }, .ndim = 1,
	    .dim = { 100 } }, v = { .name = (char[]){ "v" } };
	struct schema sc = SCHEMA_INIT;
	struct buf b = BUF_INIT;
	struct plan_text t;
	struct shard s;
	int r;

	shard_init(&s);
	s.step = 7;
	sc.group_size = 64;
	r = shard_set_device(&s, "edge1", &e) < 0 ||
	    schema_add(&sc, &w, &e) < 0 || schema_add(&sc, &v, &e) < 0 ||
	    schema_finish(&sc, &e) < 0 || plan_text_head(&b, &s, &e) < 0 ||
	    plan_text_put(&b, &sc, 1, &p, &e) < 0 ||
	    codec_parse("topk:0.25", &p, &e) < 0 ||
	    plan_text_put(&b, &sc, 2, &p, &e) < 0;
	ok(r == 0 && b.n == strlen(want) && memcmp(b.p, want, b.n) == 0,
	    "the shard, then each group with its codec and its tensor");
	ok(from(&t, (const char *)b.p, b.n) == 0 && t.n == 3 &&
	    t.p[1].codec == CODEC_Q8 && t.p[2].arg == 0.25f, "and back");
	plan_text_release(&t);
	buf_release(&b);
	schema_release(&sc);
	shard_release(&s);
}

int
main(void)
{
	struct plan_text t;
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	(void)close(fd);
	run_tests();
	refused("0 q8\n1 q8\n1 q4\n", "line 3: group 1 occurs twice or is out of order");
	refused("3 q8\n2 q4\n", "line 2: group 2 occurs twice or is out of order");
	refused("0\n", "line 1: group 0 has no codec");
	refused("67108864 q8\n", "line 1: group 67108864 is too large");
	refused("# one\n\nx q8\n", "line 3: group 'x' is not a whole number");
	refused("0 q9\n", "line 1: ");
	ok(from(&t, "0 q8\n\0001 q8\n", 11) == -ERR_USAGE &&
	    strstr(ERR_MSG(&e), "expected text") != NULL, "%s", ERR_MSG(&e));
	(void)unlink(path);
	err_clear(&e);
	ok(plan_text_read(&t, path, &e) == -ERR_SYS, "%s", ERR_MSG(&e));
	return done_testing();
}
