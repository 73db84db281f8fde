// Converts TensorProto to literals, and opens the external data files that hold large tensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "aot/onnx/detach_tensors.hpp"
#include "aot/onnx/model_file.hpp"
#include "ir/literal.hpp"

namespace kiln::onnx_import {

class import_budget;

// Upper bound on the rank of a tensor, the same as in .kiln files (ir/container/program_limits.hpp).
inline constexpr int max_rank = 64;
// Throws error{unsupported} with `what` if the rank is too large.
void check_rank(int rank, const std::string& what);

// Converts TensorProto.DataType to our element type. Throws error{unsupported} with `what`.
element_type element_type_of(std::int64_t data_type, const std::string& what);

// The external data of a model: either the one folder from which the model may read files, or one file that replaces
// all of them. Each file is mapped once.
class external_files {
 public:
  // `model` is the model's own file, from which detached tensors are read (detach_tensors.hpp); it may be null.
  explicit external_files(std::filesystem::path folder, std::shared_ptr<const mapped_file> model = nullptr)
      : folder_(std::move(folder)) {
    if (model) files_[own_file_location] = std::move(model);
  }
  // Throws error{missing_file}, or error{invalid_model} for a path outside the folder.
  std::shared_ptr<const mapped_file> open(const std::string& location, const std::string& what);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const mapped_file>> files_;
};

// Moves the bytes out of `tensor` if they are in raw_data. `what` names the tensor in messages: "initializer 'w'".
literal take_tensor(::onnx::TensorProto& tensor, external_files& files, const std::string& what);

// Converts a sparse tensor to a dense literal. Throws error{invalid_model} for indices out of range.
literal take_dense(::onnx::SparseTensorProto& tensor, external_files& files, import_budget& budget,
                   const std::string& what);

}  // namespace kiln::onnx_import
