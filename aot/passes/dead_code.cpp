#include "aot/passes/dead_code.hpp"

namespace kiln {

bool dead_code::apply(program& p) const {
  std::size_t modules = p.modules().size(), erased = 0;
  for (module& m : p.modules()) erased += m.erase_dead();
  p.erase_unreachable_modules();
  p.erase_unused_kernels();
  return erased > 0 || p.modules().size() != modules;
}

}  // namespace kiln
