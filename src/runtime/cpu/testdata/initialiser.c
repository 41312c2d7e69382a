int value;
__attribute__((constructor)) void start(void) { __asm__ volatile("" : "=r"(value)); } // the compiler cannot run it itself
