#ifndef ACE_VERSION_H
#define ACE_VERSION_H
#define ACE_VERSION "0.1.0"
#endif
