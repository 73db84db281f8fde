// Checks the invariants of a module, which every pass must preserve and every reader must establish.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/error.hpp"
#include "ir/ops/choice.hpp"
#include "ir/ops/structure.hpp"
#include "ir/program.hpp"

namespace kiln {
namespace {

[[noreturn]] void fail(const module& m, const instruction& i, const std::string& what) {
  std::string origin = i.origin().empty() ? "" : " (" + i.origin() + ")";
  throw error(error_kind::invalid_model, "module '" + m.name() + "', " + i.op().str() + origin + ": " + what);
}

void check_bodies(const module& m, const instruction& i) {
  bool is_if = i.op().is<if_else>(), is_loop = i.op().is<loop>();
  std::size_t wanted = is_if || i.op().is<choice>() ? 2 : is_loop ? 1 : 0;
  if (i.bodies().size() != wanted) fail(m, i, "needs " + std::to_string(wanted) + " bodies");
  std::size_t skipped = is_if ? 1 : 0;  // the condition is not passed to the bodies
  for (const module* body : i.bodies()) {
    auto parameters = body->parameters();
    if (i.inputs().size() < skipped || parameters.size() != i.inputs().size() - skipped)
      fail(m, i, "its body takes a different number of arguments");
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (parameters[p].type() != i.inputs()[p + skipped].type())
        fail(m, i,
             "argument " + std::to_string(p) + " is " + i.inputs()[p + skipped].type().str() + ", its body expects " +
                 parameters[p].type().str());
  }
  if (is_if) {
    if (i.inputs().empty() || i.inputs()[0].type() != shape{element_type::boolean, {}})
      fail(m, i, "its condition must be bool[]");
    const auto &yes = i.bodies()[0]->outputs(), &no = i.bodies()[1]->outputs();
    bool same =
        std::equal(yes.begin(), yes.end(), no.begin(), no.end(), [](value a, value b) { return a.type() == b.type(); });
    if (!same) fail(m, i, "its branches give different shapes");
  }
  if (is_loop) {
    auto carried = static_cast<std::size_t>(i.op().get_if<loop>()->carried);
    const auto& given = i.bodies()[0]->outputs();
    if (i.inputs().size() < 2 + carried || given.size() < 1 + carried) fail(m, i, "too few values are carried");
    for (std::size_t c = 0; c < carried; ++c)
      if (given[1 + c].type() != i.inputs()[2 + c].type())
        fail(m, i, "carried value " + std::to_string(c) + " changes its shape");
  }
}

void check_shapes(const module& m, const instruction& i) {
  if (!i.bodies().empty() || i.op().is<parameter>()) return;
  std::vector<shape> inputs;
  for (value v : i.inputs()) inputs.push_back(v.type());
  if (i.op().infer(inputs) != i.outputs()) fail(m, i, "its output shapes differ from the inferred shapes");
}

}  // namespace

void module::validate() const {
  std::unordered_map<const instruction*, std::size_t> seen, uses, listed;
  for (const instruction& i : instructions_) {
    for (value v : i.inputs()) {
      if (!v.producer || !seen.contains(v.producer)) fail(*this, i, "uses a value before its definition");
      if (v.index >= v.producer->outputs().size()) fail(*this, i, "uses an output that its producer does not have");
      ++uses[v.producer];
    }
    check_bodies(*this, i);
    check_shapes(*this, i);
    seen.emplace(&i, seen.size());
  }
  for (const instruction& i : instructions_)
    if (i.users().size() != uses[&i]) fail(*this, i, "its list of users is wrong");
  if (outputs_.size() != output_names_.size())
    throw error(error_kind::invalid_model, "module '" + name_ + "' has unnamed outputs");
  for (value v : outputs_)
    if (!v.producer || !seen.contains(v.producer) || v.index >= v.producer->outputs().size())
      throw error(error_kind::invalid_model, "module '" + name_ + "' returns a value that it does not make");
  std::unordered_set<std::string> names;
  for (value p : parameters())
    if (!names.insert(parameter_name(p)).second)
      throw error(error_kind::invalid_model, "module '" + name_ + "' has two parameters '" + parameter_name(p) + "'");
}

void program::validate() const {
  std::unordered_set<const module*> known, entered;
  for (const module& m : modules_) known.insert(&m);
  for (const module& m : modules_) {
    for (const instruction& i : m.instructions())
      for (const module* body : i.bodies()) {
        if (!known.contains(body))
          throw error(error_kind::invalid_model, "module '" + m.name() + "' uses a body of another program");
        if (body == &modules_.front() || !entered.insert(body).second)
          throw error(error_kind::invalid_model, "module '" + body->name() + "' is entered from two places");
      }
    m.validate();
  }
}

}  // namespace kiln
