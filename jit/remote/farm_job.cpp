#include "jit/remote/farm_job.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

bool stays_inside(const std::string& name) {
  std::filesystem::path path(name);
  if (name.empty() || path.is_absolute() || name.find('\0') != std::string::npos) return false;
  for (const auto& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

farm_kind read_kind(const std::string& text) {
  farm_kind kind;
  if (!parse_enum(text, kind)) throw error(error_kind::unsupported, fmt::format("a farm job of kind '{}', which this version does not know", text));
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
  for (const farm_input& i : job.inputs) inputs.push_back({{"name", i.name}, {"hash", i.hash.hex()}, {"bytes", i.bytes}, {"path", i.path}});
  return json{{"kind", enum_name(job.kind)}, {"inputs", inputs}, {"options", job.options}, {"version", job.version}, {"label", job.label}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

farm_job read_job(std::string_view text) {
  try {
    auto document = parse_json(text);
    farm_job job{read_kind(document.at("kind").get<std::string>()), {}, document.at("options").get<std::vector<std::string>>(), document.at("version").get<std::string>(), document.at("label").get<std::string>()};
    for (const auto& i : document.at("inputs")) {
      job.inputs.push_back({i.at("name").get<std::string>(), content_hash::from_hex(i.at("hash").get<std::string>()), i.at("bytes").get<std::uint64_t>(), i.at("path").get<std::string>()});
      if (!stays_inside(job.inputs.back().name)) throw error(error_kind::corrupted, fmt::format("a farm job whose input '{}' leaves its folder", job.inputs.back().name));
    }
    if (job.inputs.empty()) throw error(error_kind::corrupted, "a farm job without inputs");
    return job;
  } catch (const json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("what lies in the queue is no farm job: {}", e.what()));
  }
}

}  // namespace kiln
