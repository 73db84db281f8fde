#include "tools/generation_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "aot/onnx/import.hpp"
#include "aot/pipeline.hpp"
#include "generation/decoder_session.hpp"
#include "ir/error.hpp"
#include "tools/decoder_import.hpp"
#include "tools/model_options.hpp"
#include "tools/npy.hpp"

namespace kiln::tools {
generation_model::generation_model(const generation_files& files, session_options options, const output_options& output,
                                   std::int64_t context)
    : view_(output) {
  options.observer = [this](const session_event& event) {
    if (std::get_if<session_events::loaded>(&event)) ++plans_;
    if (const auto* done = std::get_if<session_events::finalized>(&event)) compiled_ += done->report.misses;
    view_.show(event);
  };
  decoder_session_ = open(files.decoder, options, true);
  if (!files.first.empty()) first_session_ = open(files.first, options, true);
  if (!files.encoder.empty()) encoder_session_ = open(files.encoder, options, false);
  decoder_ = std::make_unique<kiln::decoder>(
      decoder_models{decoder_session_.get(), first_session_.get(), encoder_session_.get()}, context);
}

std::map<std::string, literal> generation_model::encoder_inputs(const std::vector<std::string>& texts) const {
  std::map<std::string, literal> result;
  for (const std::string& text : texts) {
    const auto [name, file] = split_assignment(text, "--encoder-input");
    const auto parameters = encoder_session_ ? encoder_session_->portable().main().parameters() : std::vector<value>();
    const auto found = std::ranges::find_if(parameters, [&](value v) { return module::parameter_name(v) == name; });
    if (found == parameters.end())
      throw error(error_kind::usage, fmt::format("--encoder-input {}: there is no encoder with this input", name));
    result.insert_or_assign(name, as_type(read_npy(file), found->type().type));
  }
  return result;
}

std::unique_ptr<session> generation_model::open(const std::filesystem::path& file, const session_options& options,
                                                bool is_decoder) {
  if (file.extension() != ".onnx")
    return is_decoder ? open_decoder_session(file, options) : std::make_unique<session>(file, options);
  session_options opening = options;
  if (opening.compiling == compile_place::workers) opening.compiling = compile_place::this_process;
  program imported = is_decoder ? import_with_empty_past(file) : import_onnx(file);
  compile_options compiling;
  std::optional<program> steps;
  // Kernels of caches that are updated in place serve all lengths.
  if (is_decoder && options.specialization == specialization::off) ask_for_steps(imported, compiling, steps);
  program compiled = compile(std::move(imported), compiling);
  if (steps) prepare_steps(*steps, opening);
  return std::make_unique<session>(steps ? std::move(*steps) : std::move(compiled), file.string(), std::move(opening));
}

}  // namespace kiln::tools
