#include "tools/generation_files.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <system_error>
#include <utility>

#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/read_file.hpp"
#include "tools/generation_configuration.hpp"

namespace kiln::tools {
namespace {

namespace fs = std::filesystem;

// The decoders that a folder may hold, by preference. `first` serves the first step.
struct decoder_row {
  const char *decoder, *first;
};
constexpr std::array rows{decoder_row{"decoder_model_merged", ""},
                          decoder_row{"decoder_with_past_model", "decoder_model"}, decoder_row{"model", ""},
                          decoder_row{"decoder_model", ""}, decoder_row{"decoder", ""}};
constexpr std::array encoders{"encoder_model", "encoder"};
constexpr std::array configurations{"config.json", "generation_config.json", "genai_config.json"};

// A name that a configuration states may be one that no file can have.
bool is_there(const fs::path& file) {
  std::error_code failed;
  return fs::exists(file, failed);
}

fs::path model_in(const fs::path& folder, const std::string& stem) {
  for (const char* sub : {"", "onnx"})
    for (const char* extension : {".kiln", ".onnx"})
      if (fs::path file = folder / sub / (stem + extension); is_there(file)) return file;
  return {};
}

// Adds what the file says, if it is there.
void read_configuration(const fs::path& file, generation_configuration& into) {
  if (!is_there(file)) return;
  const std::string text = read_file(file, json_limits().bytes);
  try {
    read_generation_configuration(text, into);
  } catch (const error& e) {
    throw error(e.kind(), fmt::format("{}: {}", file.string(), e.what()));
  }
}

}  // namespace

generation_files find_generation_files(const fs::path& file_or_folder) {
  generation_files files;
  if (!fs::is_directory(file_or_folder)) {
    files.decoder = file_or_folder;
    return files;
  }
  generation_configuration said;
  for (const char* name : configurations) read_configuration(file_or_folder / name, said);
  files.stop_ids = std::move(said.stop_ids);
  files.context = said.context;
  files.decoder_start = said.decoder_start;
  if (!said.decoder.empty()) files.decoder = model_in(file_or_folder, fs::path(said.decoder).stem().string());
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
