/* The system's DNS resolver, for TXT records: getaddrinfo knows addresses only. */
#include <sys/types.h>
#include <netinet/in.h>
#include <arpa/nameser.h>
#include <resolv.h>
#include <netdb.h>
