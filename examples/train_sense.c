#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "train_sense.h"

static const float memory = 0.98f;	/* about fifty batches */

int
sense_init(struct sense *s, const struct model *m, const char *const *file, int always,
    struct ace_error *e)
{
	s->m = m;
	s->file = file;
	if (file[0] == NULL && !always)
		return 0;
	s->square = calloc(m->n, sizeof *s->square);
	return s->square != NULL ? 0 : fail(e, 4, "out of memory for array",
	    "second moments");
}

void
sense_release(struct sense *s)
{
	free(s->square);
}

void
sense_see(struct sense *s)
{
	const float keep = s->any ? memory : 0;
	const float *g = s->m->grad;
	size_t j;

	if (s->square == NULL)
		return;
	for (j = 0; j < s->m->n; j++)
		s->square[j] = keep * s->square[j] + (1 - keep) * (g[j] * g[j]);
	s->any = 1;
}

int
sense_tell(const struct sense *s, size_t round, struct ace_error *e)
{
	struct ace_shard shard = ACE_SHARD_INIT;
	float *x, most = 0;
	size_t j;
	int r = 0, i;

	if (s->file[0] == NULL || !s->any || (round & (round - 1)) != 0)
		return 0;
	if ((x = malloc(s->m->n * sizeof *x)) == NULL)
		return fail(e, 4, "cannot write", s->file[0]);
	for (j = 0; j < s->m->n; j++) {
		x[j] = sqrtf(s->square[j]);
		most = x[j] > most ? x[j] : most;
	}
	for (j = s->m->params; j < s->m->n; j++)
		x[j] = most;		/* scales have no gradient */
	(void)strcpy(shard.device, "train");
	shard.kind = ACE_HISTORY;
	shard.step = round;
	for (i = 0; r == 0 && i < SENSE_FILES && s->file[i] != NULL; i++)
		r = link_save(s->file[i], s->m, shard,
		    (const float *const[]){ x }, 1, e);
	free(x);
	return r;
}
