// The textual form of modules and programs:
//
//   module main
//     %0 = parameter "input" : f32[1, 3, 8, 8]
//     %1 = constant 5f3a… : f32[4, 3, 3, 3]
//     %2 = convolution{strides=[1, 1], ...}(%0, %1) : f32[1, 4, 6, 6]
//     %3:2 = top_k{...}(%2) : (f32[5], i64[5])
//     return "output": %2, "best": %3#1
//
// Values are numbered in order, so two modules with the same text are equal except for origins. Hashes of weights are
// shortened to 16 digits.
#include <unordered_map>

#include "ir/ops/structure.hpp"
#include "ir/program.hpp"

namespace kiln {
namespace {

std::string describe(const instruction& i) {
  if (const auto* p = i.op().get_if<parameter>()) return "parameter \"" + p->name_in_module + "\"";
  if (const auto* c = i.op().get_if<constant>()) {
    if (auto splat = c->data.splat()) return "constant " + str(attribute(*splat));
    return "constant " + c->data.hash().hex().substr(0, 16);
  }
  return i.op().str();
}

}  // namespace

std::string module::str() const {
  std::unordered_map<const instruction*, std::size_t> number;
  auto reference = [&](value v) {
    std::string text = "%" + std::to_string(number.at(v.producer));
    return v.producer->outputs().size() > 1 ? text + "#" + std::to_string(v.index) : text;
  };
  std::string text = "module " + name_ + "\n";
  for (const instruction& i : instructions_) {
    std::size_t n = number.size();
    number[&i] = n;
    bool several = i.outputs().size() > 1;
    text += "  %" + std::to_string(n) + (several ? ":" + std::to_string(i.outputs().size()) : "") + " = " + describe(i);
    if (!i.inputs().empty()) {
      text += "(";
      for (std::size_t k = 0; k < i.inputs().size(); ++k) text += (k ? ", " : "") + reference(i.inputs()[k]);
      text += ")";
    }
    for (std::size_t k = 0; k < i.bodies().size(); ++k)
      text += (k ? ", " : " [") + i.bodies()[k]->name() + (k + 1 == i.bodies().size() ? "]" : "");
    text += several ? " : (" : " : ";
    for (std::size_t k = 0; k < i.outputs().size(); ++k) text += (k ? ", " : "") + i.outputs()[k].str();
    text += several ? ")\n" : "\n";
  }
  text += "  return";
  for (std::size_t k = 0; k < outputs_.size(); ++k)
    text += (k ? ", \"" : " \"") + output_names_[k] + "\": " + reference(outputs_[k]);
  return text + "\n";
}

std::string program::str() const {
  std::string text;
  for (const module& m : modules_) text += m.str();
  return text;
}

}  // namespace kiln
