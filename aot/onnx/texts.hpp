// Tensors of strings during the import. Programs have no strings: a tensor of strings becomes i64 indices into a list
// of texts, which the import keeps beside the value. Operators that only move elements pass the list on. The lists of
// graph outputs become metadata of the program ("texts:OUTPUT", a JSON array).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include "aot/onnx/builder.hpp"

namespace kiln::onnx_import {

class text_lists {
 public:
  // Records that the elements of v are indices into the list. Returns v.
  value mark(value v, std::vector<std::string> list);
  // Returns the list of a value that represents strings, or null.
  const std::vector<std::string>* of(value v) const;

 private:
  std::map<value, std::vector<std::string>> lists_;
};

// Returns true if the operator only moves elements of its first input.
bool moves_elements(std::string_view domain, std::string_view name);
// Returns true if the operator reads the texts of its first input.
bool reads_texts(std::string_view domain, std::string_view name);

// Returns the constant that represents a tensor of strings. Equal strings get equal indices.
value text_constant(builder& b, text_lists& texts, const ::onnx::TensorProto& tensor, const std::string& what);
value text_constant(builder& b, text_lists& texts, const std::vector<std::string>& elements,
                    const std::vector<dim>& dims);

}  // namespace kiln::onnx_import
