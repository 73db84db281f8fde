#include "aot/onnx/import_budget.hpp"

#include <string>

#include "aot/onnx/node.hpp"
#include "ir/cancellation.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

constexpr std::uint64_t max_copied_bytes = std::uint64_t{1} << 30;
constexpr std::int64_t always_folded = 64, max_folded_elements = std::int64_t{1} << 27;
// Dense tensors of a model that stores them sparse: this much, and so many times the bytes of their values and indices.
constexpr std::uint64_t free_dense_bytes = std::uint64_t{256} << 20, most_expansion = 16;
// What takes the time of a node.
constexpr std::uint64_t bytes_of_node = 2048;
constexpr std::int64_t elements_of_node = 1024;

}  // namespace

void import_budget::take_node() {
  check_stop();
  if (++nodes_ > most_nodes_)
    refuse("the model has more than " + std::to_string(most_nodes_) +
           " nodes once its functions are expanded; --max-nodes raises the limit");
}

void import_budget::take_function_node(std::size_t bytes) {
  if (++function_nodes_ > most_nodes_ / 4)
    refuse("the calls of the model's functions expand to more than " + std::to_string(most_nodes_ / 4) +
           " nodes; --max-nodes sets four times this limit");
  take_copy(bytes);
}

void import_budget::take_copy(std::size_t bytes) {
  copied_bytes_ += bytes;
  if (copied_bytes_ > max_copied_bytes)
    refuse("expanding the model's functions takes more than " + std::to_string(max_copied_bytes >> 20) + " MiB");
}

void import_budget::take_dense(std::size_t bytes, std::size_t stored, const std::string& what) {
  dense_bytes_ += bytes, sparse_bytes_ += stored;
  const std::uint64_t most = free_dense_bytes + most_expansion * sparse_bytes_;
  if (dense_bytes_ > most)
    throw error(error_kind::unsupported, what + ": the model's sparse tensors take more than " +
                                             std::to_string(most >> 20) +
                                             " MiB as dense ones; store the model with dense tensors");
}

bool import_budget::take_folding(std::int64_t elements) {
  if (elements <= always_folded) return true;
  if (elements > max_folded_elements - folded_elements_) return false;
  folded_elements_ += elements;
  return true;
}

std::size_t import_budget::work() const {
  return nodes_ + (copied_bytes_ + dense_bytes_) / bytes_of_node +
         static_cast<std::size_t>(folded_elements_ / elements_of_node);
}

}  // namespace kiln::onnx_import
