// Limits on the work and memory of one import. A small file can call functions that call functions, or fold constants
// node by node; the limits ensure that its import terminates in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::onnx_import {

class import_budget {
 public:
  explicit import_budget(std::size_t nodes) : most_nodes_(nodes) {}

  // Call before a node is imported. Throws error{unsupported} if there are too many nodes, and the errors of
  // check_stop().
  void take_node();
  // Call before a node of a function's body (`bytes` bytes long) is copied for a call. Throws error{unsupported} if
  // copied nodes exceed a quarter of the node limit. Without this limit, nested calls in a 2 KB file could expand to
  // billions of nodes; all other nodes take space in the file.
  void take_function_node(std::size_t bytes);
  // Throws error{unsupported} if the total of all copied bytes is too large.
  void take_copy(std::size_t bytes);
  // Call before memory is allocated for a dense tensor of so many bytes that is made from `stored` bytes of a sparse
  // one. Throws error{unsupported} if all of them take too much memory for the size of the model.
  void take_dense(std::size_t bytes, std::size_t stored, const std::string& what);
  // Returns whether an operation that reads and writes this many elements may be folded now. If not, it stays an
  // operation. Small operations are always folded, because shapes are computed from them.
  bool take_folding(std::int64_t elements);
  // The work that was done so far, in about the time of a node.
  std::size_t work() const;

 private:
  std::size_t most_nodes_, nodes_ = 0, function_nodes_ = 0;
  std::uint64_t copied_bytes_ = 0, dense_bytes_ = 0, sparse_bytes_ = 0;
  std::int64_t folded_elements_ = 0;
};

}  // namespace kiln::onnx_import
