#include "aot/passes/pass.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <fstream>

#include "ir/cancellation.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

void dump(const program& p, const std::filesystem::path& dump_dir, std::size_t number, const std::string& name) {
  if (dump_dir.empty()) return;
  std::filesystem::create_directories(dump_dir);
  auto path = dump_dir / fmt::format("{:02}_{}.txt", number, name);
  std::ofstream file(path);
  file << p.str();
  if (!file.flush()) throw error(error_kind::io, "cannot write " + path.string());
}

std::vector<std::string> names_of(const std::vector<pass>& passes) {
  std::vector<std::string> names;
  for (const pass& each : passes) names.push_back(each.name());
  return names;
}

}  // namespace

std::vector<std::string> until_stable::inner_names() const { return names_of(passes); }

std::vector<std::string> with_cleanup::inner_names() const { return names_of(others); }

bool with_cleanup::apply(program& p) const {
  if (!first.apply(p)) return false;
  for (const pass& each : others) {
    check_stop();
    each.apply(p);
  }
  return true;
}

bool until_stable::apply(program& p) const {
  bool ever = false;
  std::size_t at_rest = 0;  // consecutive passes that changed nothing
  for (int round = 0; round < rounds; ++round)
    for (const pass& each : passes) {
      check_stop();
      const bool changed = each.apply(p);
      ever |= changed;
      at_rest = changed ? 0 : at_rest + 1;
      if (at_rest == passes.size()) return ever;
    }
  return ever;
}

void run_passes(program& p, const std::vector<pass>& passes, const std::filesystem::path& dump_dir) {
  dump(p, dump_dir, 0, "imported");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    check_stop();
    auto start = std::chrono::steady_clock::now();
    passes[i].apply(p);
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    spdlog::debug("pass {}: {:.1f} ms", passes[i].name(), taken.count());
    dump(p, dump_dir, i + 1, passes[i].name());
  }
}

}  // namespace kiln
