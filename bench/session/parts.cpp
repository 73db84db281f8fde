#include "bench/session/parts.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include "bench/session/sizes.hpp"
#include "runtime/io_buffers.hpp"
#include "session/session.hpp"

namespace kiln::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t runs = 3;

class part_times {
 public:
  // Adds the microseconds that `work` takes to the part `number`.
  template <class Work>
  void take(std::size_t number, Work&& work) {
    const auto begin = clock::now();
    work();
    if (times_.size() <= number) times_.resize(number + 1);
    times_[number].push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  void print(std::size_t number, const std::string& what) {
    std::vector<double>& t = times_.at(number);
    std::ranges::sort(t);
    fmt::print("{:<36} {:>10.1f} {:>10.1f} {:>10.1f}\n", what, t[t.size() / 2], t[t.size() - 1 - t.size() / 100],
               t.back());
  }

 private:
  std::vector<std::vector<double>> times_;
};

// Returns the unused bytes of the first NVIDIA GPU, or nullopt without one.
std::optional<double> free_device_bytes() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return std::nullopt;
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  const auto info = reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(dlsym(driver, "cuMemGetInfo_v2"));
  void* of_device = nullptr;
  std::size_t unused = 0, all = 0;
  if (!retain || !set || !info || retain(&of_device, 0) || set(of_device) || info(&unused, &all)) return std::nullopt;
  return static_cast<double>(unused);
}

// Prints the memory of the device that contexts of one plan take, with graphs and without.
void print_context_memory(const executable& exe, std::span<const graph_options> ways) {
  constexpr std::size_t count = 64;
  io_buffers tensors(exe);
  for (const graph_options& way : ways) {
    std::vector<execution_context> held;
    const auto before = free_device_bytes();
    if (!before) return;
    for (std::size_t i = 0; i < count; ++i) {
      held.push_back(exe.make_context(way));
      exe.run(held.back(), tensors.inputs(), tensors.outputs());
      exe.run(held.back(), tensors.inputs(), tensors.outputs());
    }
    fmt::print("{} contexts {}: {:.2f} MiB of the device, {:.2f} MiB of them arenas\n", count,
               way.policy == graph_policy::off ? "without graphs" : "with a graph each",
               (*before - *free_device_bytes()) / 0x1p20,
               static_cast<double>(count * (exe.plan().arena_bytes + exe.plan().zeroed_bytes)) / 0x1p20);
  }
}

enum part : std::size_t { planning, dropping, memory, no_memory, first_of_way };
constexpr std::size_t context = 0, no_context = 1 + runs, parts_of_way = 2 + runs;

}  // namespace

int measure_parts(int argc, char** argv, const std::string& device) {
  std::optional<measurement> asked = parse_measurement(argc, argv, device);
  if (!asked) return 2;
  auto& [file, ranges, count, options] = *asked;
  std::mt19937 engine(1);
  options.most_instances = 1;
  session s(file, options);
  const std::array ways{graph_options{.policy = graph_policy::on, .decision = graph_decision{.replay = true}},
                        graph_options{.policy = graph_policy::off}};
  part_times times;
  std::shared_ptr<instance> held;
  // The first sizes compile the kernels, the second ones make the template.
  for (int i = -2; i < count; ++i) {
    if (i == 0) times = {};
    const dim_bindings sizes = random_sizes(s.portable(), ranges, engine);
    std::shared_ptr<instance> at;
    times.take(planning, [&] { at = s.at(sizes); });
    times.take(dropping, [&] { held = nullptr; });
    held = at;
    const executable& exe = at->executable();
    std::vector<literal> inputs;
    for (const plan_port& port : exe.plan().inputs) inputs.push_back(random_data(port.type));
    std::optional<io_buffers> tensors;
    times.take(memory, [&] { tensors.emplace(exe); });
    tensors->upload(inputs);
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const std::size_t first = first_of_way + w * parts_of_way;
      std::optional<execution_context> used;
      times.take(first + context, [&] { used.emplace(exe.make_context(ways[w])); });
      for (std::size_t r = 1; r <= runs; ++r)
        times.take(first + context + r, [&] { exe.run(*used, tensors->inputs(), tensors->outputs()); });
      times.take(first + no_context, [&] { used.reset(); });
    }
    times.take(no_memory, [&] { tensors.reset(); });
  }
  fmt::print("{} sets of sizes; microseconds:\n{:<36} {:>10} {:>10} {:>10}\n", count, "", "median", "p99", "most");
  times.print(planning, "plan");
  times.print(dropping, "end of an unused instance");
  times.print(memory, "memory of inputs and outputs");
  times.print(no_memory, "its end");
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const std::size_t first = first_of_way + w * parts_of_way;
    const char* way = w == 0 ? "graphs" : "launches";
    times.print(first + context, fmt::format("{}: context", way));
    for (std::size_t r = 1; r <= runs; ++r) times.print(first + context + r, fmt::format("{}: run {}", way, r));
    times.print(first + no_context, fmt::format("{}: its end", way));
  }
  print_context_memory(held->executable(), ways);
  return 0;
}

}  // namespace kiln::bench
