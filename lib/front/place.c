#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/io.h"
#include "base/limits_file.h"
#include "front/place.h"

enum { PLACE_TEXT = 4096 };

static int
place_take_id(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct agreement *a = arg;

	if (strlen(val) != PLACE_ID ||
	    val[strspn(val, "0123456789abcdef")] != '\0')
		return err_set(e, ERR_USAGE, "%s '%.40s': expected %d hex digits",
		    row->name, val, PLACE_ID);
	memcpy(a->id, val, PLACE_ID + 1);
	return 0;
}

const struct opt place_opts[] = {
	{ 0, "devices", "N", "devices that take part",
	    OPT_U64(struct agreement, devices, 1, 1000000) },
	{ 0, "rounds", "N", "end after N averages (default never)",
	    OPT_U64(struct agreement, rounds, 1, UINT64_MAX) },
	{ 0, "bits", "N", "bits to send for each value (default 1.3)",
	    OPT_F64(struct agreement, bits, 0.001, 1e6) },
	{ 0, "quorum", "N", "go on with N devices after the deadline (default all)",
	    OPT_U64(struct agreement, quorum, 1, 1000000) },
	{ 0, "deadline", "TIME", "how long to wait for the others (default 10s)",
	    OPT_TIME(struct agreement, deadline), .lo.f = 0.001, .with = "quorum" },
	{ 0, "tolerate", "N", "N devices may send anything: a robust mean",
	    OPT_U64(struct agreement, tolerate, 1, 1000000) },
	OPT_END
};

static const struct opt place_lines[] = {
	{ 0, "id", "ID", NULL, OPT_CALL(place_take_id) },
	OPT_ROWS(place_opts),
	OPT_END
};

int
place_named(const char *name, struct err *e)
{
	static const char all[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const size_t n = strlen(name);

	if (n == 0 || n > PLACE_NAME || name[strspn(name, all)] != '\0' ||
	    strchr("._-", name[0]) != NULL || strstr(name, ".new-") != NULL)
		return err_set(e, ERR_USAGE, "'%.80s' is not valid as a device's "
		    "name: expected 1 to %d letters, digits, '.', '_' or '-', "
		    "beginning with a letter or digit, without '.new-'", name, PLACE_NAME);
	return 0;
}

void
place_random(char id[PLACE_ID + 1])
{
	unsigned char raw[PLACE_ID / 2];
	size_t i;

	while (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		continue;
	for (i = 0; i < sizeof(raw); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
}

char *
place_path(const struct place *f, const char *name, struct err *e)
{
	return alloc_path(f->held.dir, name, e);
}

int
place_has(const struct place *f, const char *name)
{
	char *path = place_path(f, name, NULL);
	const int has = path != NULL && faccessat(AT(path), F_OK, 0) == 0;

	alloc_free(path);
	return has;
}

int
place_kept(const struct place *f, char cause[ERR_LINE], struct err *e)
{
	if (statedir_there(&f->held, e) == 0)
		return 0;
	if (access(f->dir, F_OK) == 0)
		return -ERR_SYS;
	(void)err_format(e, cause);
	err_clear(e);
	return 0;
}

int
place_make(const struct place *f, const char *name, struct err *e)
{
	char *path = place_path(f, name, e);
	int r = path == NULL ? -ERR_SYS : 0;

	if (r == 0 && mkdirat(AT(path), 0700) < 0 && errno != EEXIST)
		r = err_sys(e, "'%s'", path);
	alloc_free(path);
	return r;
}

int
place_put(const struct place *f, const char *name, const char *text,
    struct err *e)
{
	char *path = place_path(f, name, e);
	int r = path == NULL ? -ERR_SYS : io_set_text(path, text, IO_SYNC_FULL, e);

	alloc_free(path);
	return r;
}

int
place_get(const struct place *f, const char *name, char *out, size_t n,
    struct err *e)
{
	char *path = place_path(f, name, e);
	int r;

	out[0] = '\0';
	r = path == NULL ? -ERR_SYS : io_text(path, out, n, e);
	for (n = strlen(out); n > 0 && out[n - 1] == '\n'; n--)
		out[n - 1] = '\0';
	alloc_free(path);
	return r;
}

int
place_read(const char *path, struct agreement *a, struct err *e)
{
	struct err why = ERR_INIT;
	int r;

	memset(a, 0, sizeof(*a));
	if ((r = limits_file_read(path, place_lines, a, a, NULL, &why)) >= 0)
		return r;
	if (r == -ERR_DATA)
		(void)err_after(&why, r, ", which describes a run: restore the "
		    "file, or give another folder (ace edge: --state)");
	return r != -ERR_USAGE ? err_move(e, &why) : err_set(e, ERR_DATA, "corrupt: the "
	    "description of the run: %s: restore the file (on a device, remove it) or, "
	    "if ace did not make it, give another folder (ace edge: --state)", why.text);
}

void
place_text(const struct agreement *a, char *out, size_t n)
{
	const struct opt *o = place_opts;
	FILE *f = fmemopen(out, n, "w");

	*out = '\0';
	if (f == NULL)
		return;
	(void)fprintf(f, "id %s\n", a->id);
	for (; o->type != OPT_IS_END; o++) {
		const void *at = (const char *)a + o->at;

		if (o->type == OPT_IS_U64 && *(const uint64_t *)at != 0)
			(void)fprintf(f, "%s %llu\n", o->name,
			    (unsigned long long)*(const uint64_t *)at);
		else if (o->type != OPT_IS_U64 && *(const double *)at > 0)
			(void)fprintf(f, "%s %.17g%s\n", o->name, *(const double *)at,
			    o->type == OPT_IS_TIME ? "s" : "");
	}
	(void)fclose(f);
}

const char *
place_agreed(const struct agreement *a, char out[64])
{
	(void)snprintf(out, 64, "%llu device%s, %g bits per value",
	    (unsigned long long)a->devices, a->devices == 1 ? "" : "s", a->bits);
	return out;
}

int
place_save(const struct place *f, struct err *e)
{
	char text[PLACE_TEXT];

	place_text(&f->said, text, sizeof(text));
	return place_put(f, "run", text, e);
}

/* Write HOST:DIR, also for a folder that does not exist. */
static void
place_where(struct place *f, const char *dir)
{
	char host[65] = "?", at[PATH_MAX] = "";

	(void)gethostname(host, sizeof(host) - 1);
	if (dir[0] == '/' || getcwd(at, sizeof(at)) == NULL)
		at[0] = '\0';
	(void)snprintf(f->where, sizeof(f->where), "%s:%.*s%s%s", host,
	    (int)sizeof(at), at, at[0] != '\0' ? "/" : "", dir);
	for (char *s = f->where; (s = strchr(s, '\n')) != NULL; )
		*s = '?';		/* the text is one line of the answer to a device */
}

int
place_open(struct place *f, const char *dir, int make, struct err *e)
{
	struct statedir looked = STATE_INIT;
	char real[PATH_MAX], *path;
	int r;

	if (*dir == '\0')
		return err_set(e, ERR_USAGE, "the folder's name is empty");
	place_where(f, dir);
	if (!make && access(dir, F_OK) < 0 && errno == ENOENT)
		return err_set(e, ERR_USAGE, "folder '%s' is absent: put it back or check its "
		    "name; 'ace cloud DIR --devices N' makes the folder of a run", f->where);
	if ((r = statedir_open(&looked, dir, e)) == -ERR_SYS) {
		err_clear(e);
		return err_set(e, ERR_SYS, make ? "folder '%s' cannot be made or opened: %s: check "
		    "its parent, or give another folder (ace edge: --state)" :
		    "folder '%s' cannot be opened: %s: check its name, or call ace as the user "
		    "that began the run (over ssh: USER@HOST:DIR)", f->where, strerror(errno));
	}
	if (r < 0)
		return r;
	if (realpath(dir, real) == NULL)
		r = err_sys(e, "'%s'", dir);
	statedir_close(&looked);
	if (r < 0 || (r = statedir_open(&f->held, real, e)) < 0)
		return r;
	f->dir = f->held.dir;
	place_where(f, f->dir);
	if ((path = place_path(f, "run", e)) == NULL)
		return -ERR_SYS;
	r = place_read(path, &f->said, e);
	alloc_free(path);
	return r < 0 ? r : 0;
}

void
place_close(struct place *f)
{
	statedir_close(&f->held);
	f->dir = NULL;
}
