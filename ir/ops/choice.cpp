#include "ir/ops/choice.hpp"

#include "ir/error.hpp"

namespace kiln {

std::vector<shape> choice::infer(std::span<const shape>) const {
  throw error(error_kind::internal, "the shapes of a choice come from its bodies");
}

std::vector<literal> choice::evaluate(std::span<const literal>) const {
  throw error(error_kind::usage, "a branch depends on '" + (condition.empty() ? std::string() : condition[0].str()) +
                                     "', which has no value yet");
}

std::vector<shape> choice::merged(const std::vector<shape>& yes, const std::vector<shape>& no) const {
  if (condition.size() != 1) throw error(error_kind::invalid_model, "a choice needs one condition");
  if (yes.size() != no.size()) throw error(error_kind::invalid_model, "its branches have different numbers of outputs");
  std::vector<shape> result = yes;
  for (std::size_t i = 0; i < yes.size(); ++i) {
    const std::string both = "its branches give " + yes[i].str() + " and " + no[i].str();
    if (yes[i].type != no[i].type) throw error(error_kind::invalid_model, both + ": their types must agree");
    if (yes[i].rank() != no[i].rank())
      throw error(error_kind::unsupported, both + ": a rank that depends on data is not supported");
    for (std::size_t axis = 0; axis < yes[i].rank(); ++axis) {
      const dim &a = yes[i].dims[axis], &b = no[i].dims[axis];
      if (!(a == b)) result[i].dims[axis] = b + condition[0] * (a - b);
    }
  }
  return result;
}

}  // namespace kiln
