// kiln-compile-worker: the processes of libkiln.so that read and compile payloads (jit/compile_worker.hpp). A program
// of its own, since the process that opened the library may be anything.
#include <cstdio>
#include <string_view>

#include "jit/compile_worker.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view(kiln::compile_worker_argument)) return kiln::run_compile_worker();
  std::fputs("kiln-compile-worker: libkiln.so starts this program; it does nothing by itself\n", stderr);
  return 2;
}
