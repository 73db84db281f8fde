#include "aot/onnx/ops/if.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <optional>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/ops/body_module.hpp"
#include "aot/onnx/ops/merged_branches.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/ops/choice.hpp"

namespace kiln::onnx_import {
namespace {

void check_no_inputs(const ::onnx::GraphProto& graph) {
  if (graph.input_size() != 0) invalid("a branch has inputs");
}

// Imports the branch into the enclosing graph.
std::vector<value> inlined(node& n, ::onnx::GraphProto& graph) {
  scope inside(n.owner.state(), n.b, &n.owner);
  inside.run(graph);
  return inside.outputs(graph);
}

// During the lifetime of this object, guards apply only where `condition` is 1 as well.
class taken_where {
 public:
  taken_where(dim& when, const dim& condition) : when_(when), around_(when) { when_ = around_ * condition; }
  ~taken_where() { when_ = around_; }
  taken_where(const taken_where&) = delete;

 private:
  dim& when_;
  const dim around_;
};

// The branches of an If, each as a module.
struct branch_bodies {
  std::vector<module*> bodies;
  std::vector<std::vector<shape>> types;  // types of their outputs
};

// Imports the two branches. With `condition`, the guards of a branch apply only to sizes for which `condition` selects
// that branch. Propagates exceptions from the import of a branch.
branch_bodies import_branches(node& n, std::span<::onnx::GraphProto* const> graphs, const captures& outer,
                              const std::optional<dim>& condition = std::nullopt) {
  branch_bodies result;
  dim& when = n.owner.state().known.when;
  std::list<body_module> bodies;
  std::vector<std::vector<value>> outputs;
  for (auto* graph : graphs) {
    const taken_where inside(when, condition ? graph == graphs[0] ? *condition : dim(1) - *condition : dim(1));
    body_module& body = bodies.emplace_back(n, graph == graphs[0] ? "then" : "else");
    body.capture(outer);
    body.inside.run(*graph);
    outputs.push_back(body.inside.outputs(*graph));
    for (value v : outputs.back())
      if (find_compound(n.owner.state(), v))
        throw value_needed("a branch gives a sequence or an optional, so its condition must be known at import");
  }
  for (std::size_t i = 0; i < outputs.front().size() && i < outputs.back().size(); ++i) {
    value &yes = outputs.front()[i], &no = outputs.back()[i];
    if (yes.type().rank() < no.type().rank()) yes = with_rank_of(bodies.front().b, yes, no.type());
    else no = with_rank_of(bodies.back().b, no, yes.type());
  }
  auto results = outputs.begin();
  for (body_module& body : bodies) {
    result.types.emplace_back();
    for (value v : *results) result.types.back().push_back(v.type());
    auto names = numbered(results->size());
    body.made.set_outputs(std::move(*results++), std::move(names));
    result.bodies.push_back(&body.made);
  }
  const auto& types = result.types;
  if (types[0].size() != types[1].size()) invalid("its branches have different numbers of outputs");
  if (types[0].empty()) invalid("its branches have no outputs");
  return result;
}

bool same_ranks(const std::vector<shape>& a, const std::vector<shape>& b) {
  return std::ranges::equal(
      a, b, {}, [](const shape& s) { return s.dims.size(); }, [](const shape& s) { return s.dims.size(); });
}

// Imports an If whose condition compares sizes. Both branches are kept, and the sizes select one at run time. If the
// branches return different ranks, or one of them cannot be imported for the other's sizes, one branch is assumed
// instead (branch_decisions.hpp).
std::vector<value> import_if_on_sizes(node& n, ::onnx::GraphProto& yes, ::onnx::GraphProto& no,
                                      const known_elements& condition, int number) {
  branch_decisions& branches = *n.owner.state().branches;
  if (auto taken = branches.taken(number)) {
    n.b.need_equal(condition[0], *taken ? 1 : 0,
                   std::string("other sizes take the ") + (*taken ? "else" : "then") +
                       " branch, which gives another rank; compile the model for them with --dim, or fix with --value "
                       "the input that keeps this node from running");
    return inlined(n, *taken ? yes : no);
  }
  captures outer;
  capture(n, yes, outer);
  capture(n, no, outer);
  try {
    branch_bodies made = import_branches(n, std::array{&yes, &no}, outer, condition[0]);
    if (!same_ranks(made.types[0], made.types[1]))
      throw value_needed("its branches give different ranks; give the input that chooses one with --value");
    return all_outputs(n.b.add(choice{condition}, outer.values, made.bodies), made.types[0].size());
  } catch (const error&) {
    const auto is_data = [](const std::string& symbol) { return symbol.starts_with(value_prefix); };
    if (std::ranges::none_of(condition[0].symbols(), is_data))
      branches.want(number);  // only sizes are assumed, not data
    throw;
  }
}

}  // namespace

std::vector<value> import_if(node& n) {
  auto &yes = n.graph("then_branch"), &no = n.graph("else_branch");
  check_no_inputs(yes);
  check_no_inputs(no);
  refuse_compound(n, 0);
  value condition = n.b.with_dims(n.in(0), {});
  if (auto taken = n.b.constant_of(condition)) return inlined(n, taken->at_int(0) ? yes : no);
  auto known = n.b.known(condition);
  const bool counts = needs_bounded_dims(n, yes) || needs_bounded_dims(n, no);
  // Sizes in a branch that data decide are exact only in the main graph.
  if (known && (has_bounded_dims({element_type::i64, *known}) || (counts && n.owner.state().data_decides_sizes)))
    known.reset();
  branch_decisions& branches = *n.owner.state().branches;
  const int number = branches.number();
  if (known) return import_if_on_sizes(n, yes, no, *known, number);
  if (branches.merges(number) || counts) {
    auto first = inlined(n, yes), second = inlined(n, no);
    return merged_branches(n, condition, first, second);
  }
  captures outer;
  capture(n, yes, outer);
  capture(n, no, outer);
  const std::size_t guards = n.owner.state().known.guards.size();
  auto [bodies, types] = import_branches(n, std::array{&yes, &no}, outer);
  if (n.owner.state().known.guards.size() > guards && !n.owner.state().values_as_symbols)
    throw value_needed("a branch fits certain sizes only, so its condition must be known at import");
  for (std::size_t i = 0; i < types[0].size(); ++i) {
    if (types[0][i] == types[1][i]) continue;
    const bool depend_on_data = has_bounded_dims(types[0][i]) || has_bounded_dims(types[1][i]);
    if (depend_on_data && n.owner.state().values_as_symbols) branches.merge(number);
    // Once the input elements that determine the condition are given, only one branch remains. So first ask for them.
    if (depend_on_data || !n.owner.state().values_as_symbols || &n.b.target() != &n.owner.state().result.main())
      throw value_needed("its branches give different shapes, " + types[0][i].str() + " and " + types[1][i].str());
    std::vector<std::vector<value>> results;
    for (const module* body : bodies) results.push_back(n.b.target().inline_module(*body, outer.values));
    return merged_branches(n, condition, results[0], results[1]);
  }
  std::vector<value> arguments{condition};
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  return all_outputs(n.b.add(if_else{}, arguments, bodies), types[0].size());
}

}  // namespace kiln::onnx_import
