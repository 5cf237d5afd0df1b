/* For nftw with FTW_DEPTH | FTW_PHYS: remove each entry that it visits. */
#ifndef ACE_TEST_AWAY_H
#define ACE_TEST_AWAY_H

#include <ftw.h>
#include <stdio.h>

static inline int
take_away(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

#endif
