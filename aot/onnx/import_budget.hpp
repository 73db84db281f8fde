// How much one import may make. A model of kilobytes can call functions that call functions, or fold constants node by
// node; its importer ends all the same, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::onnx_import {

class import_budget {
 public:
  explicit import_budget(std::size_t nodes) : most_nodes_(nodes) {}

  // Before a node is imported. Throws error{unsupported} where there are too many, and what check_stop() throws.
  void take_node();
  // Before a node of a function, of so many bytes, is copied for one more call. Throws error{unsupported} where that
  // was too much.
  void take_copy(std::size_t bytes);
  // Whether an operation that reads and makes so many elements may be evaluated now. Where not, it stays an operation.
  // Always for small ones: shapes are computed from them.
  bool take_folding(std::int64_t elements);

 private:
  std::size_t most_nodes_, nodes_ = 0;
  std::uint64_t copied_bytes_ = 0;
  std::int64_t folded_elements_ = 0;
};

}  // namespace kiln::onnx_import
