#ifndef CARPACK_PAGER_H
#define CARPACK_PAGER_H

#include <stddef.h>
#include <stdint.h>

// A thread has touched a page of a window that is not there, and waits.
struct carpack_page_fault {
  // What it touched.
  uintptr_t address;
  // Where it is told that it may go on.
  int reply;
};

// Begins to catch what threads touch in windows. Answers 0, or an errno.
int carpack_pager_open(void);

// Waits for the next fault; answers 0, or an errno. For one thread.
int carpack_pager_next(struct carpack_page_fault *fault);

// Lets the thread of a fault go on.
void carpack_pager_answer(struct carpack_page_fault fault);

// Makes a window of `length` bytes from `start` on; answers its number, or -1 if there are too many.
int carpack_pager_add(uintptr_t start, size_t length);

// Takes a window away.
void carpack_pager_remove(int number);

#endif
