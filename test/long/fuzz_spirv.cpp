// Fuzzes the reader of SPIR-V: damaged modules (test/spirv/reader/mutations.hpp) until the time is over. A crash is a finding; what AddressSanitizer
// reports ends the process. `fuzz_spirv SECONDS MODULE.spv...`; prints how many modules were refused and read. Built and run by fuzz_spirv.sh.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "../spirv/reader/mutations.hpp"
#include "ir/error.hpp"
#include "spirv/reader/reader.hpp"

namespace {

unsigned long long seed = 1;
extern "C" void say_seed() { std::fprintf(stderr, "fuzz_spirv: seed %llu\n", seed); }

}  // namespace

// Called by AddressSanitizer before it ends the process.
extern "C" void __asan_on_error() { say_seed(); }

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::signal(SIGSEGV, [](int) {
    say_seed();
    std::_Exit(1);
  });
  std::vector<std::vector<std::byte>> modules;
  for (int i = 2; i < count; ++i) {
    std::ifstream in(arguments[i], std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    auto view = std::as_bytes(std::span(bytes));
    modules.emplace_back(view.begin(), view.end());
  }
  if (const char* first = std::getenv("FUZZ_SEED")) seed = std::strtoull(first, nullptr, 10);
  unsigned long long refused = 0, read = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(arguments[1]));
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    auto module = kiln::spirv::mutator(seed).damaged(modules[seed % modules.size()]);
    llvm::LLVMContext context;
    try {
      kiln::spirv::read(module, context, {kiln::spirv::amdgpu_spaces});
      ++read;
    } catch (const kiln::error& e) {
      if (e.kind() != kiln::error_kind::corrupted && e.kind() != kiln::error_kind::unsupported) {
        std::fprintf(stderr, "fuzz_spirv: seed %llu: %s\n", seed, e.what());
        return 1;
      }
      ++refused;
    }
  }
  std::printf("fuzz_spirv: %llu modules: %llu refused, %llu read, no crash\n", refused + read, refused, read);
}
