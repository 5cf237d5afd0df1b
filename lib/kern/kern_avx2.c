#include "kern/kern.h"
#include "kern/ref.h"

const struct kern kern_avx2 = { .name = NULL };
