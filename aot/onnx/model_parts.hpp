// Parts of an ONNX model as models of their own: some of its nodes in a row, with the tensors that they need as inputs
// and those that others need as outputs. For finding the smallest part that is computed wrongly (kiln verify --bisect).
// Not thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/literal.hpp"

namespace kiln {

class model_parts {
 public:
  // Reads the model with its external data. Throws what import_onnx throws for files.
  explicit model_parts(const std::filesystem::path& model);
  ~model_parts();

  std::size_t node_count() const;
  // "Relu_3 (Relu)": the name, or the first output, and the operator.
  std::string node_name(std::size_t index) const;

  // The model with every tensor that some node reads as an output, after the outputs of its own.
  std::string with_all_outputs() const;

  struct part {
    std::string bytes;  // a ModelProto with all of its weights
    std::vector<std::string> inputs, outputs;
  };
  // The nodes [begin, end). `values` has the tensors of the whole model by name: their types become those of the
  // inputs. With `constant_sizes`, integer tensors of at most 64 elements become constants, because sizes may be made
  // of them. Throws error{unsupported} if the part gives nothing that others read.
  part cut(std::size_t begin, std::size_t end, const std::map<std::string, literal>& values, bool constant_sizes) const;

 private:
  struct implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace kiln
