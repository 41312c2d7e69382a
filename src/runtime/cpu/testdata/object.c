// Compiled once per code model; elf_object_test.cpp calls these functions.
#include <stddef.h>

double sin(double);
double exp(double);
double sqrt(double);
float fmodf(float, float);
void *memcpy(void *, const void *, size_t);

const int table[100] = {1, 9, 25, 49, 81};
int counter = 40;
static long zero[100000];
extern const char text[];
const char text[] = "a string constant, copied";

int lookup(int index) { return index < 5 ? table[index] : -1; }
int count(void) { return ++counter; }
long zeros(int index) { return zero[index] + zero[99999]; }
double wave(double x) { return sin(x) + exp(x); }
float rest(float x, float y) { return fmodf(x, y); }

__attribute__((noinline)) static int hidden_helper(int x) { return x + 1; }
__attribute__((noinline)) int twice(int x) { return 2 * x; }
static int (*const operations[])(int) = {hidden_helper, twice};
int indirect(int which, int x) {
  int (*const volatile *chosen)(int) = &operations[which];
  return (*chosen)(x);
}

double (*volatile root)(double) = sqrt;
double applied(double x) { return root(x); }

void greet(char *into) { memcpy(into, text, sizeof text); }

__attribute__((noinline)) static int pass(int x) {
  __asm__ volatile("" : "+r"(x));
  return x;
}
int choose(int x) {
  switch (x) {
  case 0: return pass(7);
  case 1: return pass(x) * 13;
  case 2: return pass(x) - 99;
  case 3: return pass(x) ^ 1234;
  case 4: return pass(x) + 400;
  case 5: return pass(x) % 3;
  case 6: return pass(x) << 5;
  default: return pass(-x);
  }
}

const void *constant_address(void) { return table; }
const void *data_address(void) { return &counter; }
