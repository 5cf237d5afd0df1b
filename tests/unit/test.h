/* A C test that is nothing but its TEST()s. */
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
