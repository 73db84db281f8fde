// Elementwise operations. All operands have the same dims; broadcasting is a separate operation.
#pragma once

#include "ir/operation.hpp"
#include "ir/scalar_function.hpp"

namespace kiln {

// Applies one scalar function (see ir/scalar_function.hpp). Has the name of that function, also in print.
struct elementwise {
  scalar_function function = scalar_function::add;

  std::string_view name() const { return enum_name(function); }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("function", self.function);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Converts the element type like ONNX Cast: float to integer truncates, anything to bool is `!= 0`.
struct convert {
  element_type type = element_type::f32;

  std::string_view name() const { return "convert"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("type", self.type);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Reinterprets the bits of each element as another type of the same width. A kernel may change the payload of a NaN of
// fewer than 32 bits. A bool is true if its byte is not 0.
struct bit_cast {
  element_type type = element_type::i32;

  std::string_view name() const { return "bit_cast"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("type", self.type);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Returns true if element i of the result depends only on elements i of the operands.
inline bool keeps_indices(const operation& op) { return op.is<elementwise>() || op.is<convert>() || op.is<bit_cast>(); }

}  // namespace kiln
