/* The arguments of the process, as the system passed them to it. */
#ifndef CARPACK_ARGUMENTS_H
#define CARPACK_ARGUMENTS_H

/* How many there are, the name of the program included; 0 where they are not known. */
int carpack_argument_count(void);

/* One of them. */
const char *carpack_argument(int number);

#endif
