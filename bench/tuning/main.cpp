// Milliseconds per candidate of the tuner for the kernels of one file: starting from a clone of the kernel that was
// parsed and specialized once, and parsing the payload anew; and candidates per second on all threads, code generation
// included.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "ir/container/container.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/kernel_compiler.hpp"
#include "jit/parallel.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/candidates.hpp"

using namespace kiln;

namespace {

template <class Work>
double milliseconds(Work work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, target = "native";
  int count = 200, threads = 0;
  CLI::App app{"Milliseconds per candidate"};
  app.add_option("FILE", file, ".kiln file with static shapes")->required();
  app.add_option("--target", target);
  app.add_option("-n", count, "Candidates of one kernel");
  app.add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);

  program p = read_program(file);
  jit_options options{.target = find_target(target)};
  kernel_groups groups = group_code_objects(p);
  // The kernel with the largest payload represents the others.
  auto size = [&](const kernel_group& g) { return p.kernel(content_hash::from_hex(g.portable.payload)).size(); };
  const kernel_group& g = *std::ranges::max_element(groups.list, {}, size);
  auto payload = p.kernel(content_hash::from_hex(g.portable.payload));
  const double n = count;

  kernel_compiler compiler(p, options);
  compiler.clone(g);
  double cloning = milliseconds([&] {
    for (int i = 0; i < count; ++i) compiler.clone(g);
  });
  compiler_context context;
  double parsing = milliseconds([&] {
    for (int i = 0; i < count; ++i) portable_kernel::parse(context, payload).specialize(g.inputs, g.outputs);
  });
  const int fresh = std::max(1, count / 10);
  double anew = milliseconds([&] {
    for (int i = 0; i < fresh; ++i) {
      compiler_context own;
      portable_kernel::parse(own, payload).specialize(g.inputs, g.outputs);
    }
  });
  fmt::print("{}: payload of {} bytes, {} candidates\n", g.portable.symbol, payload.size(), count);
  fmt::print("  {:<42} {:8.3f} ms a candidate\n", "clone of the specialized kernel", cloning / n);
  fmt::print("  {:<42} {:8.3f} ms\n", "parsed and specialized again", parsing / n);
  fmt::print("  {:<42} {:8.3f} ms\n", "parsed in a compiler context of its own", anew / fresh);

  std::vector<std::pair<const kernel_group*, kernel_configuration>> work;
  for (const kernel_group& each : groups.list)
    for (kernel_configuration& c :
         candidate_configurations(compiler.clone(each), options.target, tuning_effort::full)) {
      if (work.size() == static_cast<std::size_t>(count)) break;
      work.emplace_back(&each, std::move(c));
    }
  double all = milliseconds([&] {
    parallel_for(work.size(), threads, [&](std::size_t i) {
      compile_specialized(compiler.clone(*work[i].first), options.target, work[i].second);
    });
  });
  fmt::print("  {} candidates of the file's kernels compiled: {:.1f} ms each, {:.1f} candidates a second\n",
             work.size(), all / static_cast<double>(work.size()), static_cast<double>(work.size()) / all * 1e3);
}
