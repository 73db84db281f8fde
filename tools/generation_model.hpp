// Opens the models of a folder for decoding, and counts what its sessions do.
#pragma once

#include <atomic>
#include <memory>

#include "generation/decoder.hpp"
#include "session/session.hpp"
#include "tools/generation_files.hpp"
#include "tools/session_view.hpp"

namespace kiln::tools {

class generation_model {
 public:
  // Opens `.kiln` files, and compiles `.onnx` files with all their dimensions open. `context`: most ids of a sequence,
  // 0: as the files say.
  generation_model(const generation_files& files, session_options options, const output_options& output,
                   std::int64_t context);

  kiln::decoder& decoder() { return *decoder_; }
  // Reads NAME=FILE.npy texts. Throws error{usage} for a name that the encoder does not have.
  std::map<std::string, literal> encoder_inputs(const std::vector<std::string>& texts) const;
  const session_resources& resources() const { return decoder_session_->resources(); }
  std::size_t plans() const { return plans_; }        // made so far
  std::size_t compiled() const { return compiled_; }  // kernels that the cache did not have

 private:
  std::unique_ptr<session> open(const std::filesystem::path& file, const session_options& options, bool is_decoder);
  session_view view_;
  std::atomic<std::size_t> plans_ = 0, compiled_ = 0;
  std::unique_ptr<session> decoder_session_, first_session_, encoder_session_;
  std::unique_ptr<kiln::decoder> decoder_;
};

}  // namespace kiln::tools
