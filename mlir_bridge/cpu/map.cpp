// Kernels without an anchor, and stages that bring a value into memory: loops over the outputs' elements, vectors along the
// last axis. Axes that every access walks as one are joined; the loop over the last axis is cut where concat or pad change sides;
// where a load strides along the last axis (a transpose), the loops run over tiles so that its cache lines are used whole.
#include <algorithm>
#include <numeric>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

namespace {

constexpr std::int64_t row_elements = 16384;   // of the loops inside one parallel index
constexpr std::int64_t tile = 16;              // rows of a transposed tile
constexpr std::size_t most_segments = 64;      // densely connected networks join dozens of tensors

struct root {
  value v;
  buffer destination;
};

// Outputs that end in a reshape are the same bytes as what is reshaped: loop over that instead, where all roots agree.
void strip_reshapes(const kernel_emitter& e, std::vector<root>& roots) {
  auto stripped = roots;
  for (root& r : stripped) {
    while (r.v.producer->op().is<reshape>() && !e.in_memory(r.v)) r.v = r.v.producer->inputs()[0];
    r.destination.dims = kernel_emitter::dims(r.v);
  }
  bool agree = std::ranges::all_of(stripped, [&](const root& r) { return r.destination.dims == stripped[0].destination.dims; });
  if (agree) roots = std::move(stripped);
}

// The widest type that lanes are computed in decides how many of them fill a register.
element_type widest(const kernel_emitter& e, const std::vector<root>& roots) {
  element_type type = element_type::f32;
  auto consider = [&](element_type t) {
    if (storage_bits(compute_type(t)) > storage_bits(compute_type(type))) type = t;
  };
  for (const root& r : roots) consider(r.destination.type);
  for (const instruction& i : e.cluster.instructions())
    if (i.op().is<elementwise>() || i.op().is<convert>()) consider(i.outputs()[0].type);
  return type;
}

class map_stage {
 public:
  map_stage(kernel_emitter& e, std::vector<root> roots) : e_(e), roots_(std::move(roots)), domain_(roots_[0].destination.dims), analysis_(e, domain_) {
    for (const root& r : roots_) analysis_.add_root(r.v);
    runs_ = analysis_.runs();
    if (runs_.empty()) runs_.push_back({});
    for (const auto& run : runs_) extents_.push_back(std::accumulate(run.begin(), run.end(), std::int64_t{1}, [&](std::int64_t n, std::size_t axis) { return n * domain_[axis]; }));
    type_ = widest(e, roots_);
  }

  void emit(const std::string& name, bool prepare) {
    std::int64_t extent = extents_.back();
    std::size_t last = extents_.size() - 1;
    auto segments = make_segments(extent);
    std::int64_t cost = operations();
    if (auto axis = transposed_run()) return emit_tiles(name, *axis, segments, cost, prepare);
    if (segments.size() == 1 && extent >= 2 * row_elements) return emit_blocks(name, cost, prepare);
    // Small trailing axes become loops inside the parallel index.
    std::size_t inner = last;
    std::int64_t elements = extent;
    while (inner > 0 && elements * extents_[inner - 1] <= row_elements) elements *= extents_[--inner];
    std::vector<std::int64_t> outer(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(inner));
    e_.parallel(name, outer, elements * cost, [&](std::span<const Value> at) { emit_rows(values(at.begin(), at.end()), segments); }, prepare);
  }

 private:
  using segment = std::pair<std::int64_t, std::int64_t>;

  std::vector<segment> make_segments(std::int64_t extent) const {
    // Cuts are positions along the last domain axis; they count only where that axis is a run of its own.
    auto cuts = analysis_.cuts();
    if (runs_.back().size() != 1 || runs_.back()[0] + 1 != domain_.size() || cuts.size() >= most_segments) cuts.clear();
    std::vector<segment> segments;
    std::int64_t begin = 0;
    for (std::int64_t cut : cuts) segments.push_back({begin, cut}), begin = cut;
    segments.push_back({begin, extent});
    return segments;
  }

  std::int64_t operations() const {
    return std::max<std::int64_t>(1, std::ranges::count_if(e_.cluster.instructions(), [](const instruction& i) { return i.op().is<elementwise>() || i.op().is<convert>(); }));
  }

  std::optional<std::size_t> transposed_run() const {
    auto axis = analysis_.transposed_axis();
    if (!axis) return std::nullopt;
    for (std::size_t run = 0; run + 1 < runs_.size(); ++run)
      if (!runs_[run].empty() && runs_[run].back() == *axis) return run;
    return std::nullopt;
  }

  void emit_rows(values at, const std::vector<segment>& segments) {
    if (at.size() + 1 < extents_.size()) {
      e_.code.loop(0, extents_[at.size()], 1, [&](Value i) {
        values deeper = at;
        deeper.push_back(i);
        emit_rows(std::move(deeper), segments);
      });
      return;
    }
    for (auto [low, high] : segments) emit_row(at, low, high);
  }

  // One row of the last run, [low, high): whole vectors, the last of them overlapping the one before where they do not divide.
  void emit_row(const values& at, std::int64_t low, std::int64_t high) {
    std::int64_t lanes = e_.lanes_for(type_, high - low);
    bool divides = (high - low) % lanes == 0;
    e_.code.loop(low, high, lanes, [&](Value i) { emit_element(at, divides ? i : e_.code.min(i, high - lanes), lanes, {low, high}, divides ? std::gcd(low, lanes) : 1); });
  }

  void emit_element(const values& at, Value i, std::int64_t lanes, segment range, std::int64_t multiple) {
    auto& code = e_.code;
    position where(domain_.size());
    for (axis_index& index : where) index = {code.constant(0), 0, {}, 0, 1, any_multiple};
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (runs_[run].empty()) continue;
      axis_index& index = where[runs_[run].back()];
      bool last = run + 1 == runs_.size();
      if (last) index = {i, lanes > 1 ? 1 : 0, {}, range.first, range.second, multiple ? multiple : any_multiple};
      else index = {at[run], 0, {}, 0, extents_[run], 1};
    }
    evaluator ev(e_);
    values results;
    for (const root& r : roots_) results.push_back(ev.at(r.v, where, lanes));
    for (std::size_t k = 0; k < roots_.size(); ++k) ev.store(roots_[k].destination, where, results[k]);
  }

  // A long last run, cut into blocks that are work items; the last block also takes what is left over.
  void emit_blocks(const std::string& name, std::int64_t cost, bool prepare) {
    auto& code = e_.code;
    std::int64_t extent = extents_.back(), lanes = e_.lanes_for(type_, extent);
    std::int64_t block = std::max<std::int64_t>(256, row_elements / cost / 256 * 256), blocks = std::max<std::int64_t>(1, extent / block);
    std::vector<std::int64_t> outer(extents_.begin(), extents_.end() - 1);
    outer.push_back(blocks);
    bool divides = extent % lanes == 0;
    e_.parallel(name, outer, block * cost, [&](std::span<const Value> at) {
      values rows(at.begin(), at.end() - 1);
      Value low = code.mul(at.back(), block);
      Value is_last = code.equal(at.back(), code.constant(blocks - 1));
      Value high = code.select(is_last, code.constant(extent), code.add(low, block));
      code.loop(low, high, lanes, [&](Value i) { emit_element(rows, divides ? i : code.min(i, code.sub(high, lanes)), lanes, {0, extent}, divides ? lanes : 1); });
    }, prepare);
  }

  // Some load is contiguous along run `across` and strided along the last one: blocks of `tile` rows stay in the cache.
  void emit_tiles(const std::string& name, std::size_t across, const std::vector<segment>& segments, std::int64_t cost, bool prepare) {
    auto& code = e_.code;
    std::int64_t rows = extents_[across], tiles = (rows + tile - 1) / tile;
    std::vector<std::int64_t> outer(extents_.begin(), extents_.end() - 1);
    outer[across] = tiles;
    e_.parallel(name, outer, tile * extents_.back() * (cost + 2), [&](std::span<const Value> at) {
      values index(at.begin(), at.end());
      Value first = code.mul(index[across], tile), end = code.min(code.add(first, tile), rows);
      for (auto [low, high] : segments) {
        std::int64_t from = low, to = high, lanes = e_.lanes_for(type_, to - from);
        bool divides = (to - from) % lanes == 0;
        code.loop(from, to, lanes, [&](Value i) {
          Value column = divides ? i : code.min(i, to - lanes);
          code.loop(first, end, 1, [&](Value row) {
            values inside = index;
            inside[across] = row;
            emit_element(inside, column, lanes, {from, to}, divides ? std::gcd(from, lanes) : 1);
          });
        });
      }
    }, prepare);
  }

  kernel_emitter& e_;
  std::vector<root> roots_;
  std::vector<std::int64_t> domain_;
  access_analysis analysis_;
  std::vector<std::vector<std::size_t>> runs_;
  std::vector<std::int64_t> extents_;
  element_type type_ = element_type::f32;
};

void emit_roots(kernel_emitter& e, const std::string& name, std::vector<root> roots, bool prepare) {
  strip_reshapes(e, roots);
  map_stage(e, std::move(roots)).emit(name, prepare);
}

}  // namespace

void emit_map(kernel_emitter& e) {
  std::vector<root> roots;
  for (std::size_t i = 0; i < e.cluster.outputs().size(); ++i) roots.push_back({e.cluster.outputs()[i], e.output(i)});
  emit_roots(e, "map", std::move(roots), false);
}

void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare) { emit_roots(e, prepare ? "prepare" : "materialize", {{v, destination}}, prepare); }

}  // namespace kiln::cpu
