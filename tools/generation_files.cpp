#include "tools/generation_files.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/read_file.hpp"

namespace kiln::tools {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

// The decoders that a folder may hold, by preference. `first` serves the first step.
struct decoder_row {
  const char *decoder, *first;
};
constexpr std::array rows{decoder_row{"decoder_model_merged", ""},
                          decoder_row{"decoder_with_past_model", "decoder_model"}, decoder_row{"model", ""},
                          decoder_row{"decoder_model", ""}, decoder_row{"decoder", ""}};
constexpr std::array encoders{"encoder_model", "encoder"};
constexpr std::array configurations{"config.json", "generation_config.json", "genai_config.json"};
// Keys of the same meaning; the first one that is there counts.
constexpr std::array context_keys{"context_length", "max_target_positions", "max_position_embeddings", "n_positions",
                                  "n_ctx"};

fs::path model_in(const fs::path& folder, const std::string& stem) {
  for (const char* sub : {"", "onnx"})
    for (const char* extension : {".kiln", ".onnx"})
      if (fs::path file = folder / sub / (stem + extension); fs::exists(file)) return file;
  return {};
}

json read_json(const fs::path& file) {
  if (!fs::exists(file)) return json::object();
  const std::string text = read_file(file, json_limits().bytes);
  json document;
  try {
    document = parse_json(text);
  } catch (const error& e) {
    throw error(e.kind(), fmt::format("{}: {}", file.string(), e.what()));
  }
  if (!document.is_object()) throw error(error_kind::corrupted, fmt::format("{}: is not a JSON object", file.string()));
  return document;
}

void read_configuration(const json& document, generation_files& files) {
  if (auto found = document.find("eos_token_id"); found != document.end()) {
    if (found->is_number_integer()) files.stop_ids = {found->get<std::int64_t>()};
    if (found->is_array()) {
      files.stop_ids.clear();
      for (const json& id : *found)
        if (id.is_number_integer()) files.stop_ids.push_back(id.get<std::int64_t>());
    }
  }
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  };
  if (auto start = number("decoder_start_token_id")) files.decoder_start = start;
  // Relative positions have no end; the number is only that of the training.
  if (document.contains("relative_attention_num_buckets")) return;
  for (const char* key : context_keys)
    if (auto context = number(key)) {
      files.context = context;
      break;
    }
}

}  // namespace

generation_files find_generation_files(const fs::path& file_or_folder) {
  generation_files files;
  if (!fs::is_directory(file_or_folder)) {
    files.decoder = file_or_folder;
    return files;
  }
  std::string decoder_name;
  for (const char* name : configurations) {
    const json document = read_json(file_or_folder / name);
    // Models of text and images keep what belongs to the text apart; genai keeps all in "model".
    for (const char* part : {"text_config", "model"})
      if (auto found = document.find(part); found != document.end() && found->is_object())
        read_configuration(*found, files);
    read_configuration(document, files);
    if (auto name_in = json::json_pointer("/model/decoder/filename");
        document.contains(name_in) && document.at(name_in).is_string())
      decoder_name = document.at(name_in).get<std::string>();
  }
  if (!decoder_name.empty()) files.decoder = model_in(file_or_folder, fs::path(decoder_name).stem().string());
  for (const decoder_row& row : rows) {
    if (!files.decoder.empty()) break;
    files.decoder = model_in(file_or_folder, row.decoder);
    if (*row.first) files.first = files.decoder.empty() ? fs::path() : model_in(file_or_folder, row.first);
  }
  for (const char* name : encoders)
    if (files.encoder.empty()) files.encoder = model_in(file_or_folder, name);
  if (files.decoder.empty())
    throw error(error_kind::missing_file,
                fmt::format("{}: holds no decoder, such as model.onnx or decoder_model_merged.onnx; name the file",
                            file_or_folder.string()));
  return files;
}

}  // namespace kiln::tools
