// TensorProto to literal, and the external data files that hold large tensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "aot/onnx/model_file.hpp"
#include "ir/literal.hpp"

namespace kiln::onnx_import {

// No model has tensors of more dimensions, and no .kiln file (ir/container/program_limits.hpp).
inline constexpr int max_rank = 64;
// Throws error{unsupported} naming `what`.
void check_rank(int rank, const std::string& what);

// TensorProto.DataType to ours; throws error{unsupported} naming `what`.
element_type element_type_of(std::int64_t data_type, const std::string& what);

// The one folder that a model may read its external data from, or the one file that stands for all it names. Files are
// mapped once.
class external_files {
 public:
  explicit external_files(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Throws error{missing_file}, and error{invalid_model} for a path that leaves the folder.
  std::shared_ptr<const mapped_file> open(const std::string& location, const std::string& what);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const mapped_file>> files_;
};

// Moves the bytes out of `tensor` where it keeps them as raw_data. `what` names it in messages: "initializer 'w'".
literal take_tensor(::onnx::TensorProto& tensor, external_files& files, const std::string& what);

}  // namespace kiln::onnx_import
