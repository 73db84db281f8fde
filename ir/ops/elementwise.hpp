// Operations that treat every element alike. All operands have the same dims: broadcasting is its own operation.
#pragma once

#include "ir/operation.hpp"
#include "ir/scalar_function.hpp"

namespace kiln {

// Applies one scalar function (see ir/scalar_function.hpp); printed and named as that function.
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

// Element type conversion as ONNX Cast has it: float → integer truncates, anything → bool is `!= 0`.
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

}  // namespace kiln
