// Elementwise work and data movement of open sizes. Every thread computes one vector of 16 bytes of the widest tensor
// where rows are known to hold whole vectors, or where all axes are one row, whose last thread computes what is left
// over one by one. Otherwise every thread computes a few single elements.
#include <algorithm>
#include <numeric>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/int4.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t threads = 256;
constexpr std::int64_t single_elements = 4;  // elements of a thread that does not compute vectors

dim product(const std::vector<dim>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
}

class open_pointwise {
 public:
  open_pointwise(kernel_emitter& e, const pointwise_space& space)
      : e_(e), code_(e.code), space_(space), runs_(space.sizes()), one_row_(runs_.size() == 1) {
    const std::int64_t widest = widest_lanes(), factor = codegen::known_factor(runs_.back());
    lanes_ = one_row_ ? widest : common_power(widest, {factor});
    for (std::int64_t cut : space.cuts()) lanes_ = common_power(lanes_, {cut});
    whole_ = factor % lanes_ == 0;
    runs_.back() = (runs_.back() + lanes_ - 1) / lanes_;
    if (lanes_ == 1) each_ = single_elements;
  }

  void emit(const std::string& name, bool prepare) {
    const dim vectors = product(runs_);
    workgroup group(e_, name, (vectors + threads * each_ - 1) / (threads * each_), threads, prepare);
    const Value first = code_.add(code_.mul(group.block(), threads * each_), group.thread());
    if (each_ == 1) {
      code_.when(code_.less(first, e_.size(vectors)), [&] { whole_ ? emit_vector(first) : emit_part(first); });
    } else {
      emit_elements(first, vectors);
    }
    group.close();
  }

 private:
  // Considers the results, and the inputs that may be as large, because their accesses dominate the time.
  std::int64_t widest_lanes() const {
    std::int64_t lanes = 16;
    for (const map_root& r : space_.roots()) lanes = std::min(lanes, access_lanes(r.destination.type));
    for (value p : e_.fusion.parameters())
      if (!p.type().is_static()) lanes = std::min(lanes, access_lanes(p.type().type));
    return lanes;
  }

  position place(Value vector, std::int64_t lanes) const {
    const values digits = e_.delinearize(vector, runs_);
    std::vector<axis_index> of_runs;
    for (std::size_t run = 0; run + 1 < runs_.size(); ++run)
      of_runs.push_back({digits[run], 0, {}, 0, codegen::known_bound(runs_[run]), 1});
    of_runs.push_back({code_.mul(digits.back(), lanes),
                       lanes > 1 ? 1 : 0,
                       {},
                       0,
                       codegen::known_bound(space_.sizes().back()),
                       lanes});
    return space_.at(of_runs);
  }

  void emit_vector(Value vector) const { space_.emit(place(vector, lanes_), lanes_); }

  // Emits a vector, or the remaining elements at the end of the only row.
  void emit_part(Value vector) const {
    const Value begin = code_.mul(vector, lanes_), end = e_.min(code_.add(begin, lanes_), space_.sizes().back());
    code_.branch(
        code_.equal(code_.sub(end, begin), code_.constant(lanes_)),
        [&] {
          emit_vector(vector);
          return values{};
        },
        [&] {
          code_.loop(begin, end, 1, [&](Value i) { space_.emit(space_.at({{i, 0, {}, 0, INT64_MAX, 1}}), 1); });
          return values{};
        });
  }

  // Issue all loads before the first store.
  void emit_elements(Value first, const dim& elements) const {
    std::vector<position> places;
    std::vector<values> results;
    for (std::int64_t i = 0; i < each_; ++i) {
      places.push_back(place(e_.min(code_.add(first, i * threads), elements - 1), 1));
      results.push_back(space_.evaluate(places.back(), 1));
    }
    for (std::int64_t i = 0; i < each_; ++i)
      code_.when(code_.less(code_.add(first, i * threads), e_.size(elements)),
                 [&] { space_.store(places[static_cast<std::size_t>(i)], results[static_cast<std::size_t>(i)]); });
  }

  kernel_emitter& e_;
  code_builder& code_;
  const pointwise_space& space_;
  std::vector<dim> runs_;  // of vectors
  bool one_row_ = true, whole_ = true;
  std::int64_t lanes_ = 1, each_ = 1;
};

}  // namespace

void emit_open_pointwise(kernel_emitter& e, const pointwise_space& space, const std::string& name, bool prepare) {
  for (const map_root& r : space.roots())
    if (is_packed(r.destination.type))
      throw error(error_kind::unsupported,
                  "kernel '" + e.symbol + "' for all sizes stores elements of less than a byte: bind its dimensions");
  if (auto across = space.transposed_run())
    if (emit_transposed(e, space, *across, name, prepare)) return;
  open_pointwise(e, space).emit(name, prepare);
}

}  // namespace kiln::gpu
