// Has a static constructor, which nothing would run.
static int ready;
__attribute__((constructor)) static void init(void) { ready = 1; }
void kernel(void* const* b, long begin, long end) { *(int*)b[0] = ready; }
