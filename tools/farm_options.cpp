#include "tools/farm_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "aot/onnx/import.hpp"
#include "ir/error.hpp"
#include "jit/targets.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {
namespace {

using enum farm_value;

// Indexed by farm_kind.
const std::array<farm_command, 2>& table() {
  static const std::array<farm_command, 2> rows{{
      {"compile",
       "model.onnx",
       "result.kiln",
       ".kiln",
       {"--output", "result.kiln", "--unsigned"},
       {{"--dim", dim_range},
        {"--value", elements},
        {"--fp16", none},
        {"--bf16", none},
        {"--int8", none},
        {"--int4-weights", none},
        {"--custom-op", source}}},
      {"warm",
       "model.kiln",
       "result.tar.zst",
       ".tar.zst",
       {"--archive", "result.tar.zst", "--no-cache"},
       {{"--dim", dim_values}, {"--target", target}}},
  }};
  return rows;
}

std::string names_of(const farm_command& command) {
  std::string names;
  for (const farm_option& o : command.allowed) names += fmt::format("{}{}", names.empty() ? "" : " ", o.name);
  return names;
}

[[noreturn]] void does_not_travel(std::string_view word, const farm_command& command) {
  throw error(error_kind::unsupported,
              fmt::format("{} does not travel to a farm's workers; the options of kiln {} that do: {}",
                          word.starts_with('-') ? fmt::format("option {}", word) : fmt::format("'{}'", word),
                          command.command, names_of(command)));
}

// Names that the command's own parser does not change. It would read "[a,b]" as two values.
bool is_plain(const std::string& name) {
  return std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/'; });
}

void check_value(const given_option& o) {
  switch (o.kind) {
    case none: return;
    case dim_range: return static_cast<void>(parse_dim_spec(o.value));
    case elements: return static_cast<void>(parse_value_spec(o.value));
    case dim_values: {
      auto [name, list] = split_assignment(o.value, "--dim");
      for (std::size_t begin = 0; begin <= list.size();) {
        std::size_t end = std::min(list.find(',', begin), list.size());
        parse_bindings({name + "=" + list.substr(begin, end - begin)});
        begin = end + 1;
      }
      return;
    }
    case target:
      if (o.value == "native")
        throw error(error_kind::usage, "target 'native' differs between workers: name a target of kiln targets");
      return static_cast<void>(find_target(o.value));
    case source:
      if (o.value.empty()) throw error(error_kind::usage, fmt::format("{} names no file", o.name));
      return;
  }
}

}  // namespace

const farm_command& command_of(farm_kind kind) { return table()[static_cast<std::size_t>(kind)]; }

std::vector<given_option> read_farm_options(farm_kind kind, const std::vector<std::string>& options) {
  const farm_command& command = command_of(kind);
  std::vector<given_option> result;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    auto row = std::ranges::find(command.allowed, name, &farm_option::name);
    if (row == command.allowed.end()) does_not_travel(name, command);
    given_option o{row->name, row->value, ""};
    if (row->value == none) {
      if (equals != std::string::npos) throw error(error_kind::usage, fmt::format("{} takes no value", name));
    } else if (equals != std::string::npos) {
      o.value = word.substr(equals + 1);
    } else {
      if (i + 1 == options.size()) throw error(error_kind::usage, fmt::format("{} has no value", name));
      o.value = options[++i];
    }
    // The command's own parser takes every word that begins with a dash for an option.
    if (o.value.starts_with('-'))
      throw error(error_kind::usage, fmt::format("{} has no value: '{}' is an option", name, o.value));
    check_value(o);
    result.push_back(std::move(o));
  }
  return result;
}

void check_farm_job(const farm_job& job) {
  const farm_command& command = command_of(job.kind);
  if (job.inputs.front().name != command.model)
    throw error(error_kind::unsupported,
                fmt::format("a job of kind {} whose first input is not called {}", command.command, command.model));
  for (const farm_input& i : job.inputs)
    if (*std::filesystem::path(i.name).begin() == command.result)
      throw error(error_kind::unsupported,
                  fmt::format("a job with an input that has the name of its result, {}", command.result));
  if (job.kind == farm_kind::warm && job.inputs.size() != 1)
    throw error(error_kind::unsupported, "a job of kind warm has one input, the file");
  for (const given_option& o : read_farm_options(job.kind, job.options)) {
    if (o.kind != source) continue;
    if (!is_plain(o.value))
      throw error(
          error_kind::unsupported,
          fmt::format("{} {}: names of sources that travel have letters, digits and . _ - / only", o.name, o.value));
    auto named = std::ranges::find(job.inputs, o.value, &farm_input::name);
    if (named == job.inputs.begin() || named == job.inputs.end())
      throw error(error_kind::unsupported, fmt::format("{} {}: is none of the job's inputs", o.name, o.value));
  }
}

}  // namespace kiln::tools
