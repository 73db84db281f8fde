// Whether the order of CPU candidates is any good: times the 64 candidates of kernels of real networks, all of a kernel
// in turns on one core, and compares the best of the first 8 with the best of all.
//
//     candidate_order [--kernels SUBSTRING] [--rounds N] [--list]
//
// One line for each kernel: the default's time, the best of 8 and the best of all relative to it, the place of the
// best. Exit status 1 where the best of 8 is more than 3 % behind the best of all in more than a third of the kernels.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <time.h>

#include "../mlir_bridge/cpu/harness.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/candidates.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

struct named_kernel {
  std::string name;
  std::unique_ptr<module> fusion;
};

std::unique_ptr<module> one(const std::vector<shape>& inputs, operation op) {
  return fusion(inputs, [&](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(op, p)}; });
}

std::vector<named_kernel> kernels() {
  std::vector<named_kernel> all;
  auto convolved = [&](std::int64_t size, std::int64_t channels, std::int64_t features, std::int64_t window,
                       std::int64_t stride, std::int64_t groups = 1) {
    const std::int64_t pad = window / 2;
    convolution op{{stride, stride}, {1, 1}, {pad, pad}, {pad, pad}, groups, tensor_layout::channels_last};
    all.push_back({"conv " + std::to_string(size) + "^2 " + std::to_string(channels) + "-" + std::to_string(features) +
                       " " + std::to_string(window) + "x" + std::to_string(window) + (stride > 1 ? " s2" : "") +
                       (groups > 1 ? " dw" : ""),
                   one({f32({1, size, size, channels}), f32({window, window, channels / groups, features})}, op)});
  };
  convolved(224, 3, 64, 7, 2);
  convolved(56, 64, 64, 3, 1), convolved(56, 64, 256, 1, 1), convolved(56, 256, 64, 1, 1),
      convolved(56, 128, 128, 3, 2);
  convolved(28, 128, 128, 3, 1), convolved(28, 512, 128, 1, 1), convolved(28, 256, 256, 3, 2);
  convolved(14, 256, 256, 3, 1), convolved(14, 1024, 256, 1, 1), convolved(14, 512, 512, 3, 2);
  convolved(7, 512, 512, 3, 1), convolved(7, 2048, 512, 1, 1), convolved(7, 512, 2048, 1, 1);
  convolved(56, 64, 64, 3, 1, 64), convolved(14, 576, 576, 3, 1, 576);
  for (auto [m, n, k] : {std::array<std::int64_t, 3>{128, 768, 768},
                         {128, 3072, 768},
                         {128, 768, 3072},
                         {197, 768, 768},
                         {16, 4096, 4096},
                         {1, 4096, 4096},
                         {1024, 1024, 1024},
                         {64, 64, 8192}})
    all.push_back({"dot " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                   one({f32({m, k}), f32({k, n})}, dot{.type = element_type::f32})});
  all.push_back({"attention 12x128x64", one({f32({1, 12, 128, 64}), f32({1, 12, 128, 64}), f32({1, 12, 128, 64})},
                                            attention{.scale = 0.125})});
  all.push_back({"attention 6x1500x64", one({f32({1, 6, 1500, 64}), f32({1, 6, 1500, 64}), f32({1, 6, 1500, 64})},
                                            attention{.scale = 0.125})});
  all.push_back({"softmax 1536x128", one({f32({1536, 128})}, softmax{-1, false})});
  all.push_back({"normalize 128x768", one({f32({128, 768})}, normalize{{1}, 1e-5, true})});
  all.push_back({"reduce 4096x1024", one({f32({4096, 1024})}, reduce{reduction_kind::sum, {1}, false})});
  all.push_back({"transpose 512x1024", one({f32({512, 1024})}, transpose{{1, 0}})});
  all.push_back({"map 1M", fusion({f32({1 << 20}), f32({1 << 20})}, [](module& m, const std::vector<value>& p) {
                   return std::vector<value>{m.add(elementwise{scalar_function::mul}, {p[0], p[1]})};
                 })});
  return all;
}

// Of this thread on its core, so that other work of the machine counts little.
double microseconds(const std::function<void()>& run) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
  };
  const double began = now();
  run();
  return now() - began;
}

struct timed {
  kernel_configuration configuration;
  std::unique_ptr<loaded_kernel> kernel;
  std::function<void()> run;
  double best = std::numeric_limits<double>::infinity();
};

std::string str(const kernel_configuration& configuration) {
  std::string text;
  for (const auto& [name, number] : configuration)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(number);
  return text.empty() ? "default" : text;
}

}  // namespace

int main(int count, char** arguments) {
  std::string wanted;
  int rounds = 12;
  bool list = false;
  for (int i = 1; i < count; ++i) {
    if (!std::strcmp(arguments[i], "--list")) list = true;
    else if (!std::strcmp(arguments[i], "--kernels") && i + 1 < count) wanted = arguments[++i];
    else if (!std::strcmp(arguments[i], "--rounds") && i + 1 < count) rounds = std::atoi(arguments[++i]);
    else return std::fprintf(stderr, "usage: candidate_order [--kernels SUBSTRING] [--rounds N] [--list]\n"), 2;
  }
  const compiler_context context;
  int all = 0, behind = 0;
  std::printf("%-28s %10s %8s %8s %6s  %s\n", "kernel", "default us", "of 8", "of all", "place", "best");
  for (const named_kernel& k : kernels()) {
    if (k.name.find(wanted) == std::string::npos) continue;
    std::mt19937 random(7);
    std::vector<literal> inputs;
    for (value p : k.fusion->parameters()) inputs.push_back(random_literal(p.type(), random, 0.5));
    std::vector<timed> candidates;
    for (auto& configuration :
         candidate_configurations(portable_kernel::parse(context, write_kernel(*k.fusion, "kernel")), native_target(),
                                  tuning_effort::full)) {
      timed t{configuration, std::make_unique<loaded_kernel>(*k.fusion, native_target(), configuration), {}};
      t.run = t.kernel->prepared(inputs);
      candidates.push_back(std::move(t));
    }
    for (int round = 0; round < rounds; ++round)
      for (timed& t : candidates) t.best = std::min(t.best, microseconds(t.run));
    auto by_time = [](const timed& a, const timed& b) { return a.best < b.best; };
    auto best = std::ranges::min_element(candidates, by_time),
         few = std::min_element(candidates.begin(),
                                candidates.begin() + std::min<std::ptrdiff_t>(8, std::ssize(candidates)), by_time);
    const double standard = candidates[0].best;
    std::printf("%-28s %10.1f %8.3f %8.3f %6d  %s\n", k.name.c_str(), standard, few->best / standard,
                best->best / standard, static_cast<int>(best - candidates.begin()), str(best->configuration).c_str());
    if (list)
      for (const timed& t : candidates) std::printf("    %10.1f  %s\n", t.best, str(t.configuration).c_str());
    std::fflush(stdout);
    ++all;
    behind += few->best > 1.03 * best->best;
  }
  std::printf("%d kernels; the best of 8 is more than 3 %% behind the best of all in %d\n", all, behind);
  return behind * 3 > all;
}
