// Calls a function that kernels may not call.
#include <stdint.h>
extern int system(const char*);
void call_system(void* const* b, int64_t begin, int64_t end) { *(int*)b[0] = system("true"); }
