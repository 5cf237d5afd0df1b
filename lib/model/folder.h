/*
 * The folder of a model, as Hugging Face lays it out, as one file of tensors: they are
 * read in the order of their names, whatever file each is in (model.h).
 */
#ifndef ACE_FOLDER_H
#define ACE_FOLDER_H

#include "files/format.h"

struct err;

/* folder_open(out, path, o, e): as format_open.  1; 0: path is no folder. */
int folder_open(struct format_source **out, const char *path,
    const struct format_opts *o, struct err *e);

#endif
