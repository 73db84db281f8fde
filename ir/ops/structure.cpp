#include "ir/ops/structure.hpp"

#include "ir/error.hpp"
#include "ir/ops/check.hpp"

namespace kiln {
namespace {

[[noreturn]] void needs_module(std::string_view operation, std::string_view what) {
  throw error(error_kind::internal,
              std::string(operation) + " does not know its bodies: its module must " + std::string(what));
}

}  // namespace

std::vector<shape> parameter::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(0);
  return {check.result({type, dims})};
}

std::vector<literal> parameter::evaluate(std::span<const literal>) const {
  throw error(error_kind::internal, "parameter " + name_in_module + " has no value of its own: bind one");
}

std::vector<shape> constant::infer(std::span<const shape> inputs) const {
  detail::input_check(name(), inputs).arity(0);
  return {data.type()};
}

std::vector<literal> constant::evaluate(std::span<const literal>) const { return {data}; }

std::vector<shape> if_else::infer(std::span<const shape>) const { needs_module(name(), "give the shapes"); }
std::vector<literal> if_else::evaluate(std::span<const literal>) const { needs_module(name(), "run it"); }
std::optional<dim> loop::count() const {
  if (trips >= 0) return dim(trips);
  return open_trips.empty() ? std::nullopt : std::optional(open_trips.front());
}

std::vector<shape> loop::infer(std::span<const shape>) const { needs_module(name(), "give the shapes"); }
std::vector<literal> loop::evaluate(std::span<const literal>) const { needs_module(name(), "run it"); }

}  // namespace kiln
