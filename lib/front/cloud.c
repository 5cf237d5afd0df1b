#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "front/cloud.h"

/* The first line of the answer to hello. */
#define CLOUD_FIRST "ace-cloud 1\n"
enum { CLOUD_ANSWER = 8192 };

int
cloud_at(struct cloud *c, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	const int far = colon != NULL && (slash == NULL || colon < slash);

	if (text[0] == '-' || *text == '\0' || (far && (colon == text ||
	    colon[1] == '\0')))
		return err_set(e, ERR_USAGE, "'%s' is not a cloud's folder: expected "
		    "[[USER@]HOST:]DIR", text);
	if (far && (c->host = alloc_dup(text, e)) == NULL)
		return -ERR_SYS;
	if (far)
		c->host[colon - text] = '\0';
	c->dir = alloc_dup(far ? colon + 1 : text, e);
	return c->dir != NULL ? 0 : -ERR_SYS;
}

void
cloud_release(struct cloud *c)
{
	alloc_free(c->host);
	alloc_free(c->dir);
	c->host = c->dir = NULL;
}

void
cloud_connect(const struct cloud *c, struct children *p, const char *what,
    const char *id)
{
	/* hello may ask for a password and shows the host's banner; sync may
	 * reconnect many times */
	const int hello = strcmp(what, "hello") == 0;
	const char *const word[] = { "ace-cloud", "serve", c->dir, c->name, what,
		id };
	char *words = NULL;
	size_t n = 0, i;
	FILE *f;

	if (c->through != NULL) {
		if (setenv("ACE_HOST", c->host != NULL ? c->host : "", 1) < 0 ||
		    setenv("ACE_CLOUD", c->dir, 1) < 0)
			p->r = err_sys(p->e, "cannot set the environment");
		child_add(p, NULL, c->through, c->name, what, id, NULL)->far = 1;
		return;
	}
	if (c->host == NULL) {
		child_add(p, NULL, "ace-cloud", "serve", c->dir, c->name, what, id,
		    NULL)->far = 1;
		return;
	}
	f = open_memstream(&words, &n);
	for (i = 0; f != NULL && i < 6 && word[i] != NULL; i++) {
		(void)fputs(i > 0 ? " " : "", f);
		child_quote(word[i], f);
	}
	if (f == NULL || fclose(f) != 0)
		p->r = err_sys(p->e, "cannot write the command for ssh");
	/* have ssh notice a dead link within a minute */
	child_add(p, NULL, "ssh", "-T", hello ? "-oBatchMode=no" :
	    "-oBatchMode=yes", hello ? "-oLogLevel=INFO" : "-oLogLevel=ERROR",
	    "-oServerAliveInterval=15", "-oServerAliveCountMax=4", c->host, words,
	    NULL)->far = 1;
	free(words);
}

void
cloud_answer(const struct place *f, char *out, size_t n)
{
	const int k = snprintf(out, n, CLOUD_FIRST "%s\n", f->where);

	if (k > 0 && (size_t)k < n)
		place_text(&f->said, out + k, n - (size_t)k);
}

/* Check that the device's folder f is new, or belongs to the run of the cloud. */
static int
cloud_of(const struct place *f, const char *where, const char *id, struct err *e)
{
	const char *had = f->said.id;

	if (had[0] == '\0' || id[0] == '\0' || strcmp(had, id) == 0)
		return 0;
	return err_set(e, ERR_REFUSED, "'%s' belongs to run %.8s, but '%s' has run %.8s: give the "
	    "cloud of run %.8s or, for run %.8s, another folder (ace edge: --state)", f->dir,
	    had, where, id, had, id);
}

/* Parse the answer: CLOUD_FIRST, a line HOST:DIR, and the agreement, which is saved. */
static int
cloud_take(const struct cloud *c, struct place *f, char *text, char *where,
    size_t n, struct err *e)
{
	struct agreement now;
	struct err why = ERR_INIT;
	char *from, *path;
	const size_t first = sizeof(CLOUD_FIRST) - 1;
	const char *who = c->host != NULL ? c->host : c->dir;
	int r;

	if (strncmp(text, CLOUD_FIRST, first) != 0)
		return err_set(e, ERR_DATA, "unsupported: '%s' answers '%.*s', expected '%.11s': "
		    "install the same version of ace there, connect without a terminal "
		    "(ssh -T), and let nothing else print, such as a shell's start-up "
		    "file", who, (int)strcspn(text, "\n"), text,
		    CLOUD_FIRST);
	text += first;
	if ((from = strsep(&text, "\n")) == NULL || text == NULL)
		return err_set(e, ERR_DATA, "truncated: the answer of '%s' is incomplete: run the "
		    "same command again", who);
	(void)snprintf(where, n, "%s", from);
	if ((path = place_path(f, "run.new", e)) == NULL)
		return -ERR_SYS;
	if ((r = place_put(f, "run.new", text, e)) == 0 && (r = place_read(path, &now, &why)) < 0)
		r = r != -ERR_DATA ? err_move(e, &why) : err_set(e, ERR_DATA, "unsupported: the "
		    "answer of '%s' does not describe a run: install the same version of ace "
		    "there", where);
	else if (r == 0 && (now.id[0] == '\0' || !(now.bits > 0)))
		r = err_set(e, ERR_DATA, "truncated: the answer of '%s' is incomplete: run the "
		    "same command again", where);
	(void)unlinkat(AT(path), 0);
	alloc_free(path);
	if (r < 0 || (r = cloud_of(f, where, now.id, e)) < 0)
		return r;
	f->said = now;
	return 0;
}

int
cloud_hello(const struct cloud *c, struct place *f, char *where, size_t n,
    struct err *e)
{
	char id[PLACE_ID + 1], text[CLOUD_ANSWER];
	struct children p = { .e = e };
	struct place near = PLACE_INIT;
	struct err any = ERR_INIT;
	int r = 0;

	/* hello may add the device to the run, so check a cloud on this machine before it */
	if (c->host == NULL && c->through == NULL && place_open(&near, c->dir, 0, &any) == 0)
		r = cloud_of(f, near.where, near.said.id, e);
	place_close(&near);
	if (r < 0 || (r = place_get(f, "id", id, sizeof(id), e)) < 0)
		return r;
	if (strlen(id) != PLACE_ID) {
		place_random(id);
		if ((r = place_put(f, "id", id, e)) < 0)
			return r;
	}
	cloud_connect(c, &p, "hello", id);
	if ((r = p.r) == 0)
		r = child_output(p.child[0].word, text, sizeof(text), e);
	child_release(&p);
	if (r == 0)
		return cloud_take(c, f, text, where, n, e);
	if (r >= ERR_USAGE && r <= ERR_REFUSED) {
		e->code = r;	/* the cloud has said why */
		e->quiet = 1;
		return -r;
	}
	return r < 0 ? r : err_set(e, ERR_SYS, c->through != NULL || c->host == NULL ?
	    "the cloud '%s' was not reached (status %d): check that '%s' works" :
	    "the cloud '%s' was not reached (status %d): check its name, that 'ssh %s' connects "
	    "without a password, and that ace is installed there",
	    c->host != NULL ? c->host : c->dir, r, c->through != NULL ? c->through :
	    c->host != NULL ? c->host : "ace-cloud");
}
