// kiln_bench_cpu_kernels [--filter TEXT] [--target v3|v4] [--set NAME=VALUE]...: GF/s on one thread, ours and the
// peers' in turns, the best of many runs; every output is checked against a peer's before it is timed.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "our_kernel.hpp"
#include "peers.hpp"

namespace {

using namespace kiln;
using namespace kiln::bench;

struct release {
  void operator()(float* p) const { std::free(p); }
};
using numbers = std::unique_ptr<float[], release>;

numbers filled(std::size_t n, unsigned seed) {
  numbers result(static_cast<float*>(std::aligned_alloc(4096, (n * sizeof(float) + 4096) / 4096 * 4096)));
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (std::size_t i = 0; i < n; ++i) result[i] = distribution(engine);
  return result;
}

std::size_t count(const std::vector<std::int64_t>& dims) {
  std::size_t n = 1;
  for (std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  return n;
}

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ‖a - b‖ / ‖b‖; infinite where a holds a NaN.
double relative_error(const float* a, const float* b, std::size_t n) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(a[i])) return std::numeric_limits<double>::infinity();
    error += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter, target = "v4";
  std::vector<std::string> settings;
  double budget = 0.3;
  CLI::App app{"GF/s of CPU kernels beside OpenBLAS and oneDNN, on one thread"};
  app.add_option("--filter", filter, "only cases whose name holds this text");
  app.add_option("--target", target, "v3 or v4")->check(CLI::IsMember({"v3", "v4"}));
  app.add_option("--set", settings, "NAME=VALUE of the kernel's configuration");
  app.add_option("--seconds", budget, "time for each case");
  bool assembly = false;
  app.add_flag("--assembly", assembly, "print the machine code instead of measuring");
  CLI11_PARSE(app, argc, argv);
  // Debian's OpenBLAS mistakes newer processors for very old ones, and the libraries' own threads would disturb the
  // measurement. They read these variables before main().
  if (!std::getenv("OPENBLAS_CORETYPE")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }

  const bool wide = target == "v4";
  const target_row row{wide ? "x86-64-v4" : "x86-64-v3",
                       target_family::cpu,
                       "x86_64-unknown-linux-gnu",
                       wide ? "x86-64-v4" : "x86-64-v3",
                       "",
                       wide ? 512 : 256,
                       wide ? 32 : 16,
                       32 << 10,
                       wide ? 1 << 20 : 256 << 10};
  kernel_configuration configuration;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    configuration[setting.substr(0, equals)] = std::stoll(setting.substr(equals + 1));
  }
  int wrong = 0;
  fmt::print("{:28} {:>8} {:>8} {:>8} {:>10} {:>9} {:>8}\n", "case", "ours", "openblas", "onednn", "error", "compile",
             "bytes");
  for (const kernel_case& c : kernel_cases()) {
    if (c.name.find(filter) == std::string::npos) continue;
    const auto fusion = make_fusion(c);
    const std::size_t results = static_cast<std::size_t>(fusion->outputs()[0].type().element_count());
    numbers left = filled(count(c.left), 1), right = filled(count(c.right), 2),
            bias = filled(static_cast<std::size_t>(c.right.back()), 3), ours = filled(results, 4),
            theirs = filled(results, 5);
    our_kernel kernel(*fusion, row, configuration, assembly);
    if (assembly) {
      fmt::print("{}\n", kernel.trace().assembly);
      continue;
    }
    kernel.set_arguments({left.get(), right.get(), bias.get()}, {ours.get()});
    kernel.prepare();
    std::fill_n(ours.get(), results, std::numeric_limits<float>::quiet_NaN());
    kernel.run();
    std::vector<std::optional<peer_run>> peers{openblas_peer(c, left.get(), right.get(), theirs.get()),
                                               onednn_peer(c, left.get(), right.get(), bias.get(), theirs.get())};
    double error = 0;
    for (auto& peer : peers)
      if (peer) {
        (*peer)();
        error = std::max(error, relative_error(ours.get(), theirs.get(), results));
      }
    wrong += error > 1e-5;
    double best = 1e30, best_peer[2] = {1e30, 1e30};
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < budget) {
      // Several runs in a row, so that each finds its data in the caches.
      for (int i = 0; i < 4; ++i) best = std::min(best, seconds([&] { kernel.run(); }));
      for (std::size_t p = 0; p < 2; ++p)
        for (int i = 0; peers[p] && i < 4; ++i) best_peer[p] = std::min(best_peer[p], seconds(*peers[p]));
    }
    const double work = giga_operations(c);
    auto speed = [&](bool there, double s) { return there ? fmt::format("{:.1f}", work / s) : std::string("-"); };
    fmt::print("{:28} {:8.1f} {:>8} {:>8} {:10.1e} {:6.0f} ms {:8}{}\n", c.name, work / best,
               speed(peers[0].has_value(), best_peer[0]), speed(peers[1].has_value(), best_peer[1]), error,
               kernel.compile_ms(), kernel.code_bytes(), error > 1e-5 ? "  WRONG" : "");
    std::fflush(stdout);
  }
  return wrong ? 1 : 0;
}
