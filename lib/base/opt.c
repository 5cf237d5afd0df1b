#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/opt.h"

size_t
opt_list(struct opt_place *to, size_t n, size_t most, const struct opt *table,
    void *own, void *shared)
{
	const struct opt *o;

	for (o = table; o != NULL && o->type != OPT_IS_END; o++) {
		if (o->type == OPT_IS_ROWS)
			n = opt_list(to, n, most, o->rows, (char *)(o->shared ?
			    shared : own) + o->at, shared);
		else if (n < most)
			to[n++] = (struct opt_place){ o, own };
	}
	return n;
}

/* ---- values ---- */

/* Parse a time or a rate within the row's limits. */
static int
opt_measure(const struct opt *o, double *v, const char *val, const char *what,
    struct err *e)
{
	const int time = o->type == OPT_IS_TIME;
	int r = time ? num_time(v, val, what, e) : num_rate(v, val, what, e);

	if (r < 0)
		return r;
	if (*v < o->lo.f && o->lo.f < 1e-9)
		return err_set(e, ERR_USAGE, "%s '%s': expected more than 0", what,
		    val);
	if (*v < o->lo.f || (o->hi.f > 0 && *v > o->hi.f))
		return err_set(e, ERR_USAGE, "%s '%s': expected at %s %g%s", what,
		    val, *v < o->lo.f ? "least" : "most", *v < o->lo.f ? o->lo.f :
		    o->hi.f, time ? " s" : " bit/s");
	return 0;
}

/* Store a value as the row's type says; do nothing for OPT_IS_CALL. */
static int
opt_assign(const struct opt *o, void *to, const char *val, const char *what,
    struct err *e)
{
	uint64_t u;
	int r;

	switch (o->type) {
	case OPT_IS_FLAG:
		*(int *)to = o->value;
		return 0;
	case OPT_IS_TEXT:
		*(const char **)to = val;
		return o->right == OPT_NONE || val[0] != '\0' ? 0 : err_set(e, ERR_USAGE,
		    "%s: the path is empty", what);
	case OPT_IS_U64:
		return num_u64(to, val, o->lo.u, o->hi.u, what, e);
	case OPT_IS_UINT:
		if ((r = num_u64(&u, val, o->lo.u, o->hi.u, what, e)) == 0)
			*(unsigned *)to = (unsigned)u;
		return r;
	case OPT_IS_F64:
		return num_f64(to, val, o->lo.f, o->hi.f, what, e);
	case OPT_IS_SIZE:
		return num_size(to, val, what, e);
	case OPT_IS_TIME:
	case OPT_IS_RATE:
		return opt_measure(o, to, val, what, e);
	case OPT_IS_WORD:
		return num_choice(to, val, o->words, what, e);
	default:
		return 0;
	}
}

int
opt_set_to(const struct opt_place *p, const char *val, const char *what,
    struct err *e)
{
	const struct opt *o = p->row;
	int r = opt_assign(o, (char *)p->base + o->at, val, what, e);

	return r < 0 || o->set == NULL ? r : o->set(p->base, o, val, e);
}

int
opt_take(const struct opt_place *p, const char *val, struct err *e)
{
	char what[40];

	(void)snprintf(what, sizeof(what), "--%s", p->row->name);
	return opt_set_to(p, val, what, e);
}

int
opt_items(const struct opt *table, void *own, const char *list, const char *what,
    struct err *e)
{
	struct opt_place p = { table, own };
	const char *const all = list;
	char word[NUM_ITEM];
	int r;

	for (; (r = num_item(&list, word, what, e)) > 0; p.row++)
		if (p.row->type == OPT_IS_END)
			return err_set(e, ERR_USAGE, "%s '%s': expected at most %d values, "
			    "separated by commas", what, all, (int)(p.row - table));
		else if ((r = opt_set_to(&p, word, what, e)) < 0)
			break;
	return r < 0 ? r : (int)(p.row - table);
}

const struct opt *
opt_named(const struct opt *table, const char *name)
{
	const struct opt *o, *in;

	for (o = table; o->type != OPT_IS_END; o++) {
		if (o->type != OPT_IS_ROWS && strcmp(o->name, name) == 0)
			return o;
		if (o->type == OPT_IS_ROWS && (in = opt_named(o->rows, name)) != NULL)
			return in;
	}
	return NULL;
}

int
opt_defaults(const struct opt *table, void *own, struct err *e)
{
	struct opt_place p = { table, own };
	int r = 0;

	for (; p.row->type != OPT_IS_END && r >= 0; p.row++)
		if (p.row->def != NULL)
			r = opt_take(&p, p.row->def, e);
	return r;
}

/* ---- the help for an option ---- */

static const char *
opt_word(const struct opt *o, unsigned i)
{
	return o->word != NULL ? o->word(i) : o->words != NULL ? o->words[i] :
	    NULL;
}

static void __attribute__((format(printf, 3, 4)))
opt_add(char *text, size_t n, const char *fmt, ...)
{
	const size_t have = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + have, n - have, fmt, ap);
	va_end(ap);
}

/* Append the limits of a number to text[n] if the upper one is at most 100. */
static void
opt_limits(const struct opt *o, char *text, size_t n)
{
	if (o->type == OPT_IS_F64 && o->hi.f <= 100)
		opt_add(text, n, "%g to %g", o->lo.f, o->hi.f);
	else if ((o->type == OPT_IS_U64 || o->type == OPT_IS_UINT) && o->hi.u <= 100)
		opt_add(text, n, "%u to %u", (unsigned)o->lo.u, (unsigned)o->hi.u);
}

void
opt_says(const struct opt *o, char *text, size_t n)
{
	char also[80] = "";
	unsigned i;

	text[0] = '\0';
	if (o->help != NULL)
		opt_add(text, n, "%s", o->help);
	else
		for (i = 0; opt_word(o, i) != NULL; i++)
			opt_add(text, n, "%s%s", i == 0 ? "" :
			    opt_word(o, i + 1) != NULL ? ", " : " or ",
			    opt_word(o, i));
	opt_limits(o, also, sizeof(also));
	if (o->def != NULL)
		opt_add(also, sizeof(also), "%sdefault %s",
		    also[0] != '\0' ? ", " : "", o->def);
	if (also[0] != '\0')
		opt_add(text, n, " (%s)", also);
}

void
opt_row(const struct opt *o)
{
	static const char *const types[] = { "end", "rows", "flag", "text",
	    "u64", "uint", "f64", "size", "time", "rate", "word", "call" };
	static const char *const rights[] = { "", "read", "write", "replace",
	    "dir" };
	const char letter[] = { (char)o->letter, '\0' };
	char text[256];
	unsigned i;

	(void)printf("option\t%s\t%s\t%s\t%s\t%s\t%s\t", o->name, letter,
	    o->arg != NULL ? o->arg : "", types[o->type], rights[o->right],
	    o->def != NULL ? o->def : "");
	for (i = 0; opt_word(o, i) != NULL; i++)
		(void)printf("%s%s", i > 0 ? " " : o->several ? "," : "",
		    opt_word(o, i));
	opt_says(o, text, sizeof(text));
	(void)printf("\t%s\n", text);
}
