// Thrown when a shape rule requires two dimensions to be equal and they are different expressions. The exception
// carries both dimensions; the importer uses them to look for symbols that make them equal (aot/onnx/unify.hpp).
#pragma once

#include "ir/dim.hpp"
#include "ir/error.hpp"

namespace kiln {

class dims_differ : public error {
 public:
  dims_differ(std::string message, dim a, dim b)
      : error(error_kind::invalid_model, std::move(message)), a_(std::move(a)), b_(std::move(b)) {}
  const dim& a() const { return a_; }
  const dim& b() const { return b_; }

 private:
  dim a_, b_;
};

}  // namespace kiln
