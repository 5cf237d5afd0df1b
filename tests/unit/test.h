/* The main of a C test that consists of TEST()s only. */
#ifndef TEST_H
#define TEST_H

#include "tap.h"

int
main(void)
{
	run_tests();
	return done_testing();
}

#endif
