#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

int
num_u64(uint64_t *v, const char *s, uint64_t lo, uint64_t hi, const char *what,
    struct err *e)
{
	char *end;
	unsigned long long x;

	errno = 0;
	x = strtoull(s, &end, 10);
	if (s[0] < '0' || s[0] > '9' || *end != '\0' || errno != 0 || x < lo ||
	    x > hi)
		return err_set(e, ERR_USAGE,
		    "%s '%s' is not a whole number from %llu to %llu", what, s,
		    (unsigned long long)lo, (unsigned long long)hi);
	*v = x;
	return 0;
}

double
num_read(const char *s, char **end)
{
	/* a program that uses the library may have set a locale with a decimal comma */
	const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	const double x = c != (locale_t)0 ? strtod_l(s, end, c) : strtod(s, end);

	if (c != (locale_t)0)
		freelocale(c);
	return x;
}

int
num_strtod(double *v, const char *s, double lo, double hi)
{
	char *end;
	const double x = num_read(s, &end);

	if (end == s || *end != '\0' || !isfinite(x) || x < lo || x > hi)
		return -ERR_USAGE;
	*v = x;
	return 0;
}

/* Return how many characters from s on may be in a decimal number; strtod also reads blanks before
 * a number, and hexadecimal digits. */
static size_t
num_decimal(const char *s)
{
	return strspn(s, "0123456789+-.eE");
}

int
num_f64(double *v, const char *s, double lo, double hi, const char *what,
    struct err *e)
{
	return s[num_decimal(s)] == '\0' && num_strtod(v, s, lo, hi) == 0 ? 0 :
	    err_set(e, ERR_USAGE, "%s '%s' is not a number from %.8g to %.8g", what, s, lo, hi);
}

struct num_unit {
	const char *name;
	double factor;
};

static int
num_unit(double *v, const char *s, const struct num_unit *u, const char *what,
    const char *want, struct err *e)
{
	char *end;
	const double x = strtod(s, &end);
	const int decimal = end != s && num_decimal(s) >= (size_t)(end - s);

	end += decimal && end[0] == ' ' && end[1] != '\0';
	if (decimal && isfinite(x) && x >= 0)
		for (; u->name != NULL; u++)
			if (strcmp(end, u->name) == 0 && isfinite(x * u->factor)) {
				*v = x * u->factor;
				return 0;
			}
	return err_set(e, ERR_USAGE, "%s '%s' is not %s", what, s, want);
}

int
num_size(uint64_t *v, const char *s, const char *what, struct err *e)
{
	static const struct num_unit u[] = {
		{ "", 1 }, { "k", 1e3 }, { "K", 1e3 }, { "M", 1e6 },
		{ "G", 1e9 }, { "T", 1e12 }, { "Ki", 1024.0 },
		{ "Mi", 1048576.0 }, { "Gi", 1073741824.0 },
		{ "Ti", 1099511627776.0 }, { "B", 1 }, { "kB", 1e3 },
		{ "KB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
		{ "KiB", 1024.0 }, { "MiB", 1048576.0 },
		{ "GiB", 1073741824.0 }, { "TiB", 1099511627776.0 }, { NULL, 0 }
	};
	double x;
	int r = num_unit(&x, s, u, what, "a size such as 4096, 64k, 1.5M or 64Mi",
	    e);

	if (r < 0)
		return r;
	if (x >= 9e18)
		return err_set(e, ERR_USAGE, "%s '%s': expected less than 9e18 bytes", what, s);
	*v = (uint64_t)x;
	return 0;
}

int
num_rate(double *v, const char *s, const char *what, struct err *e)
{
	static const struct num_unit u[] = {
		{ "bit", 1 }, { "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 },
		{ "bit/s", 1 }, { "kbit/s", 1e3 }, { "Mbit/s", 1e6 },
		{ "Gbit/s", 1e9 }, { NULL, 0 }
	};

	return num_unit(v, s, u, what, "a rate such as 5Mbit or 200kbit", e);
}

const char *
num_text(double v, const char *unit, char out[NUM_TEXT])
{
	static const char *const times[] = { "", "k", "M", "G", "T", "P" };
	int i = 0;

	/* 999.5 would be rounded to 1000: use the next unit */
	for (; v >= 999.5 && i < 5; i++)
		v /= 1000;
	(void)snprintf(out, NUM_TEXT, v >= 999.5 ? "%.0f %s%.8s" : "%.3g %s%.8s",
	    v, times[i], unit);
	return out;
}

int
num_time(double *v, const char *s, const char *what, struct err *e)
{
	static const struct num_unit u[] = {
		{ "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 },
		{ "m", 60 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 },
		{ NULL, 0 }
	};

	return num_unit(v, s, u, what, "a time such as 10ms, 1.5s or 2m", e);
}

int
num_choice(int *v, const char *s, const char *const *names, const char *what,
    struct err *e)
{
	char list[160] = "";
	size_t k = 0;
	int i;

	for (i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], s) == 0) {
			*v = i;
			return 0;
		}
	for (i = 0; names[i] != NULL && k < sizeof(list); i++)
		k += (size_t)snprintf(list + k, sizeof(list) - k, "%s%s",
		    i == 0 ? "" : names[i + 1] != NULL ? ", " : " or ", names[i]);
	return err_set(e, ERR_USAGE, "%s '%s': expected %s", what, s, list);
}

int
num_item(const char **list, char word[NUM_ITEM], const char *what, struct err *e)
{
	const size_t n = *list != NULL ? strcspn(*list, ",") : 0;

	if (*list == NULL)
		return 0;
	if (n >= NUM_ITEM)
		return err_set(e, ERR_USAGE, "%s: '%.40s' is too long: expected "
		    "at most %d bytes", what, *list, NUM_ITEM - 1);
	memcpy(word, *list, n);
	word[n] = '\0';
	*list = (*list)[n] != '\0' ? *list + n + 1 : NULL;
	return 1;
}
