#include "jit/tuning/tuning_records.hpp"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <span>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/folder.hpp"
#include "jit/cache/transfer.hpp"
#include "jit/code_digest.hpp"
#include "jit/tuning/tuning_hints.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kernel_suffix = ".kernel.json", graph_suffix = ".graph.json";
constexpr std::size_t most_record_bytes = std::size_t{16} << 20;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

file_failure write_text(file_system& files, const std::filesystem::path& folder, const std::string& name,
                        const std::string& text) {
  for (const auto& f : {folder.parent_path(), folder})
    if (int code = files.make_folder(f); code != 0 && code != EEXIST) return {"mkdir", code};
  return write_file(files, folder, name, std::as_bytes(std::span(text)), {});
}

// The key of a graph decision: the program and the class of devices.
struct graph_subject {
  const std::string& program;  // its hash covers the native kernels
  const std::string& device_class;
  std::string file_name() const {
    return field_hasher().add("kiln graph decision").add(program).add(device_class).finish().hex() +
           std::string(graph_suffix);
  }
};

std::string graph_text(const graph_subject& of, const compiler_identity& origin, const graph_decision& d) {
  return json{{"kiln_graph_decision", tuning_record_version},
              {"program", of.program},
              {"device_class", of.device_class},
              {"code", origin.code},
              {"llvm", origin.llvm},
              {"replay", d.replay},
              {"branches", d.branches},
              {"eager_ms", d.eager_ms},
              {"replay_ms", d.replay_ms}}
             .dump(1) +
         "\n";
}

json check_graph(std::string_view text) {
  try {
    json d = parse_json(text);
    if (integer_of<int>(d.at("kiln_graph_decision")) > tuning_record_version)
      throw error(error_kind::newer_version, "a graph decision of a later version of the format");
    return d;
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("not a graph decision: {}", problem_of(e)));
  }
}

graph_decision parse_graph(std::string_view text, const graph_subject& of) {
  json d = check_graph(text);
  try {
    if (d.at("program") != of.program || d.at("device_class") != of.device_class)
      throw error(error_kind::corrupted, "a graph decision about something else");
    return {d.at("replay").get<bool>(), d.at("branches").get<bool>(), d.at("eager_ms").get<double>(),
            d.at("replay_ms").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("not a graph decision: {}", problem_of(e)));
  }
}

}  // namespace

compiler_identity this_compiler(target_family family) { return {compiler_code(family), LLVM_VERSION_STRING}; }

tuning_records::tuning_records(tuning_records_options options)
    : options_(std::move(options)), files_(options_.files ? *options_.files : posix_file_system()) {
  // Drops the layers that are refused; the cache has already logged why. Records are not code, so they are also read
  // from layers whose kernels must be signed.
  std::erase_if(options_.layers, [&](const auto& layer) { return !refuse_layer(files_, layer, true).empty(); });
  if (options_.hints.empty()) return;
  try {
    for (tuning_record& r : parse_hints(options_.hints)) {
      auto [known, fresh] = hints_.try_emplace(r.identity.hash(), r);
      if (!fresh) known->second = merge(known->second, r);
    }
  } catch (const error& e) {
    problem(fmt::format("the file's tuning hints are not used: {}", e.what()));
  }
}

void tuning_records::problem(const std::string& what) const {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(warned_, true)) return;
  }
  if (options_.warn) options_.warn("tuning records: " + what);
  else spdlog::warn("tuning records: {}", what);
}

// Calls `parse` with the text of every file of that name in the folder and in the layers.
template <class Parse>
void tuning_records::read(const std::string& name, Parse parse) const {
  auto look = [&](const std::filesystem::path& folder) {
    if (folder.empty()) return;
    std::vector<std::byte> bytes;
    file_failure failure = read_file(files_, folder / records_folder_name / name, most_record_bytes, bytes);
    if (failure.code == ENOENT || failure.code == ENOTDIR) return;
    if (failure) return problem(fmt::format("{}: {}", (folder / records_folder_name / name).string(), failure.text()));
    try {
      parse(text_of(bytes));
    } catch (const error& e) {
      problem(fmt::format("{} is not used: {}", (folder / records_folder_name / name).string(), e.what()));
    } catch (const std::bad_alloc&) {
      problem("out of memory");
    }
  };
  look(options_.folder);
  for (const auto& layer : options_.layers) look(layer);
}

void tuning_records::write(const std::string& name, const std::string& text) const {
  if (options_.folder.empty()) return;
  if (auto failure = write_text(files_, options_.folder / records_folder_name, name, text))
    problem(fmt::format("{}: {}", (options_.folder / records_folder_name).string(), failure.text()));
}

std::optional<tuning_record> tuning_records::find(const std::string& payload, const std::vector<shape>& inputs,
                                                  const std::vector<shape>& outputs) const {
  std::optional<tuning_record> found;
  record_identity wanted = identify(payload, inputs, outputs, options_.device_class);
  content_hash hash = wanted.hash();
  auto add = [&](const tuning_record& r) {
    if (r.identity != wanted) throw error(error_kind::corrupted, "it is about another kernel");
    found = found ? merge(*found, r) : r;
  };
  read(hash.hex() + std::string(kernel_suffix), [&](std::string_view text) { add(parse_record(text)); });
  if (auto hint = hints_.find(hash); hint != hints_.end() && hint->second.identity == wanted) add(hint->second);
  return found;
}

kernel_configuration tuning_records::winner(const std::string& payload, const std::vector<shape>& inputs,
                                            const std::vector<shape>& outputs) const {
  auto record = find(payload, inputs, outputs);
  if (!record || record->sessions.empty()) return {};
  const tuning_session* ours = record->session_of(options_.compiler);
  return (ours ? *ours : record->sessions.front()).winner;
}

void tuning_records::store(const tuning_record& record) const {
  std::string name = record.identity.hash().hex() + std::string(kernel_suffix);
  tuning_record whole = record;
  bool newer = false;
  std::vector<std::byte> bytes;
  if (!options_.folder.empty() &&
      !read_file(files_, options_.folder / records_folder_name / name, most_record_bytes, bytes)) {
    try {
      if (tuning_record there = parse_record(text_of(bytes)); there.identity == record.identity)
        whole = merge(whole, there);
    } catch (const error& e) {
      newer = e.kind() == error_kind::newer_version;  // a corrupt file is replaced
    }
  }
  if (!newer) write(name, to_text(newest_sessions(std::move(whole))));
}

std::optional<graph_decision> tuning_records::find_graph(const std::string& program_hash) const {
  const graph_subject subject{program_hash, options_.device_class};
  std::optional<graph_decision> found;
  read(subject.file_name(), [&](std::string_view text) {
    if (!found) found = parse_graph(text, subject);
  });
  return found;
}

void tuning_records::store_graph(const std::string& program_hash, const graph_decision& decision) const {
  const graph_subject subject{program_hash, options_.device_class};
  bool newer = false;
  std::vector<std::byte> bytes;
  if (!options_.folder.empty() &&
      !read_file(files_, options_.folder / records_folder_name / subject.file_name(), most_record_bytes, bytes)) {
    try {
      check_graph(text_of(bytes));
    } catch (const error& e) {
      newer = e.kind() == error_kind::newer_version;  // a corrupt file is replaced
    }
  }
  if (!newer) write(subject.file_name(), graph_text(subject, options_.compiler, decision));
}

std::optional<std::vector<std::byte>> merge_record_files(const std::string& name, std::span<const std::byte> arriving,
                                                         std::span<const std::byte> there) {
  std::optional<std::vector<std::byte>> as_it_is(std::in_place, arriving.begin(), arriving.end());
  if (name.ends_with(graph_suffix)) {
    check_graph(text_of(arriving));
    return there.empty() ? as_it_is : std::nullopt;
  }
  tuning_record record = parse_record(text_of(arriving));
  if (record.identity.hash().hex() + std::string(kernel_suffix) != name)
    throw error(error_kind::corrupted, name + " is about another kernel");
  if (there.empty()) return as_it_is;
  try {
    record = merge(record, parse_record(text_of(there)));
  } catch (const error& e) {
    if (e.kind() == error_kind::newer_version) return std::nullopt;  // a corrupt file is replaced
  }
  const std::string merged = to_text(newest_sessions(std::move(record)));
  auto bytes = std::as_bytes(std::span(merged));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace kiln
