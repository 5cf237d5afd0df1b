/* TAP for C tests: ok() per claim, done_testing() at the end of main. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>

static int tap_n, tap_failed;

static inline int __attribute__((format(printf, 2, 3)))
tap_say(int good, const char *fmt, ...)
{
	va_list ap;

	(void)printf("%sok %d - ", good ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
	if (!good)
		tap_failed++;
	return good;
}

/* What is claimed is found out before the words are put together, which may
 * tell what came of it. */
#define ok(good, ...) \
	((good) ? tap_say(1, __VA_ARGS__) : tap_say(0, __VA_ARGS__))

static inline int
done_testing(void)
{
	(void)printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

#endif
