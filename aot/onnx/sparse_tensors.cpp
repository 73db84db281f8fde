#include "aot/onnx/import_budget.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

// Upper bound on the size in bytes of one dense tensor. The budget bounds all of them (import_budget::take_dense).
constexpr std::int64_t most_bytes = std::int64_t{1} << 31;

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw error(error_kind::invalid_model, what + ": " + why);
}

std::vector<dim> dims_of(const ::onnx::SparseTensorProto& tensor, int bits, const std::string& what) {
  std::vector<dim> dims;
  std::int64_t elements = 1;
  check_rank(tensor.dims_size(), what);
  for (std::int64_t d : tensor.dims()) {
    if (d < 0) fail(what, "has the negative dimension " + std::to_string(d));
    if (d > 0 && elements > most_bytes * 8 / bits / d)
      throw error(error_kind::unsupported, what + " has more than 2 GiB as a dense tensor");
    elements *= d;
    dims.emplace_back(d);
  }
  return dims;
}

}  // namespace

literal take_dense(::onnx::SparseTensorProto& tensor, external_files& files, import_budget& budget,
                   const std::string& what) {
  literal values = take_tensor(*tensor.mutable_values(), files, what + ", values");
  literal indices = take_tensor(*tensor.mutable_indices(), files, what + ", indices");
  int bits = storage_bits(values.type().type);
  if (bits < 8)
    throw error(error_kind::unsupported,
                what + ": sparse tensors of " + std::string(name(values.type().type)) + " are not supported");
  shape type{values.type().type, dims_of(tensor, bits, what)};
  std::int64_t count = values.type().element_count(), rank = static_cast<std::int64_t>(type.rank());
  // Indices are either positions in the flattened tensor [count] or coordinates [count, rank].
  bool flat = indices.type().rank() == 1;
  if (values.type().rank() != 1 || indices.type().type != element_type::i64 ||
      indices.type().element_count() != (flat ? count : count * rank))
    fail(what, std::to_string(count) + " values with indices " + indices.type().str());
  auto width = static_cast<std::size_t>(bits) / 8;
  budget.take_dense(type.bytes(), values.bytes().size() + indices.bytes().size(), what);
  std::vector<std::byte> bytes(type.bytes());
  auto at = indices.as<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0;
    if (flat) place = at[static_cast<std::size_t>(i)];
    for (std::int64_t axis = 0; !flat && axis < rank; ++axis) {
      std::int64_t index = at[static_cast<std::size_t>(i * rank + axis)],
                   size = type.dims[static_cast<std::size_t>(axis)].value();
      if (index < 0 || index >= size) fail(what, "index " + std::to_string(index) + " is out of range");
      place = place * size + index;
    }
    if (place < 0 || place >= type.element_count()) fail(what, "index " + std::to_string(place) + " is out of range");
    std::memcpy(bytes.data() + static_cast<std::size_t>(place) * width,
                values.bytes().data() + static_cast<std::size_t>(i) * width, width);
  }
  return literal(std::move(type), std::move(bytes));
}

}  // namespace kiln::onnx_import
