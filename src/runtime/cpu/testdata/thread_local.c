_Thread_local int value = 3;
int get(void) { return value; }
