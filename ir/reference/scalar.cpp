#include "ir/reference/scalar_rules.hpp"

namespace kiln {

scalar_domain domain_of(scalar_function function) {
  static constexpr auto domains = std::to_array<scalar_domain>({
#define KILN_SCALAR(name, arity, result) reference::scalar_rule<scalar_function::name>::domain,
      KILN_SCALAR_FUNCTIONS(KILN_SCALAR)
#undef KILN_SCALAR
  });
  return domains[static_cast<std::size_t>(function)];
}

}  // namespace kiln
