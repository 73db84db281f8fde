// Runs imported models with open dimensions in the reference.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "aot/onnx/dim_param.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln::test {

// Returns options with these dimensions (`--dim`).
inline import_options with(std::initializer_list<std::string> dims) {
  import_options options;
  for (const auto& text : dims) options.dims.insert(parse_dim_spec(text));
  return options;
}

// Returns 0, 1, 2 ... as f32.
inline literal counting(std::vector<std::int64_t> dims) {
  shape type{element_type::f32, {dims.begin(), dims.end()}};
  std::vector<float> values(static_cast<std::size_t>(type.element_count()));
  std::iota(values.begin(), values.end(), 0.0f);
  return literal::of<float>(type, values);
}

// Returns the reference's first output for these inputs, whose shapes give the open dimensions their values.
inline literal run(const program& p, const std::vector<literal>& inputs) {
  std::vector<given_shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    value parameter = p.main().parameters()[i];
    shapes.push_back({module::parameter_name(parameter), parameter.type(), inputs[i].type()});
  }
  return evaluate(p.bind(bind_shapes(shapes)).main(), inputs)[0];
}

// Returns what the error says that `what` throws, or "" if it throws none.
inline std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

}  // namespace kiln::test
