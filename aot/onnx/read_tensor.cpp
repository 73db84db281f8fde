#include "aot/onnx/read_tensor.hpp"

#include <climits>

#include "aot/onnx/model_file.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln {

literal read_onnx_tensor(const std::filesystem::path& file) {
  const auto mapped = onnx_import::mapped_file::open(file, "tensor");
  const auto bytes = mapped->bytes();
  if (bytes.size() > INT_MAX)
    throw error(error_kind::unsupported, file.string() + ": is larger than the 2 GiB of one protobuf message");
  ::onnx::TensorProto tensor;
  if (!tensor.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw error(error_kind::corrupted, file.string() + ": is not an ONNX tensor");
  onnx_import::external_files files(file.parent_path());
  return onnx_import::take_tensor(tensor, files, file.string());
}

}  // namespace kiln
