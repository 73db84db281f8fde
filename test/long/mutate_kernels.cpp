// Random changes to the portable kernels of files, and what reads and compiles them: the check of the bytecode, MLIR's
// reader, code generation for a CPU, or the SPIR-V reader. All in compile workers, as in a command.
//
//     mutate_kernels [--trials N] [--seed N] [--flips] [--keep FOLDER] FILE.kiln...
//
// Prints what became of the kernels, and what ended a worker; such a kernel is kept in FOLDER. Exit 1 if this process
// gets another exception than a refusal.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"
#include "jit/compile_worker.hpp"
#include "jit/targets.hpp"

namespace {

using namespace kiln;
using clock = std::chrono::steady_clock;

struct kernel {
  std::vector<std::byte> payload;
  std::vector<shape> inputs, outputs;
};

// The portable kernels of a file; every open dimension is 3, or as near to it as it may be.
void add_kernels(const std::string& file, std::vector<kernel>& to) {
  const program open = read_program(file, native_consent{.allow_unsigned = true});
  dim_bindings bindings;
  for (const auto& [name, range] : open.symbols) bindings[name] = std::clamp<std::int64_t>(3, range.min, range.max);
  const program p = open.bind(bindings);
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      const auto* code = i.op().get_if<code_object>();
      if (!code || code->format == code_format::native) continue;
      const auto payload = p.kernel(content_hash::from_hex(code->payload));
      kernel k{{payload.begin(), payload.end()}, {}, i.outputs()};
      for (value input : i.inputs()) k.inputs.push_back(input.type());
      to.push_back(std::move(k));
    }
}

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  void flip(std::vector<std::byte>& bytes) { bytes[below(bytes.size())] ^= std::byte(1u << below(8)); }

  void edit(std::vector<std::byte>& bytes) {
    constexpr std::uint64_t numbers[] = {
        0,    1,          2,          7,          8,          63,         64,         127,        128,        255,
        4096, 0x7fffffff, 0xfffffffe, 0xffffffff, 1ull << 32, 1ull << 47, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull};
    const std::size_t at = below(bytes.size());
    switch (below(7)) {
      case 0: return flip(bytes);
      case 1: bytes[at] = std::byte(random_()); return;
      case 2: bytes[at] = std::byte(static_cast<int>(bytes[at]) + static_cast<int>(below(9)) - 4); return;
      case 3: {
        const std::uint64_t number = numbers[below(std::size(numbers))];
        std::memcpy(&bytes[at], &number, std::min<std::size_t>(below(2) ? 4 : 8, bytes.size() - at));
        return;
      }
      case 4: {  // a piece of it over another
        const std::size_t from = below(bytes.size());
        std::memmove(&bytes[at], &bytes[from], std::min({1 + below(12), bytes.size() - at, bytes.size() - from}));
        return;
      }
      case 5: std::swap(bytes[at], bytes[below(bytes.size())]); return;
      default:
        if (below(16) == 0) bytes.resize(1 + at);
        else bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::byte(random_()));
    }
  }

 private:
  std::mt19937_64 random_;
};

bool is_refusal(error_kind kind) {
  return kind == error_kind::corrupted || kind == error_kind::newer_version || kind == error_kind::unsupported ||
         kind == error_kind::invalid_model || kind == error_kind::compile_failed || kind == error_kind::truncated;
}

// "ended by signal 11 (Segmentation fault)" of a message about a worker; empty if the message is about a kernel.
std::string end_of_worker(const std::string& message) {
  constexpr std::string_view mark = "the compiler's process ";
  const std::size_t found = message.find(mark);
  if (found == std::string::npos) return "";
  return message.substr(found + mark.size(), message.find_first_of(";:", found) - found - mark.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == compile_worker_argument) return run_compile_worker();
  CLI::App app{"Random changes to kernels, and what compiles them."};
  std::size_t trials = 1000;
  std::uint64_t seed = 1;
  bool flips = false;
  std::string folder = ".";
  std::vector<std::string> files;
  app.add_option("--trials", trials, "How many");
  app.add_option("--seed", seed, "Seed");
  app.add_flag("--flips", flips, "Flip one bit; else one to three changes of any kind");
  app.add_option("--keep", folder, "Where to keep kernels that end a worker");
  app.add_option("FILE", files, ".kiln files to start from")->required();
  CLI11_PARSE(app, argc, argv);

  std::vector<kernel> kernels;
  for (const std::string& file : files) add_kernels(file, kernels);
  if (kernels.empty()) {
    fmt::print("the files have no portable kernels\n");
    return 1;
  }
  const auto workers = make_compile_workers(false, "/proc/self/exe");
  const target_row target = find_target("x86-64-v3");
  mutator mutate(seed);
  std::map<std::string, std::size_t> count;
  std::size_t failed = 0, ended = 0;
  double slowest = 0;
  for (std::size_t trial = 1; trial <= trials; ++trial) {
    kernel k = kernels[mutate.below(kernels.size())];
    if (flips) mutate.flip(k.payload);
    else
      for (std::size_t edits = 1 + mutate.below(3); edits > 0; --edits) mutate.edit(k.payload);
    const auto begin = clock::now();
    std::string what, ending;
    try {
      compile_in_worker(*workers, {k.payload, k.inputs, k.outputs, target}, {});
      what = "compiled";
    } catch (const error& e) {
      what = std::string(name(e.kind()));
      ending = end_of_worker(e.what());
      if (!is_refusal(e.kind())) fmt::print("trial {}: {}: {}\n", trial, what, e.what()), ++failed;
    } catch (const std::exception& e) {
      fmt::print("trial {}: {}\n", trial, e.what());
      ++failed;
    }
    ++count[what];
    if (!ending.empty()) {
      ++ended;
      ++count["worker " + ending];
      const std::string kept = fmt::format("{}/kernel-{}-{}", folder, seed, trial);
      std::ofstream(kept, std::ios::binary)
          .write(reinterpret_cast<const char*>(k.payload.data()), static_cast<std::streamsize>(k.payload.size()));
      fmt::print("trial {}: a worker {}; the kernel is {}\n", trial, ending, kept);
    }
    slowest = std::max(slowest, std::chrono::duration<double>(clock::now() - begin).count());
  }
  for (const auto& [what, times] : count) fmt::print("{:>9} {}\n", times, what);
  fmt::print("{} kernels of {} files, {} trials: {} ended a worker, {} failed; the slowest took {:.2f} s\n",
             kernels.size(), files.size(), trials, ended, failed, slowest);
  return failed > 0;
}
