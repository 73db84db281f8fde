#include "jit/remote/farm_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& why) { throw error(error_kind::corrupted, "a farm job " + why); }

// Input names become file names in the job's folder and appear in messages. A name must be a relative path without "."
// or ".." and without control characters.
bool stays_inside(const std::string& name) {
  constexpr std::size_t longest_part = 200;  // leaves room for the suffix of a temporary file
  std::filesystem::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const auto& part : path)
    if (part == ".." || part == "." || part.empty() || part.native().size() > longest_part) return false;
  return std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string word(const nlohmann::ordered_json& value, const char* what) {
  auto text = value.get<std::string>();
  if (text.size() > longest_word)
    refuse(fmt::format("whose {} has {} bytes, more than {}", what, text.size(), longest_word));
  return text;
}

farm_input read_input(const nlohmann::ordered_json& i) {
  farm_input input{word(i.at("name"), "input's name"), {}, 0, word(i.at("path"), "input's path")};
  auto digits = word(i.at("hash"), "input's hash");
  if (!stays_inside(input.name)) refuse("with an input whose name is not a file name inside its folder");
  if (!i.at("bytes").is_number_unsigned()) refuse(fmt::format("whose input '{}' has no size", input.name));
  input.bytes = i.at("bytes").get<std::uint64_t>();
  try {
    input.hash = content_hash::from_hex(digits);
  } catch (const error&) {
    refuse(fmt::format("whose input '{}' has no content hash", input.name));
  }
  return input;
}

farm_kind read_kind(const std::string& text) {
  farm_kind kind;
  if (!parse_enum(text, kind))
    throw error(error_kind::unsupported, "a farm job of a kind that this version does not know");
  return kind;
}

}  // namespace

std::string farm_job::id() const {
  field_hasher hasher;
  hasher.add(enum_name(kind)).add(version).add(static_cast<std::int64_t>(inputs.size()));
  for (const farm_input& i : inputs) hasher.add(i.name).add(i.hash);
  for (const std::string& o : options) hasher.add(o);
  return hasher.finish().hex();
}

std::string write_job(const farm_job& job) {
  auto inputs = json::array();
  for (const farm_input& i : job.inputs)
    inputs.push_back({{"name", i.name}, {"hash", i.hash.hex()}, {"bytes", i.bytes}, {"path", i.path}});
  return json{{"kind", enum_name(job.kind)},
              {"inputs", inputs},
              {"options", job.options},
              {"version", job.version},
              {"label", job.label}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

farm_job read_job(std::string_view text) {
  if (text.size() > largest_job_bytes) refuse(fmt::format("of {} bytes, more than {}", text.size(), largest_job_bytes));
  try {
    auto document = parse_json(text, {.bytes = largest_job_bytes, .depth = 8});
    farm_job job{read_kind(word(document.at("kind"), "kind")),
                 {},
                 {},
                 word(document.at("version"), "version"),
                 word(document.at("label"), "label")};
    const auto &options = document.at("options"), &inputs = document.at("inputs");
    if (!options.is_array() || options.size() > most_options)
      refuse(fmt::format("whose options are not a list of at most {} strings", most_options));
    if (!inputs.is_array() || inputs.empty() || inputs.size() > most_inputs)
      refuse(fmt::format("whose inputs are not a list of 1 to {} files", most_inputs));
    for (const auto& option : options) job.options.push_back(word(option, "option"));
    std::set<std::string> names;
    for (const auto& i : inputs) {
      job.inputs.push_back(read_input(i));
      if (!names.insert(job.inputs.back().name).second)
        refuse(fmt::format("with two inputs called '{}'", job.inputs.back().name));
    }
    return job;
  } catch (const nlohmann::json::exception& e) {
    refuse(fmt::format("that cannot be read: {}", problem_of(e)));
  }
}

}  // namespace kiln
