/*
 * A model-sized array in a state: its header, its groups, and files refused in its place.
 */
#include <sys/stat.h>

#include "../tap.h"
#include "base/err.h"
#include "device/dense.h"

enum { G = 4, GROUPS = 5 };

static char dir[] = "/tmp/test_dense.XXXXXX";
static struct statedir state = STATE_INIT;
static struct schema schema = SCHEMA_INIT;
static struct shard of;
static struct err e = ERR_INIT;

/* Groups of four: zeros; 0 and three more; not written; the last value only; the first
 * only, v. */
static int
write_array(float v)
{
	const float x[GROUPS][G] = { { 0, -0.0f, 0, 0 }, { 0, 1, 2, 3 }, { 0 },
	    { 0, 0, 0, -4 }, { v, 0, 0, 0 } };
	struct text_kv kv = TEXT_KV_INIT;
	struct writer *w = NULL;
	uint32_t g;
	int r;

	r = text_set(&kv, "key", "value", &e);
	if (r == 0)
		r = dense_create(&w, &state, "array", &of, SHARD_HISTORY, &kv,
		    &schema, &e);
	for (g = 0; g < GROUPS && r == 0; g++)
		if (g != 2)
			r = dense_put(w, g, x[g], G, &e);
	if (r == 0 && (r = writer_send(w, NULL, &e)) == 0)
		r = writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	text_release(&kv);
	return r;
}

TEST(test_groups)
{
	struct dense d, later;
	const float *x;

	ok(dense_open(&d, &state, "array", SHARD_HISTORY, &e) == 0 &&
	    d.r == NULL && strcmp(d.stamp, "none") == 0 &&
	    dense_group(&d, 3, &x, &e) == 0 && x == NULL &&
	    dense_check(&d, &of, &schema, &e) == 0,
	    "no file: zeros, and nothing to disagree with");
	ok(write_array(7) == 0 &&
	    dense_open(&d, &state, "array", SHARD_HISTORY, &e) == 0,
	    "written %s", ERR_MSG(&e));
	ok(write_array(8) == 0 &&
	    dense_open(&later, &state, "array", SHARD_HISTORY, &e) == 0 &&
	    strcmp(d.stamp, later.stamp) != 0 && strlen(d.stamp) == 32,
	    "other values, another stamp: %s, %s", d.stamp, later.stamp);
	ok(dense_group(&d, 0, &x, &e) == 0 && x == NULL,
	    "zeros are left out");
	ok(dense_group(&d, 1, &x, &e) == 0 && x != NULL && x[0] == 0 &&
	    x[1] == 1 && x[3] == 3, "a group that begins with 0");
	ok(dense_group(&d, 2, &x, &e) == 0 && x == NULL, "one not put");
	ok(dense_group(&d, 3, &x, &e) == 0 && x != NULL && x[3] == -4,
	    "one that ends with something");
	ok(dense_group(&d, 4, &x, &e) == 0 && x != NULL && x[0] == 7,
	    "a later commit does not change what is read");
	ok(dense_group(&later, 3, &x, &e) == 0 && x != NULL && x[3] == -4 &&
	    dense_group(&later, 4, &x, &e) == 0 && x != NULL && x[0] == 8,
	    "groups may be passed over");
	ok(dense_group(&later, 5, &x, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "corrupt: group 5 is absent from '") != NULL,
	    "there is none behind the last: %s", ERR_MSG(&e));
	dense_close(&d);
	dense_close(&later);
	err_clear(&e);
	ok(write_array(7) == 0 &&
	    dense_open(&later, &state, "array", SHARD_HISTORY, &e) == 0 &&
	    strcmp(d.stamp, later.stamp) == 0, "the same array, the same stamp");
	dense_close(&later);
}

TEST(test_says)
{
	struct dense d;
	const struct shard *s;

	if (dense_open(&d, &state, "array", SHARD_HISTORY, &e) < 0) {
		ok(0, "%s", ERR_MSG(&e));
		return;
	}
	s = reader_shard(d.r);
	ok(s->step == of.step && s->incarnation == 3 && strcmp(shard_run(s), "run") == 0 &&
	    strcmp(shard_device(s), "edge1") == 0 &&
	    s->kind == SHARD_HISTORY, "run, device, step, incarnation, kind");
	ok(s->weight == 1 && s->samples == 0 && s->deadline == 0 &&
	    s->created == 0 && text_get(&s->kv, "mine") == NULL &&
	    text_get(&s->kv, "key") != NULL, "nothing else, but for its keys");
	dense_close(&d);
	ok(dense_open(&d, &state, "array", SHARD_RESIDUAL, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "corrupt: the file has no shard of kind residual") != NULL,
	    "another kind is refused: %s", ERR_MSG(&e));
	err_clear(&e);
}

/* Return 1 if a shard of that run, device and model is refused with this message. */
static int
differs(const char *run, const char *device, uint32_t size, const char *why)
{
	struct schema_tensor t = { .name = (char *)(uintptr_t)"w", .ndim = 1,
	    .dim = { size } };
	struct schema sc = SCHEMA_INIT;
	struct shard s;
	struct dense d;
	int r;

	shard_init(&s);
	sc.group_size = G;
	err_clear(&e);
	if ((r = shard_set_run(&s, run, &e)) == 0 &&
	    (r = shard_set_device(&s, device, &e)) == 0 &&
	    (r = schema_add(&sc, &t, &e)) == 0 &&
	    (r = schema_finish(&sc, &e)) == 0 &&
	    (r = dense_open(&d, &state, "array", SHARD_HISTORY, &e)) == 0) {
		r = dense_check(&d, &s, &sc, &e);
		dense_close(&d);
	}
	schema_release(&sc);
	shard_release(&s);
	return why == NULL ? r == 0 :
	    r == -ERR_DATA && strncmp(ERR_MSG(&e), why, strlen(why)) == 0;
}

TEST(test_check)
{
	ok(differs("run", "edge1", G * GROUPS, NULL), "its own");
	ok(differs("run2", "edge1", G * GROUPS, "mismatch: the shard is of run "
	    "'run2', but the state of run 'run': give another state directory"), "another run");
	ok(differs("run", "edge2", G * GROUPS, "mismatch: the shard is of device "
	    "'edge2', but the state of device 'edge1': give another state directory"), "another device");
	ok(differs("run", "edge1", G * GROUPS - 1, "mismatch: '") &&
	    strstr(ERR_MSG(&e), "is of another model: ") != NULL,
	    "another model: %s", ERR_MSG(&e));
}

/* Return 1 if the file is refused with that status and word. */
static int
refused(int status, const char *word)
{
	struct dense d;
	int r;

	err_clear(&e);
	r = dense_open(&d, &state, "other", SHARD_HISTORY, &e);
	dense_close(&d);
	return r == -status && strncmp(ERR_MSG(&e), word, strlen(word)) == 0 &&
	    strstr(ERR_MSG(&e), "/other'") != NULL;
}

TEST(test_place)
{
	char *path = statedir_path(&state, "other", &e);
	char *array = statedir_path(&state, "array", &e);
	struct stat st;
	FILE *f;

	ok(mkdir(path, 0700) == 0 && refused(ERR_DATA, "corrupt: "),
	    "a directory: %s", ERR_MSG(&e));
	(void)rmdir(path);
	ok(mkfifo(path, 0600) == 0 && refused(ERR_DATA, "corrupt: "),
	    "a pipe, which is not waited for: %s", ERR_MSG(&e));
	(void)unlink(path);
	ok(symlink("array", path) == 0 && refused(ERR_SYS, "'"),
	    "a symbolic link: %s", ERR_MSG(&e));
	(void)unlink(path);
	f = fopen(path, "w");
	ok(f != NULL && fclose(f) == 0 && refused(ERR_DATA, "truncated: "),
	    "an empty file: %s", ERR_MSG(&e));
	ok(link(array, path) != 0 && unlink(path) == 0 &&
	    link(array, path) == 0 && stat(path, &st) == 0 &&
	    truncate(path, st.st_size - 8) == 0 &&
	    refused(ERR_DATA, "truncated: "), "without its end: %s",
	    ERR_MSG(&e));
	(void)unlink(path);
	(void)unlink(array);
	free(path);
	free(array);
}

int
main(void)
{
	struct schema_tensor t = { .name = (char *)(uintptr_t)"w", .ndim = 1,
	    .dim = { G * GROUPS } };

	schema.group_size = G;
	shard_init(&of);
	of.step = 1ull << 33;
	of.incarnation = 3;
	of.weight = 2;
	of.samples = 9;
	of.created = of.deadline = 77;
	if (mkdtemp(dir) == NULL || statedir_open(&state, dir, &e) < 0 ||
	    schema_add(&schema, &t, &e) < 0 || schema_finish(&schema, &e) < 0 ||
	    shard_set_run(&of, "run", &e) < 0 ||
	    shard_set_device(&of, "edge1", &e) < 0 ||
	    text_set(&of.kv, "mine", "yes", &e) < 0) {
		perror(dir);
		return 1;
	}
	run_tests();
	shard_release(&of);
	schema_release(&schema);
	statedir_close(&state);
	(void)rmdir(dir);
	return done_testing();
}
