// Measures what one more set of sizes costs in a process that has the model open, beside a process (session) that opens
// it anew:
//
//     bench_session FILE.kiln NAME=VALUE[,VALUE...] [CACHE_FOLDER]
//
// Each value gives the other open dimensions their smallest size. Without a
// folder nothing is cached on disk. One line for each value: milliseconds to
// finalize, to load and of a first run, what the cache had, what was packed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>

#include "bench/session/background.hpp"
#include "bench/session/compiles.hpp"
#include "bench/session/many.hpp"
#include "bench/session/parts.hpp"
#include "bench/session/unseen.hpp"
#include "ir/error.hpp"
#include "jit/compile_worker.hpp"
#include "session/session.hpp"

namespace {

using namespace kiln;
using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

void open_one(session& s, const std::string& name, std::int64_t size) {
  dim_bindings sizes;
  for (const auto& [symbol, range] : s.portable().symbols) sizes[symbol] = std::max<std::int64_t>(range.min, 1);
  sizes[name] = size;
  auto begin = clock::now();
  auto at = s.at(sizes);
  const double made = milliseconds_since(begin);
  std::vector<literal> inputs;
  for (value v : at->bound().main().parameters())
    inputs.push_back(literal(v.type(), std::vector<std::byte>(v.type().bytes())));
  begin = clock::now();
  at->run(inputs);
  const plan_report& plan = at->executable().plan().report;
  fmt::print("{:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>6} {:>6} {:>7} {:>7}\n", size, made, at->finalize_ms(),
             at->load_ms(), milliseconds_since(begin), at->report().hits, at->report().misses, plan.prepared_made,
             plan.prepared_found);
}

int measure(int argc, char** argv) {
  const std::string file = argv[1], dimension = argv[2];
  const std::string name = dimension.substr(0, dimension.find('='));
  std::vector<std::int64_t> values;
  std::istringstream list(dimension.substr(std::min(dimension.size(), name.size() + 1)));
  for (std::string one; std::getline(list, one, ',');) values.push_back(std::strtoll(one.c_str(), nullptr, 10));
  session_options options;
  if (argc > 3) options.cache.folder = argv[3];
  else options.cache.disabled = true;
  constexpr const char* head =
      "    size   made ms  finalize      load  1st "
      "run   hits misses  packed   found\n";
  fmt::print("one session\n{}", head);
  {
    session s(file, options);
    for (std::int64_t v : values) open_one(s, name, v);
  }
  // The cache has everything after the first value.
  if (argc > 3) return 0;
  fmt::print("a session for each\n{}", head);
  for (std::int64_t v : values) {
    session s(file, options);
    open_one(s, name, v);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "host";
  if (argc > 2 && argv[1] == std::string("--device")) device = argv[2], argv += 2, argc -= 2;
  if (argc == 2 && argv[1] == std::string(compile_worker_argument)) return run_compile_worker();
  const bool unseen = argc > 4 && argv[1] == std::string("--unseen");
  const bool many = argc > 4 && argv[1] == std::string("--many");
  const bool parts = argc > 4 && argv[1] == std::string("--parts");
  const bool compiles = argc > 4 && argv[1] == std::string("--compiles");
  const bool background = argc > 4 && argv[1] == std::string("--background");
  if (argc < 3 || (!unseen && !many && !parts && !compiles && !background && argv[1][0] == '-')) {
    fmt::print(
        stderr,
        "usage: bench_session FILE.kiln NAME=VALUE[,VALUE...] "
        "[CACHE_FOLDER]\n"
        "       bench_session [--device NAME] --unseen|--many|--parts FILE.kiln NAME=MIN:MAX[,NAME=MIN:MAX...] COUNT "
        "[CACHE_FOLDER]\n"
        "       bench_session [--device NAME] --compiles FILE.kiln LARGEST COUNT [CACHE_FOLDER [plans]]\n"
        "       bench_session [--device NAME] --background FILE.kiln NAME=FIRST:HOT[,NAME=FIRST:HOT...] SECONDS "
        "[CACHE_FOLDER]\n");
    return 2;
  }
  try {
    if (compiles) return bench::measure_compiles(argc, argv, device);
    if (background) return bench::measure_background(argc, argv, device);
    if (parts) return bench::measure_parts(argc, argv, device);
    if (many) return bench::measure_many(argc, argv, device);
    return unseen ? bench::measure_unseen(argc, argv, device) : measure(argc, argv);
  } catch (const error& e) {
    fmt::print(stderr, "bench_session: {}\n", e.what());
    return 1;
  }
}
