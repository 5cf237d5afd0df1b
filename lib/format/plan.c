#include <string.h>

#include "base/err.h"
#include "format/note.h"
#include "format/plan.h"

/* The memory that a part takes, so that many small or empty ones count too. */
static size_t
plan_cost(uint32_t n)
{
	return sizeof(struct plan_part) + 48 + (size_t)n * NOTE_PLAN;
}

int
plan_add(struct plan *p, const unsigned char *payload, size_t len,
    uint32_t ngroups, struct err *e)
{
	struct note note;
	struct plan_part *part;
	size_t size;
	int r;

	if ((r = note_get(&note, payload, len, NOTE_PLAN, ngroups, e)) < 0)
		return r;
	size = (size_t)note.n * NOTE_PLAN;
	if (p->bytes + plan_cost(note.n) > PLAN_MAX)
		return err_set(e, ERR_DATA, "limit: plans of more than %d bytes "
		    "wait for their data", PLAN_MAX);
	if ((r = alloc_grow(&p->part, &p->cap, p->n + 1, sizeof(*p->part),
	    e)) < 0)
		return r;
	part = &p->part[p->n];
	part->first = note.first;
	part->n = note.n;
	if ((part->entry = alloc_get(size, 1, e)) == NULL)
		return -ERR_SYS;
	memcpy(part->entry, note.entry, size);
	p->n++;
	p->bytes += plan_cost(note.n);
	p->any = 1;
	return 0;
}

static void
plan_drop(struct plan *p, size_t i)
{
	p->bytes -= plan_cost(p->part[i].n);
	alloc_free(p->part[i].entry);
	memmove(&p->part[i], &p->part[i + 1],
	    (p->n - i - 1) * sizeof(*p->part));
	p->n--;
}

int
plan_has(const struct plan *p, uint32_t g)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (g >= p->part[i].first && g - p->part[i].first < p->part[i].n)
			return 1;
	return 0;
}

int
plan_get(struct plan *p, uint32_t g, struct codec_plan *out)
{
	struct note note;
	size_t i = 0;

	while (i < p->n) {
		const struct plan_part *q = &p->part[i];

		if (q->first + (uint64_t)q->n <= g) {
			plan_drop(p, i);
			continue;
		}
		if (g >= q->first) {
			note.entry = q->entry;
			note_plan(&note, g - q->first, out);
			return 1;
		}
		i++;
	}
	return 0;
}

void
plan_clear(struct plan *p)
{
	while (p->n != 0)
		plan_drop(p, p->n - 1);
	p->any = 0;
}

void
plan_release(struct plan *p)
{
	plan_clear(p);
	alloc_free(p->part);
	*p = (struct plan)PLAN_INIT;
}
