// The compiler of ONNX models, as a program: libkiln.so has none, and an error or a crash of it is a part of the graph
// that ONNX Runtime keeps. What it wrote is kept in the cache folder, by the hash of the model. Any thread.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "onnxruntime/graph_model.hpp"
#include "onnxruntime/options.hpp"

namespace kiln::ort {

class compiler {
 public:
  // Finds the program: the option, $KILN_COMPILER, beside this library, or `kiln` of the PATH.
  explicit compiler(const provider_options& options);

  // Range of the opsets in which the operator is known; first > last if it is not.
  std::pair<std::int64_t, std::int64_t> opsets(const std::string& domain, const std::string& name) const;
  // Returns the path of the `.kiln` file. Throws std::runtime_error with the compiler's words.
  std::string compile(const graph_model& model) const;
  // Puts a `.kiln` file of these contents into the folder, and returns its path.
  std::string keep(const std::string& contents) const;
  // The file that a model's large tensors lie in.
  static constexpr const char* data_file = "model.data";

 private:
  std::string program_, folder_, version_;
  std::vector<std::string> options_;
  std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, std::int64_t>> known_;
};

}  // namespace kiln::ort
