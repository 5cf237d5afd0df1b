/* TAP for C tests: ok() per check; TEST(name) { ... }, which run_tests() calls in source
 * order; done_testing() at the end of main. test.h has a main that does just this. Common
 * headers are included here. */
#ifndef TAP_H
#define TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The condition is evaluated before the arguments, which may use what it sets. */
#define ok(good, ...) \
	((good) ? tap_say(1, __VA_ARGS__) : tap_say(0, __VA_ARGS__))

/* Check a number and print it if it differs. */
static inline int
is_u64(uint64_t is, uint64_t want, const char *what)
{
	return is == want ? tap_say(1, "%s", what) : tap_say(0, "%s: %llu, not "
	    "%llu", what, (unsigned long long)is, (unsigned long long)want);
}

struct tap_test {
	void (*run)(void);
	int line;
	struct tap_test *next;
};
static struct tap_test *tap_tests;

static inline void
tap_add(struct tap_test *t)
{
	struct tap_test **p = &tap_tests;

	while (*p != NULL && (*p)->line < t->line)
		p = &(*p)->next;
	t->next = *p;
	*p = t;
}

#define TEST(name) \
	static void name(void); \
	static struct tap_test tap_##name = { name, __LINE__, NULL }; \
	__attribute__((constructor)) static void \
	tap_add_##name(void) \
	{ \
		tap_add(&tap_##name); \
	} \
	static void \
	name(void)

static inline void
run_tests(void)
{
	struct tap_test *t;

	for (t = tap_tests; t != NULL; t = t->next)
		t->run();
}

static inline int
done_testing(void)
{
	(void)printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

#endif
