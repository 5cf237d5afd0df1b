#include "base/err.h"
#include "stage/stage_out.h"
#include "stage/stage_program.h"

int
stage_program(struct filter *f, struct stage *s, enum stage_values v,
    const char *path, struct err *e)
{
	struct reader *in = NULL;
	struct writer *w;
	int r;

	if ((r = filter_both(f, &in, &w, path, e)) == 0 &&
	    (r = stage_out_new(&s->next, w, e)) == 0) {
		filter_loose(in, w, v == STAGE_CHANGES);
		if (v != STAGE_CHANGES)
			writer_share(w, in, v == STAGE_IGNORES);
		r = stage_run(in, s, NULL, e);
	}
	reader_free(in);
	return r;
}
