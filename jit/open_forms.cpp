#include "jit/open_forms.hpp"

#include <algorithm>
#include <vector>

#include "ir/code_object.hpp"
#include "ir/error.hpp"
#include "spirv/object.hpp"
#include "spirv/operands.hpp"

namespace kiln {
namespace {

std::optional<std::string> missing_form_of_hip(const program& p, const instruction& kernel, const code_object& object,
                                               processor on) {
  std::vector<shape> inputs;
  for (value v : kernel.inputs()) inputs.push_back(v.type());
  if (std::ranges::all_of(inputs, &shape::is_static) && std::ranges::all_of(kernel.outputs(), &shape::is_static))
    return std::nullopt;
  try {
    const spirv::object hip = spirv::deserialize_object(p.kernel(content_hash::from_hex(object.payload)));
    spirv::check_operands(hip, inputs, kernel.outputs());
    spirv::resolve(hip, inputs, kernel.outputs(), {.lone_tasks = on == processor::cpu});
    return std::string();
  } catch (const error&) {
    return object.symbol;
  }
}

}  // namespace

std::optional<std::string> missing_open_form(const program& p, const instruction& kernel, processor on) {
  const auto* object = kernel.op().get_if<code_object>();
  if (!object || object->format == code_format::native) return std::nullopt;
  if (object->format == code_format::mlir_bytecode) return recorded_missing_form(p, object->payload, on);
  return missing_form_of_hip(p, kernel, *object, on);
}

}  // namespace kiln
