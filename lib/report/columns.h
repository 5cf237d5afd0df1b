/*
 * Tables for people: aligned columns, times and rates with units.
 */
#ifndef ACE_COLUMNS_H
#define ACE_COLUMNS_H

#include <stdio.h>

/* Write a table of lines with tabs, whose first line names the columns, as aligned
 * columns. Lines that begin with # stay as they are. Cells of the columns bandwidth
 * (bit/s) and compute, latency, seconds, step, time (s) get units: "2.5 Mbit/s", "200 ms".
 * At most COLUMNS_MOST columns. */
enum { COLUMNS_MOST = 16 };
void columns_print(FILE *f, const char *tsv);

#endif
