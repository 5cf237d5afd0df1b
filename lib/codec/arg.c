#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "codec/arg.h"

int
arg_number(const char *s, float lo, float hi, float *v, struct err *e)
{
	double d;
	int r;

	if (s == NULL)
		return err_set(e, ERR_USAGE, "expected ':' and a number after the name");
	if ((r = num_f64(&d, s, (double)lo, (double)hi, "argument", e)) < 0)
		return r;
	*v = (float)d;
	return 0;
}

int
arg_fraction(const char *s, float *v, struct err *e)
{
	char t[256];
	size_t n = s != NULL ? strlen(s) : 0;
	int r;

	if (n > 0 && n < sizeof(t) && s[n - 1] == '%') {
		memcpy(t, s, n - 1);
		t[n - 1] = '\0';
		r = arg_number(t, 0, 100, v, e);
		*v = r == 0 ? (float)((double)*v / 100) : 0;
	} else
		r = arg_number(s, 0, 1, v, e);
	if (r == 0 && !(*v > 0))
		return err_set(e, ERR_USAGE, "expected a fraction from 1e-45 to 1");
	return r;
}

void
arg_print(float v, char buf[24])
{
	int digits;

	for (digits = 1; digits < 9; digits++) {
		(void)snprintf(buf, 24, ":%.*g", digits, (double)v);
		if (strtof(buf + 1, NULL) == v)
			return;
	}
	(void)snprintf(buf, 24, ":%.9g", (double)v);
}
