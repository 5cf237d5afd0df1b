/*
 * The power fails: what a program changed on disk is recorded (clip.so), and
 * every tree that a file system may leave behind is built: after each change,
 * with all that was not synced there; with each of it missing, or a write half
 * there; with all of it missing; with the names there and the data not, and the
 * other way round.  (So ALICE, Pillai et al., OSDI 2014.)  In each of them
 *
 *   - the books balance, also after what had left the program has arrived
 *   - all is run once more, blindly, and the books balance
 *
 *   power [-e EVERY]
 */
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/err.h"
#include "proc.h"
#include "state/conserve.h"

enum { OPS = 400, NODES = 200, NAMES = 200 };

struct op {
	uint32_t op;
	char path[160], other[160];
	uint64_t ino, at;
	unsigned char *data;
	size_t n;
	int node, node2;	/* in the true run: what is named, and over it */
};

struct node {
	uint64_t ino;
	unsigned char *p;
	size_t n;
	int dir;
};

/* A directory tree: names of nodes. */
struct tree {
	struct {
		char path[160];
		int node;
	} f[NAMES];
	size_t n;
};

static struct op ops[OPS];
static size_t nops;
static struct node nodes[NODES];
static size_t nnode, nfirst;
static unsigned char *first[NODES];
static size_t first_n[NODES];
static struct tree begin;
static unsigned long every = 1, turn, trees;

static void
shell(const char *fmt, const char *arg)
{
	char text[2048];

	(void)snprintf(text, sizeof(text), fmt, arg);
	proc_must(system(text) == 0, text);
}

/* ---- trees ---- */

static int
tree_find(const struct tree *t, const char *path)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (strcmp(t->f[i].path, path) == 0)
			return (int)i;
	return -1;
}

static void
tree_set(struct tree *t, const char *path, int node)
{
	int i = tree_find(t, path);

	if (i < 0) {
		proc_must(t->n < NAMES, "names");
		i = (int)t->n++;
		(void)snprintf(t->f[i].path, sizeof(t->f[i].path), "%s", path);
	}
	t->f[i].node = node;
}

static void
tree_drop(struct tree *t, const char *path)
{
	int i = tree_find(t, path);

	if (i >= 0)
		t->f[i] = t->f[--t->n];
}

static int
node_new(uint64_t ino, int dir)
{
	proc_must(nnode < NODES, "nodes");
	memset(&nodes[nnode], 0, sizeof(nodes[0]));
	nodes[nnode].ino = ino;
	nodes[nnode].dir = dir;
	return (int)nnode++;
}

static void
node_put(struct node *d, uint64_t at, const unsigned char *p, size_t n)
{
	if (at + n > d->n) {
		d->p = realloc(d->p, at + n);
		proc_must(d->p != NULL, "memory");
		memset(d->p + d->n, 0, at + n - d->n);
		d->n = at + n;
	}
	memcpy(d->p + at, p, n);
}

/* The tree before the program ran, from `template'. */
static void
load(void)
{
	char line[512];
	unsigned char b[1 << 14];
	struct stat st;
	FILE *list, *f;
	size_t k, i;
	int n;

	begin.n = nnode = 0;
	list = popen("cd template && find S D S2 2>/dev/null | sort", "r");
	proc_must(list != NULL, "find");
	while (fgets(line, sizeof(line), list) != NULL) {
		char path[600];

		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(path, sizeof(path), "template/%s", line);
		proc_must(stat(path, &st) == 0, path);
		n = node_new(0, S_ISDIR(st.st_mode));
		tree_set(&begin, line, n);
		if (nodes[n].dir)
			continue;
		proc_must((f = fopen(path, "rb")) != NULL, path);
		while ((k = fread(b, 1, sizeof(b), f)) > 0)
			node_put(&nodes[n], nodes[n].n, b, k);
		(void)fclose(f);
	}
	(void)pclose(list);
	nfirst = nnode;
	for (i = 0; i < nnode; i++) {
		first[i] = nodes[i].p;
		first_n[i] = nodes[i].n;
		nodes[i].p = NULL;
	}
}

/* ---- the log ---- */

static void
relative(char out[160], const char *p, size_t n)
{
	char full[PATH_MAX], base[300];
	size_t m;

	(void)snprintf(full, sizeof(full), "%.*s", (int)n, p);
	(void)snprintf(base, sizeof(base), "%s/%s/", proc_dir, "work");
	m = strncmp(full, base, strlen(base)) == 0 ? strlen(base) : 0;
	(void)snprintf(out, 160, "%.150s", full + m);
	n = strlen(out);
	if (n > 0 && out[n - 1] == '/')
		out[n - 1] = '\0';
}

static int
by_ino(uint64_t ino)
{
	size_t i;

	for (i = nnode; i-- > nfirst;)
		if (nodes[i].ino == ino)
			return (int)i;
	return -1;
}

static void
read_log(const char *path)
{
	struct tree now = begin;
	struct clip_rec r;
	FILE *f = fopen(path, "rb");
	char a[PATH_MAX], b[PATH_MAX];
	int i;

	proc_must(f != NULL, path);
	for (nops = 0; fread(&r, sizeof(r), 1, f) == 1;) {
		struct op *o = &ops[nops];

		proc_must(nops < OPS && r.npath < PATH_MAX &&
		    r.nother < PATH_MAX, "log");
		memset(o, 0, sizeof(*o));
		o->data = malloc(r.ndata + 1);
		proc_must(o->data != NULL &&
		    fread(a, 1, r.npath, f) == r.npath &&
		    fread(b, 1, r.nother, f) == r.nother &&
		    fread(o->data, 1, r.ndata, f) == r.ndata, "log");
		relative(o->path, a, r.npath);
		relative(o->other, b, r.nother);
		o->op = r.op;
		o->ino = r.ino;
		o->at = r.at;
		o->n = r.ndata;
		i = tree_find(&now, o->path);
		if (o->op == CLIP_OP_CREATE) {
			if (i >= 0) {
				free(o->data);
				continue;	/* it was there */
			}
			o->node = node_new(o->ino, 0);
			tree_set(&now, o->path, o->node);
		} else if (o->op == CLIP_OP_MKDIR) {
			o->node = node_new(0, 1);
			tree_set(&now, o->path, o->node);
		} else if (o->op == CLIP_OP_WRITE || o->op == CLIP_OP_SYNC) {
			if ((o->node = by_ino(o->ino)) < 0) {
				free(o->data);
				continue;
			}
		} else if (o->op == CLIP_OP_RENAME || o->op == CLIP_OP_LINK) {
			if (i < 0) {
				free(o->data);
				continue;
			}
			o->node = now.f[i].node;
			if (o->op == CLIP_OP_RENAME)
				tree_drop(&now, o->path);
			tree_set(&now, o->other, o->node);
		} else if (o->op == CLIP_OP_UNLINK) {
			if (i < 0) {
				free(o->data);
				continue;
			}
			tree_drop(&now, o->path);
		}
		nops++;
	}
	(void)fclose(f);
}

/* ---- crashes ---- */

static int
is_data(const struct op *o)
{
	return o->op == CLIP_OP_WRITE;
}

static int
is_name(const struct op *o)
{
	return o->op == CLIP_OP_CREATE || o->op == CLIP_OP_RENAME ||
	    o->op == CLIP_OP_LINK || o->op == CLIP_OP_UNLINK ||
	    o->op == CLIP_OP_MKDIR;
}

static int
in_dir(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/' &&
	    strchr(path + n + 1, '/') == NULL;
}

/* May op j be lost when the power fails before op k? */
static int
pending(size_t j, size_t k)
{
	const struct op *o = &ops[j];
	const char *name = o->op == CLIP_OP_RENAME || o->op == CLIP_OP_LINK ?
	    o->other : o->path;
	size_t i;

	for (i = j + 1; i < k; i++)
		if ((is_data(o) && ops[i].op == CLIP_OP_SYNC &&
		    ops[i].node == o->node) ||
		    (is_name(o) && ops[i].op == CLIP_OP_SYNCDIR &&
		    (in_dir(name, ops[i].path) ||
		    (strchr(name, '/') == NULL && !ops[i].path[0]))))
			return 0;
	return is_data(o) || is_name(o);
}

static void
apply(struct tree *t, const struct op *o, size_t n)
{
	switch (o->op) {
	case CLIP_OP_CREATE:
	case CLIP_OP_MKDIR:
		tree_set(t, o->path, o->node);
		break;
	case CLIP_OP_WRITE:
		node_put(&nodes[o->node], o->at, o->data, n);
		break;
	case CLIP_OP_RENAME:
		tree_drop(t, o->path);
		/* FALLTHROUGH */
	case CLIP_OP_LINK:
		tree_set(t, o->other, o->node);
		break;
	case CLIP_OP_UNLINK:
		tree_drop(t, o->path);
	}
}

static int
has_dirs(const struct tree *t, const char *path)
{
	char dir[160];
	const char *s = path;
	int i;

	while ((s = strchr(s, '/')) != NULL) {
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(s++ - path),
		    path);
		if ((i = tree_find(t, dir)) < 0 || !nodes[t->f[i].node].dir)
			return 0;
	}
	return 1;
}

static void
store(const struct tree *t)
{
	char path[300];
	size_t i, pass;
	FILE *f;

	shell("rm -rf crash; cp -r template crash; rm -rf crash/S crash/D "
	    "crash/S2%s", "");
	for (pass = 1; pass < 6; pass++)	/* the shallow ones first */
		for (i = 0; i < t->n; i++) {
			const struct node *d = &nodes[t->f[i].node];
			size_t depth = 1;
			const char *s;

			for (s = t->f[i].path; *s != '\0'; s++)
				depth += *s == '/';
			if (depth != pass || !has_dirs(t, t->f[i].path))
				continue;
			(void)snprintf(path, sizeof(path), "crash/%s",
			    t->f[i].path);
			if (d->dir) {
				proc_must(mkdir(path, 0700) == 0, path);
				continue;
			}
			proc_must((f = fopen(path, "wb")) != NULL &&
			    (d->n == 0 || fwrite(d->p, d->n, 1, f) == 1) &&
			    fclose(f) == 0, path);
		}
}

enum { ALL, DROP, TORN, NONE, NO_DATA, NO_NAMES };

/* The tree when the power fails before op k; op j is special. */
static void
build(size_t k, int how, size_t j)
{
	struct tree t = begin;
	size_t i;

	for (i = 0; i < nnode; i++) {
		free(nodes[i].p);
		nodes[i].p = NULL;
		nodes[i].n = 0;
		if (i < nfirst && first_n[i] != 0)
			node_put(&nodes[i], 0, first[i], first_n[i]);
	}
	for (i = 0; i < k; i++) {
		if ((how == DROP && i == j) ||
		    (how >= NONE && pending(i, k) && (how == NONE ||
		    (how == NO_DATA ? is_data(&ops[i]) : is_name(&ops[i])))))
			continue;
		apply(&t, &ops[i], how == TORN && i == j ? ops[i].n / 2 :
		    ops[i].n);
	}
	store(&t);
}

/* ---- is it well? ---- */

struct scene {
	const char *name, *setup, *command;
	const char *arrives;	/* once something has left the program */
	const char *again;	/* everything, blindly */
};

#define MADE "mkshards -s 0 -k ramp >in0; mkshards -s 1 -k ramp >in1; "
#define STEP0 MADE "ace-compress -S S -c topk:0.2 --window 4 in0 >sent0; " \
	"ace-recv --spool D sent0 | ace-ack -S S >rest; "
#define SENT "cp -r S S2; ace-compress -S S2 -c topk:0.2 --window 4 in1 " \
	">sent1; "
#define AGAIN "ace-compress -S S -c topk:0.2 --window 4 in1 | " \
	"ace-recv --spool D | ace-ack -S S >rest"

static const struct scene scenes[] = {
	{ "compress", STEP0 SENT, "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    "> out", "ace-recv --spool D sent1 >rest", AGAIN },
	{ "compress, first", MADE "ace-compress -S S2 -c topk:0.2 --window 4 in0 "
	    ">sent0; mkdir -m 700 D; rm in1; ", "ace-compress -S S -c topk:0.2 "
	    "--window 4 in0 > out", "ace-recv --spool D sent0 >rest",
	    "ace-compress -S S -c topk:0.2 --window 4 in0 | "
	    "ace-recv --spool D | ace-ack -S S >rest" },
	{ "recv, first", MADE "ace-compress -S S -c topk:0.2 --window 4 in0 "
	    ">sent0; rm in1; ace-recv --spool D2 sent0 >rcpt; ",
	    "ace-recv --spool D sent0 > out", "ace-ack -S S rcpt >rest",
	    "ace-compress -S S --resend | ace-recv --spool D | "
	    "ace-ack -S S >rest" },
	{ "recv", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "cp -r D D2; ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN },
	{ "recv, late", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    ">sent1; mkshards -s 1 -d edge2 | ace-recv --spool D >rest; "
	    "ace-aggregate --spool D --steps 2 >rest; cp -r D D2; "
	    "ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN },
	{ "ack", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "ace-recv --spool D sent1 >rcpt; ",
	    "ace-ack -S S rcpt > out", ":", AGAIN },
	{ "aggregate", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 | "
	    "ace-recv --spool D | ace-ack -S S >rest; cp -r D D2; "
	    "ace-aggregate --no-provenance --spool D2 --steps 1 >want; ",
	    "ace-aggregate --spool D --steps 1 > out", ":",
	    "{ test -e D/test/last || { ace-aggregate --no-provenance "
	    "--spool D --steps 1 >got && cmp want got >&2; }; } && " AGAIN },
	{ "fence", STEP0 "cp -r S backup; " AGAIN "; rm -rf S; mv backup S; "
	    "ace-recv --spool D --run test --device edge1 --fence 0 >answer; "
	    "rm in1; ", "ace-ack -S S --fence answer > out", ":",
	    "ace-recv --spool D --run test --device edge1 --fence 0 | "
	    "ace-ack -S S --fence" }
};

/* The books of what is in crash; the fence's balance only at the end. */
static const char *
books(const char *when)
{
	static char text[700];
	struct err e = ERR_INIT;
	char name0[] = "crash/in0", name1[] = "crash/in1";
	char *list[] = { name0, name1 };
	struct conserve_in in = { "crash/S", "crash/D", list, 1, NULL };
	struct conserve c;
	struct stat st;

	if (stat("crash/S/residual", &st) < 0 || stat("crash/D", &st) < 0)
		return NULL;	/* nothing was absorbed yet */
	in.n += access("crash/in1", F_OK) == 0;
	if (conserve_check(&c, &in, &e) < 0 || c.off != 0) {
		(void)snprintf(text, sizeof(text), "%s: %s", when,
		    e.msg[0] != '\0' ? e.msg : "not exact");
		return text;
	}
	return NULL;
}

static int
does(const char *command)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "cd crash && set -o pipefail && "
	    "export PATH=$BUILD:$BUILD/tests:$PATH && { timeout 20 bash -o pipefail "
	    "-c '%s'; } "
	    "2>>../says", command);
	(void)setenv("POWER_COMMAND", text, 1);
	return system("bash -c \"$POWER_COMMAND\"") == 0;
}

static const char *
look(const struct scene *s, int left)
{
	int fence = strcmp(s->name, "fence") == 0;
	const char *wrong = fence ? NULL : books("at once");

	if (wrong == NULL && left) {
		if (!does(s->arrives))
			wrong = "what had left cannot arrive";
		else if (!fence)
			wrong = books("after what had left arrived");
	}
	if (wrong == NULL && !does(s->again))
		wrong = "cannot be run again";
	return wrong != NULL ? wrong : books("run again");
}

static unsigned long bad;

static void
crash(const struct scene *s, size_t k, int how, size_t j)
{
	static const char *const hows[] = { "all there", "lost", "torn",
	    "nothing unsynced there", "no data", "no names" };
	const char *wrong;
	size_t i;
	int left = 0;

	if (turn++ % every != 0)
		return;
	for (i = 0; i < k; i++)
		left |= ops[i].op == CLIP_OP_OUT;
	build(k, how, j);
	trees++;
	if ((wrong = look(s, left)) == NULL || bad++ > 5)
		return;
	(void)printf("# %s, before change %zu (%u %s): %s %zu %s: %s\n", s->name,
	    k, k < nops ? ops[k].op : 0, k < nops ? ops[k].path : "", hows[how],
	    j, how == DROP || how == TORN ? ops[j].path : "", wrong);
	shell("tail -n 4 says | sed 's/^/#   /'%s", "");
}

static void
forget(void)
{
	size_t i;

	for (i = 0; i < nops; i++)
		free(ops[i].data);
	for (i = 0; i < nnode; i++)
		free(nodes[i].p);
	for (i = 0; i < nfirst; i++)
		free(first[i]);
	nops = nnode = nfirst = 0;
}

static int
one_scene(const struct scene *s, int number)
{
	char log[300];
	size_t k, j;
	unsigned long before = trees;

	bad = 0;
	shell("rm -rf template work says; mkdir -m 700 template; cd template; "
	    "PATH=$BUILD:$BUILD/tests:$PATH; { set -e; %s }", s->setup);
	shell("cp -r template work; : >log.bin%s", "");
	load();
	(void)snprintf(log, sizeof(log), "%s/log.bin", proc_dir);
	proc_must(setenv("CLIP_LOG", log, 1) == 0 && chdir("work") == 0,
	    "work");
	proc_arm(CLIP_COUNT, 0, 0, 0);
	proc_forget();
	(void)proc_start("%s", s->command);
	proc_must(proc_wait(PROC_HANG) == 0 && proc_status(0) == 0 &&
	    chdir("..") == 0 && unsetenv("CLIP_LOG") == 0, s->command);
	read_log(log);
	for (k = 0; k <= nops; k++) {
		if (k != 0 && ops[k - 1].op == CLIP_OP_OUT && k != nops)
			crash(s, k, NONE, 0);
		crash(s, k, ALL, 0);
		for (j = 0; j < k; j++) {
			if (!pending(j, k))
				continue;
			crash(s, k, DROP, j);
			if (is_data(&ops[j]))
				crash(s, k, TORN, j);
		}
		crash(s, k, NONE, 0);
		crash(s, k, NO_DATA, 0);
		crash(s, k, NO_NAMES, 0);
	}
	(void)printf("%sok %d - %s: %zu changes, %lu trees, %lu wrong\n",
	    bad != 0 || nops < 5 ? "not " : "", number, s->name, nops,
	    trees - before, bad);
	k = nops;
	forget();
	return bad != 0 || k < 5;
}

int
main(int argc, char **argv)
{
	size_t i, n = sizeof(scenes) / sizeof(scenes[0]);
	int c, failed = 0;

	while ((c = getopt(argc, argv, "e:")) != -1) {
		if (c != 'e')
			return 2;
		every = strtoul(optarg, NULL, 10);
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
	proc_begin("ace-power");
	proc_must(chdir(proc_dir) == 0, proc_dir);
	for (i = 0; i < n; i++)
		failed |= one_scene(&scenes[i], (int)i + 1);
	(void)printf("1..%zu\n", n);
	proc_must(chdir("/") == 0, "/");
	proc_remove(proc_dir);
	return failed;
}
