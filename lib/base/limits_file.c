#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/limits_file.h"

enum { LIMITS_BYTES = 1 << 20 };

struct limits_file {
	const struct opt *rows;
	void *own, *other;	/* structs for the lines of `who', and for all others */
	const char *who;
};

void
limits_file_uncomment(char *line)
{
	char *to = line, last = ' ';

	for (; *line != '\0'; last = *line++) {
		if (*line == '#' && strchr(" \t\r", last) != NULL)
			break;
		if (*line == '\\' && line[1] == '#')
			line++;
		*to++ = *line;
	}
	*to = '\0';
}

/* Cut the next word off a line; return NULL if there is none. */
static char *
limits_file_word(char **line)
{
	char *word;

	*line += strspn(*line, " \t\r");
	word = *line;
	*line += strcspn(word, " \t\r");
	if (**line != '\0')
		*(*line)++ = '\0';
	return *word != '\0' ? word : NULL;
}

static int
limits_file_line(const struct limits_file *x, char *line, struct err *e)
{
	const char *name, *val;
	struct opt_place p;
	char *end;

	limits_file_uncomment(line);
	if ((name = limits_file_word(&line)) == NULL)
		return 0;
	if ((p.row = opt_named(x->rows, name)) == NULL)
		return err_set(e, ERR_USAGE, "this file cannot set '%.40s'", name);
	if ((val = limits_file_word(&line)) == NULL)
		return err_set(e, ERR_USAGE, "%s has no value: expected %s", name, p.row->arg);
	line += strspn(line, " \t\r");
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]) !=
	    NULL; end--)
		end[-1] = '\0';
	p.base = strcmp(line, x->who != NULL ? x->who : "") == 0 ? x->own : x->other;
	return opt_set_to(&p, val, name, e);
}

int
limits_file_read(const char *path, const struct opt *rows, void *own, void *other,
    const char *who, struct err *e)
{
	const struct limits_file x = { rows, own, other, who };
	char *text = alloc_get(LIMITS_BYTES, 1, e), *rest, *line;
	struct err why = ERR_INIT;
	unsigned at = 0;
	int r = text != NULL ? io_text(path, text, LIMITS_BYTES, e) : -ERR_SYS;

	if (r > 0)
		r = strlen(text) < LIMITS_BYTES - 1 ? 0 :
		    err_set(e, ERR_USAGE, "file '%s' is too large: expected at most %d "
		    "bytes", path, LIMITS_BYTES - 2);
	for (rest = text; r == 0 && (line = strsep(&rest, "\n")) != NULL;) {
		at++;
		if (limits_file_line(&x, line, &why) < 0)
			r = err_set(e, ERR_USAGE, "%s:%u: %s", path, at,
			    ERR_MSG(&why));
	}
	alloc_free(text);
	return r;
}

int
limits_file_write(const char *path, const char *head, const struct opt *rows,
    enum io_sync sync, struct err *e)
{
	struct io *io = NULL;
	const struct opt *o;
	char line[256];
	int n, r;

	if (faccessat(AT(path), F_OK, 0) == 0)
		return err_set(e, ERR_REFUSED, "'%s' exists already: edit it, or remove it "
		    "first", path);
	if ((r = io_create(&io, path, 0, e)) == 0)
		r = io_write(io, head, strlen(head), e);
	for (o = rows; r == 0 && o->type != OPT_IS_END; o++) {
		n = snprintf(line, sizeof(line), "\n# %s\n# %s, default %s\n%s "
		    "%s\n", o->help, o->arg, o->def, o->name, o->def);
		r = io_write(io, line, (size_t)n, e);
	}
	if (r == 0)
		r = io_commit(io, sync, e);
	io_free(io);
	return r;
}
