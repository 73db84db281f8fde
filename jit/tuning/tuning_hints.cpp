#include "jit/tuning/tuning_hints.hpp"

#include <fmt/format.h>

#include <set>

#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

}  // namespace

std::string hints_text(const std::vector<tuning_record>& records) {
  auto list = json::array();
  for (const tuning_record& r : records) list.push_back(parse_json(to_text(r)));
  std::string text = json{{"kiln_tuning_hints", tuning_record_version}, {"records", list}}.dump(1) + "\n";
  parse_json(text);  // throws if the text exceeds what a reader accepts
  return text;
}

std::vector<tuning_record> parse_hints(std::string_view text) {
  try {
    const json document = parse_json(text);
    if (integer_of<int>(document.at("kiln_tuning_hints")) > tuning_record_version)
      throw error(error_kind::newer_version, "they are of a later version of the format");
    std::vector<tuning_record> result;
    std::set<content_hash> kernels;
    for (const json& r : document.at("records")) {
      result.push_back(read_record(r));
      if (!kernels.insert(result.back().identity.hash()).second)
        throw error(error_kind::corrupted, "not tuning hints: two records of one kernel");
    }
    return result;
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("not tuning hints: {}", problem_of(e)));
  }
}

}  // namespace kiln
