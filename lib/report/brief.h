/*
 * A line for each shard, made for runs of thousands: what it is, what it takes
 * and by which codecs; values are not decoded, and not read where they can be
 * passed over.
 */
#ifndef ACE_BRIEF_H
#define ACE_BRIEF_H

struct err;
struct reader;
struct report;

enum brief_form {
	BRIEF_TEXT,		/* columns, fewer on a narrow terminal */
	BRIEF_TSV,		/* all columns, with tabs, and a first line */
	BRIEF_DIFFABLE,		/* a line a tensor too; nothing that differs
				 * between two runs of the same */
	BRIEF_JSON		/* a document a line */
};

struct brief {
	enum brief_form form;
	char run[256];		/* the one whose heading was printed */
	int begun;		/* the first line was */
};

/* brief_stream(p, b, r, e): *b begins as zeros with a form, and goes on from
 * file to file.  A shard that is damaged has a line too, which says so. */
int brief_stream(struct report *p, struct brief *b, struct reader *r,
    struct err *e);

#endif
