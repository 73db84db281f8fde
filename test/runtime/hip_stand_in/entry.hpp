// How an entry point is called in this build of the stand-in.
#pragma once

#ifdef KILN_STAND_IN_CUDA
#define ENTRY(cuda, hip) cuda
#else
#define ENTRY(cuda, hip) hip
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define NAME(cuda, hip) TEXT(ENTRY(cuda, hip))
#define EXPORT extern "C" __attribute__((visibility("default")))
