/*
 * Simulate a disk after a power cut: from the tree before a program ran, and the changes that
 * clip.so recorded, build the trees that a file system may leave.
 */
#ifndef TESTS_CRASH_H
#define TESTS_CRASH_H

#include <sys/stat.h>

#include "proc.h"

enum { OPS = 400, NODES = 200, NAMES = 200 };

struct op {
	uint32_t op;
	char path[160], other[160];
	uint64_t ino, at;
	unsigned char *data;
	size_t n;
	int node, node2;	/* the named node; the node exchanged with it */
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
static size_t nnode, nfirst;	/* nfirst: nodes before the program ran */
static unsigned char *first[NODES];	/* [nfirst] their bytes then */
static size_t first_n[NODES];	/* [nfirst] number of these bytes */
static struct tree begin;	/* the tree before the program ran */

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

/* Set `begin' to the files and folders of S, D and S2 in the directory `template'. */
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
	(void)snprintf(base, sizeof(base), "%s/work", proc_dir);
	m = strncmp(full, base, strlen(base)) == 0 ? strlen(base) : 0;
	m += m != 0 && full[m] == '/';
	(void)snprintf(out, 160, "%.150s", full + m);
	n = strlen(out);
	if (n > 0 && out[n - 1] == '/')
		out[n - 1] = '\0';
}

static int
by_ino(uint64_t ino)
{
	size_t i;

	for (i = nnode; i-- > 0;)
		if (nodes[i].ino == ino && ino != 0)
			return (int)i;
	return -1;
}

static int
is_data(const struct op *o)
{
	return o->op == CLIP_OP_WRITE || o->op == CLIP_OP_CUT;
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
			if (i >= 0) {		/* the file existed */
				nodes[now.f[i].node].ino = o->ino;
				free(o->data);
				continue;
			}
			o->node = node_new(o->ino, 0);
			tree_set(&now, o->path, o->node);
		} else if (o->op == CLIP_OP_MKDIR) {
			o->node = node_new(0, 1);
			tree_set(&now, o->path, o->node);
		} else if (is_data(o) || o->op == CLIP_OP_SYNC) {
			/* a file from before the program ran has no inode number yet */
			if ((o->node = by_ino(o->ino)) < 0 && i >= 0 &&
			    nodes[now.f[i].node].ino == 0) {
				o->node = now.f[i].node;
				nodes[o->node].ino = o->ino;
			}
			if (o->node < 0) {
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
		} else if (o->op == CLIP_OP_SWAP) {
			o->node2 = tree_find(&now, o->other);
			if (i < 0 || o->node2 < 0) {
				free(o->data);
				continue;
			}
			o->node2 = now.f[o->node2].node;
			o->node = now.f[i].node;
			tree_set(&now, o->other, o->node);
			tree_set(&now, o->path, o->node2);
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
is_name(const struct op *o)
{
	return o->op == CLIP_OP_CREATE || o->op == CLIP_OP_RENAME ||
	    o->op == CLIP_OP_LINK || o->op == CLIP_OP_UNLINK ||
	    o->op == CLIP_OP_MKDIR || o->op == CLIP_OP_SWAP;
}

static int
in_dir(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/' &&
	    strchr(path + n + 1, '/') == NULL;
}

/* Return 1 when op j may be lost if the power fails before op k. */
static int
pending(size_t j, size_t k)
{
	const struct op *o = &ops[j];
	const char *name = o->op == CLIP_OP_RENAME || o->op == CLIP_OP_LINK ||
	    o->op == CLIP_OP_SWAP ? o->other : o->path;
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
	case CLIP_OP_CUT:
		if (nodes[o->node].n > o->at)
			nodes[o->node].n = o->at;
		break;
	case CLIP_OP_RENAME:
		tree_drop(t, o->path);
		/* FALLTHROUGH */
	case CLIP_OP_LINK:
		tree_set(t, o->other, o->node);
		break;
	case CLIP_OP_SWAP:
		tree_set(t, o->path, o->node2);
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
	for (pass = 1; pass < 6; pass++)	/* parents before their entries */
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

/* Make the directory `crash' as a power cut before op k leaves it; how: what is lost; j: the op
 * for DROP, TORN. */
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

#endif
