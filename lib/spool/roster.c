#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/text.h"
#include "spool/roster.h"
#include "spool/spool.h"
#include "spool/steps.h"

#define ROSTER_FILE "devices"
enum { ROSTER_BYTES = 1 << 20 };

/* Sort the names and drop repeated ones. */
static void
roster_sort(struct array_names *t)
{
	size_t i, n = 0;

	array_sort(t);
	for (i = 0; i < t->n; i++)
		if (n != 0 && strcmp(t->p[n - 1], t->p[i]) == 0)
			alloc_free(t->p[i]);
		else
			t->p[n++] = t->p[i];
	t->n = n;
}

/* Return 1 if a line with this name would be read as the same name. */
static int
roster_is_line(const char *name)
{
	static const char blank[] = " \t\r";
	const size_t n = strlen(name);

	return n != 0 && n <= SHARD_NAME && text_clean(name, n) &&
	    strchr(blank, name[0]) == NULL && strchr(blank, name[n - 1]) == NULL;
}

/* Parse the lines of a text.  It may be written by hand: blanks around a name and empty
 * lines are ignored. */
static int
roster_lines(struct array_names *t, char *s, const char *path, struct err *e)
{
	char *line, *rest = s;
	size_t n;
	int k;

	while ((line = strsep(&rest, "\n")) != NULL) {
		line += strspn(line, " \t\r");
		for (n = strlen(line); n != 0 &&
		    strchr(" \t\r", line[n - 1]) != NULL; n--)
			line[n - 1] = '\0';
		if (n == 0)
			continue;
		if (n > SHARD_NAME || !text_clean(line, n))
			return err_set(e, ERR_DATA, "corrupt: '%s' has line '%.80s', expected "
			    "a device's name of at most %d bytes, in UTF-8 without control "
			    "characters: correct that line", path, line, SHARD_NAME);
		if ((k = array_add(t, line, e)) < 0)
			return k;
	}
	return 0;
}

int
roster_read(struct array_names *t, const struct spool *s, struct err *e)
{
	char path[SPOOL_PATH], *text = alloc_get(ROSTER_BYTES + 1, 1, e);
	int k = text == NULL ? -ERR_SYS : io_text(spool_path(s, NULL, ROSTER_FILE, path),
	    text, ROSTER_BYTES + 1, e);

	if (k > 0) {
		if (strlen(text) == ROSTER_BYTES)
			k = err_set(e, ERR_DATA, "limit: '%s' has 1 MiB or more: remove "
			    "lines of old devices", path);
		else if ((k = roster_lines(t, text, path, e)) == 0)
			k = 1;
	}
	roster_sort(t);
	alloc_free(text);
	return k;
}

/* ---- a step ---- */

/* Compare a name with the one that `at' points to. */
static int
roster_order(const void *name, const void *at)
{
	return strcmp(name, *(char *const *)at);
}

int
roster_missing(struct array_names *out, const struct spool *s, struct array_names *here,
    uint64_t made, struct err *e)
{
	struct array_names t = ARRAY_NAMES_INIT;
	char file[SPOOL_FILE];
	size_t i;
	int listed = roster_read(&t, s, e), k = listed < 0 ? listed : 0;

	if (listed == 0 && made != 0)
		k = steps_devices(&t, s, made - 1, e);
	roster_sort(&t);
	if (t.n != 0)
		array_sort(here);
	for (i = 0; i < t.n && k == 0; i++) {
		spool_file(t.p[i], "aceg", file);
		if (here->n == 0 || bsearch(file, here->p, here->n, sizeof(*here->p),
		    roster_order) == NULL)
			k = array_add(out, t.p[i], e);
	}
	array_release(&t);
	return k < 0 ? k : listed;
}

/* ---- changing ---- */

static int
roster_write(const struct array_names *t, const char *path, enum io_sync sync,
    struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int k = 0;

	for (i = 0; i < t->n && k == 0; i++)
		if ((k = buf_put(&b, t->p[i], strlen(t->p[i]), e)) == 0)
			k = buf_put(&b, "\n", 1, e);
	if (k == 0 && b.n >= ROSTER_BYTES)
		k = err_set(e, ERR_REFUSED, "'%s' has no room for more devices: "
		    "remove some with ace-recv --leave", path);
	if (k == 0 && (k = buf_put(&b, "", 1, e)) == 0)
		k = io_set_text(path, (const char *)b.p, sync, e);
	buf_release(&b);
	return k;
}

/* Make the list of the devices whose shards are in the spool, each once. */
static int
roster_seen(struct array_names *t, const struct spool *s, struct err *e)
{
	struct steps x = STEPS_INIT;
	size_t i, n = 0;
	int k = steps_list(&x, s, "", 0, e);

	for (i = 0; i < x.n && k == 0; i++)
		k = steps_devices(t, s, x.step[i], e);
	for (i = 0; i < t->n; i++)
		if (roster_is_line(t->p[i]))
			t->p[n++] = t->p[i];
		else		/* the list cannot hold a name with outer blanks */
			alloc_free(t->p[i]);
	t->n = n;
	steps_release(&x);
	roster_sort(t);
	return k;
}

int
roster_change(const struct spool *s, const char *device, int joins, struct err *e)
{
	struct array_names t = ARRAY_NAMES_INIT;
	char path[SPOOL_PATH];
	size_t i;
	int fd, k;

	if (joins && !roster_is_line(device))
		return err_set(e, ERR_USAGE, "'%.80s' is not a valid name for the list of devices: "
		    "expected 1 to %d bytes of UTF-8, no blank at either end, no control character",
		    device, SHARD_NAME);
	if ((k = spool_lock(s, &fd, e)) < 0)
		return k;
	if ((k = roster_read(&t, s, e)) == 0)
		k = roster_seen(&t, s, e);
	for (i = 0; i < t.n && strcmp(t.p[i], device) != 0; i++)
		;
	if (k >= 0 && i == t.n)
		k = joins ? array_add(&t, device, e) : err_set(e, ERR_REFUSED,
		    "spool '%s' has no device '%.80s' in %s: ace-status shows the names",
		    s->state.dir, device, k > 0 ? "its list" : "any step");
	else if (k >= 0 && !joins) {
		alloc_free(t.p[i]);
		t.p[i] = t.p[--t.n];
	}
	roster_sort(&t);
	if (k >= 0)
		k = roster_write(&t, spool_path(s, NULL, ROSTER_FILE, path), s->sync,
		    e);
	(void)close(fd);
	array_release(&t);
	return k;
}
