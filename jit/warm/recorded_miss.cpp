#include "jit/warm/recorded_miss.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/read_file.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/targets.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

json write_shapes(const std::vector<shape>& shapes) {
  auto list = json::array();
  for (const shape& s : shapes) list.push_back({{"type", name(s.type)}, {"dims", s.static_dims()}});
  return list;
}

std::vector<shape> read_shapes(const json& list) {
  std::vector<shape> shapes;
  for (const auto& s : list) {
    auto text = s.at("type").get<std::string>();
    auto type = parse_element_type(text);
    if (!type) throw error(error_kind::unsupported, fmt::format("element type '{}' is unknown", text));
    shapes.push_back({*type, {}});
    for (const auto& d : s.at("dims")) shapes.back().dims.emplace_back(integer_of<std::int64_t>(d));
  }
  return shapes;
}

// A GPU target is found by name in the table of targets. A CPU row is written out, because it may describe the
// recording machine's own processor ("native").
json write_target(const target_row& row) {
  json target{{"name", row.name}, {"family", enum_name(row.family)}, {"description", describe(row)}};
  if (row.family == target_family::cpu)
    target.update({{"triple", row.triple},
                   {"processor", row.processor},
                   {"features", row.features},
                   {"vector_bits", row.vector_bits},
                   {"vector_registers", row.vector_registers},
                   {"l1_bytes", row.l1_bytes},
                   {"l2_bytes", row.l2_bytes}});
  return target;
}

target_row read_target(const json& target) {
  auto name = target.at("name").get<std::string>();
  target_row row;
  if (target.at("family") != enum_name(target_family::cpu)) {
    row = find_target(name);
  } else {
    row.name = name;
    row.triple = target.at("triple").get<std::string>();
    row.processor = target.at("processor").get<std::string>();
    row.features = target.at("features").get<std::string>();
    row.vector_bits = integer_of<int>(target.at("vector_bits"));
    row.vector_registers = integer_of<int>(target.at("vector_registers"));
    row.l1_bytes = integer_of<std::int64_t>(target.at("l1_bytes"));
    row.l2_bytes = integer_of<std::int64_t>(target.at("l2_bytes"));
  }
  if (describe(row) != target.at("description").get<std::string>())
    throw error(error_kind::unsupported, fmt::format("target '{}' was recorded as '{}' but is '{}' in this version",
                                                     name, target.at("description").get<std::string>(), describe(row)));
  return row;
}

std::vector<recorded_miss> record_if(const program& bound, const jit_options& options, const std::string& file,
                                     const std::function<bool(const kernel_key&)>& missed) {
  std::vector<recorded_miss> result;
  for (const wanted_kernel& w : wanted_kernels(bound, options.target, options.driver))
    if (missed(w.key))
      result.push_back({w.symbol, w.key.payload, w.key.inputs, w.key.outputs, options.target, options.driver,
                        w.key.hash().hex(), std::filesystem::absolute(file).string()});
  return result;
}

}  // namespace

std::string write_miss(const recorded_miss& miss) {
  return json{{"symbol", miss.symbol},
              {"payload", miss.payload},
              {"inputs", write_shapes(miss.inputs)},
              {"outputs", write_shapes(miss.outputs)},
              {"target", write_target(miss.target)},
              {"driver", miss.driver},
              {"key", miss.key},
              {"file", miss.file}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

recorded_miss read_miss(std::string_view line) {
  try {
    auto d = parse_json(line);
    auto text = [&](const char* name) { return d.at(name).get<std::string>(); };
    return {text("symbol"),
            content_hash::from_hex(text("payload")).hex(),
            read_shapes(d.at("inputs")),
            read_shapes(d.at("outputs")),
            read_target(d.at("target")),
            text("driver"),
            text("key"),
            text("file")};
  } catch (const json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("not a recorded miss: {}", problem_of(e)));
  }
}

std::vector<recorded_miss> misses_of(const program& bound, const jit_options& options, const jit_report& report,
                                     const std::string& file) {
  if (report.misses == 0) return {};
  return record_if(bound, options, file, [&](const kernel_key& key) {
    return std::ranges::any_of(report.kernels, [&](const kernel_report& k) {
      return !k.cached && k.payload == key.payload && k.inputs == key.inputs;
    });
  });
}

std::vector<recorded_miss> absent_kernels(const program& bound, const jit_options& options, const std::string& file) {
  return record_if(bound, options, file,
                   [&](const kernel_key& key) { return !options.cache || !options.cache->find(key); });
}

void append_misses(const std::filesystem::path& log, const std::vector<recorded_miss>& misses) {
  if (misses.empty()) return;
  std::string lines;
  for (const recorded_miss& m : misses) lines += write_miss(m) + "\n";
  int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0)
    throw error(error_kind::io, fmt::format("{}: cannot be opened: {}", log.string(), std::strerror(errno)));
  ssize_t written = ::write(file, lines.data(), lines.size());
  int code = errno;
  ::close(file);
  if (written != static_cast<ssize_t>(lines.size()))
    throw error(error_kind::io, fmt::format("{}: cannot be written: {}", log.string(),
                                            written < 0 ? std::strerror(code) : "the disk is full"));
}

std::vector<recorded_miss> read_misses(const std::filesystem::path& log) {
  constexpr std::size_t most_bytes = std::size_t{256} << 20;
  std::istringstream in(read_file(log, most_bytes));
  std::vector<recorded_miss> result;
  std::set<std::string> known;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      recorded_miss miss = read_miss(line);
      if (known.insert(miss.key).second) result.push_back(std::move(miss));
    } catch (const error& e) {
      throw error(e.kind(), fmt::format("{}:{}: {}", log.string(), number, e.what()));
    }
  }
  return result;
}

}  // namespace kiln
