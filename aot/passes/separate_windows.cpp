#include "aot/passes/separate_windows.hpp"

#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"

namespace kiln {
namespace {

// The pooling along one axis only.
pooling along(const pooling& whole, std::size_t axis) {
  pooling one = whole;
  for (std::size_t i = 0; i < whole.window.size(); ++i) {
    if (i == axis) continue;
    one.window[i] = one.strides[i] = one.dilations[i] = 1;
    one.pads_begin[i] = one.pads_end[i] = 0;
  }
  return one;
}

// Elements read for each result, all axes at once and one after another, the last axis first. What an axis computes
// for positions that a later stride skips counts as well.
struct reads {
  std::int64_t at_once = 1, apart = 0;
};

reads reads_of(const pooling& p) {
  reads r;
  std::int64_t kept = 1;  // results of this axis for each of the whole pooling
  for (std::size_t i = 0; i < p.window.size(); ++i) {
    r.at_once *= p.window[i];
    r.apart += p.window[i] * kept;
    kept *= p.strides[i];
  }
  return r;
}

// A second pass over the image costs as much as several reads from a cache.
bool pays(const pooling& p) {
  const reads r = reads_of(p);
  return p.kind == pooling_kind::max && r.at_once >= 3 * r.apart;
}

}  // namespace

bool separate_windows::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    const auto* p = at.op().get_if<pooling>();
    if (!p || !pays(*p) || !m.has_uses(&at) || at.outputs().size() != 1) continue;
    rewriter write(m, here);
    value image = at.inputs()[0];
    for (std::size_t axis = p->window.size(); axis-- > 0;) image = write.add(along(*p, axis), {image});
    m.replace(at.output(), image);
    if (log) log->fired(name(), "max_pooling", at.origin());
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
