#include "aot/onnx/read_tensor.hpp"

#include <fstream>

#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln {

literal read_onnx_tensor(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(error_kind::missing_file, file.string() + ": cannot be opened");
  ::onnx::TensorProto tensor;
  if (!tensor.ParseFromIstream(&in)) throw error(error_kind::corrupted, file.string() + ": is not an ONNX tensor");
  onnx_import::external_files files(file.parent_path());
  return onnx_import::take_tensor(tensor, files, file.string());
}

}  // namespace kiln
