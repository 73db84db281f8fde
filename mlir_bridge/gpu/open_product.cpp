#include "mlir_bridge/gpu/open_product.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "ir/ops/elementwise.hpp"

#include "mlir_bridge/gpu/contraction/contraction.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/contraction/narrow.hpp"
#include "mlir_bridge/gpu/contraction/staged.hpp"
#include "mlir_bridge/gpu/contraction/versions.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_kernel.hpp"

namespace kiln::gpu {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Every version costs time when the model is loaded, and bytes. With these, the kernels for all sizes of 11 models take
// 1.0 to 1.9 times the bytes of those for one set of sizes (bench/README.md).
constexpr std::size_t most_versions = 3, most_aligned_versions = 2;
constexpr double worth_a_version = 0.8, worth_a_version_if_small = 1.2, worth_more_on_amd = 0.4;
// Factor on the estimate of a version of another generator than the one that a known number of rows would use:
// estimates of different generators compare less well.
constexpr double other_generator = 1.15;
// The values of open dimensions at which versions are compared, up to this many rows.
constexpr std::int64_t ladder[]{1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096};
constexpr std::int64_t most_rows = std::int64_t{1} << 18;
// The size above which products of which more is open than the rows have versions with aligned sizes.
constexpr std::int64_t small_size = 160;
// The least height and width at which versions of convolutions of images of open size are compared.
constexpr std::int64_t least_of_images = 16;

// Values of the open dimensions at which versions are compared, and the tile that a product of these sizes would use.
struct sample {
  dim_bindings values;
  std::int64_t rows = 0;
  problem_size size;  // for the staged generator
  wgmma_size copied_size;
  std::optional<wgmma_problem> copied;  // for wgmma
  // The one that a product of exactly this size uses; the general one if both are null.
  std::optional<wgmma_tile> copied_tile;
  std::optional<narrow_product_shape> narrow;
};

// How a version computes the product. Exactly one member is set.
struct version {
  std::optional<tile_shape> staged;
  std::optional<wgmma_tile> copied;
  std::optional<narrow_product_shape> narrow;
  friend bool operator==(const version&, const version&) = default;
};

std::int64_t rows_at(const dim& rows, const dim_bindings& values) try {
  return rows.substitute(values).value();
} catch (const error&) {
  return 0;  // a quotient by a size that is 0 for these values
}

// Returns true if versions differ by the number of rows alone.
bool only_rows_are_open(const contraction_problem& problem) {
  return problem.batch.is_static() && problem.n.is_static() && problem.k.is_static();
}

// Returns the size by which versions are chosen.
const dim& size_of_versions(const contraction_problem& problem) {
  for (const dim* d : {&problem.m, &problem.n})
    if (!d->is_static()) return *d;
  return problem.k;
}

std::vector<sample> find_samples(kernel_emitter& e, const contraction_problem& problem, wgmma_finder find) {
  std::set<std::string> symbols;
  for (value v : e.anchor()->inputs())
    for (const dim& d : kernel_emitter::sizes(v)) symbols.merge(d.symbols());
  // A batch is small.
  constexpr std::int64_t usual_batch = 4;
  std::set<std::string> of_batch = problem.batch.symbols();
  for (const dim* d : {&problem.m, &problem.n, &problem.k})
    for (const std::string& symbol : d->symbols()) of_batch.erase(symbol), symbols.insert(symbol);
  // Versions for images of a few pixels would be code that hardly any image uses.
  const bool of_images = e.anchor()->op().is<convolution>() && problem.m.symbols().size() > 1;
  std::vector<sample> result;
  for (std::int64_t value : ladder) {
    if (of_images && value < least_of_images) continue;
    sample s;
    for (const std::string& symbol : symbols) s.values[symbol] = of_batch.contains(symbol) ? usual_batch : value;
    s.rows = rows_at(size_of_versions(problem), s.values);
    if (!only_rows_are_open(problem) && s.rows <= small_size) continue;
    if (s.rows < 1 || (!result.empty() && s.rows <= result.back().rows)) continue;
    if (s.rows > most_rows && !result.empty()) break;
    if (find && has_wgmma(e)) s.copied = find(e, s.values);
    if (s.copied) s.copied_size = size_of(e, *s.copied);
    result.push_back(std::move(s));
  }
  if (!result.empty()) result.back().copied_size.largest = true;
  for (sample& s : result) {
    if (s.copied) s.copied_tile = choose_wgmma_tile(s.copied_size, e.target, e.configuration);
    if (s.copied_tile) s.copied_tile->group = 1;  // which order tiles are visited in depends on the rows
  }
  return result;
}

// Estimates the cycles of the stage that splits the rows of an f32 product into parts.
double split_cost(const kernel_emitter& e, const sample& s) {
  constexpr double launch = 4000, memory_rate = 24;  // bytes a cycle of one compute unit
  if (s.copied_size.parts == 1) return 0;
  const wgmma_operand& a = s.copied->a;
  const double elements =
      s.copied->image ? static_cast<double>(s.copied->image->images * a.rows * a.k) : static_cast<double>(a.rows * a.k);
  return launch + elements * (4 + 2 * static_cast<double>(a.parts)) / (memory_rate * e.target.gpu.compute_units);
}

double cycles(const kernel_emitter& e, const contraction_problem& problem, const version& v, const sample& s) {
  const bool other = v.copied.has_value() != s.copied_tile.has_value() || v.narrow.has_value() != s.narrow.has_value();
  double result = never;
  if (v.staged) {
    result = staged_cost(*v.staged, e.target, s.size);
  } else if (v.narrow) {
    if (s.rows <= v.narrow->most_rows()) result = narrow_cost(e, problem, *v.narrow);
  } else if (s.copied && legal(*v.copied, s.copied_size, e.target)) {
    result = wgmma_cost(*v.copied, s.copied_size, e.target) + split_cost(e, s);
  }
  return result * (other ? other_generator : 1);
}

// How a row is read serves all numbers of rows for which a matrix instruction has room: with asynchronous copies, as
// several rows use them, a single row took twice as long (10.8 us instead of 5.8 for 768 x 2304 on an H200).
narrow_product_shape shape_of_few(kernel_emitter& e, const contraction_problem& problem, const sample& s) {
  const auto of_one = find_narrow(e, problem, 1);
  return of_one && of_one->most_rows() >= s.rows ? *of_one : *s.narrow;
}

// Returns the versions that the samples use, each once.
std::vector<version> find_versions(kernel_emitter& e, const contraction_problem& problem,
                                   const std::vector<sample>& samples) {
  std::vector<version> result;
  const auto add = [&](const version& v) {
    if (std::ranges::find(result, v) == result.end()) result.push_back(v);
  };
  for (const sample& s : samples) {
    if (s.copied_tile) add({{}, s.copied_tile, {}});
    else if (s.narrow) add({{}, {}, shape_of_few(e, problem, s)});
    else add({choose_tile(e.target, s.size, e.configuration), {}, {}});
  }
  if (only_rows_are_open(problem)) return result;
  // Also tiles of less code.
  constexpr std::int64_t small_tile = 64;
  problem_size size = samples.front().size;
  size.m = std::min(size.m, small_tile), size.n = std::min(size.n, small_tile);
  add({choose_tile(e.target, size, e.configuration), {}, {}});
  return result;
}

// The sizes of the product at a sample.
problem_size size_at(problem_size size, const contraction_problem& problem, const sample& s) {
  size.batch = rows_at(problem.batch, s.values), size.m = rows_at(problem.m, s.values);
  size.n = rows_at(problem.n, s.values), size.k = rows_at(problem.k, s.values);
  return size;
}

// Returns true for a product so small that launches take most of its time at usual sizes.
bool is_small(const contraction_problem& problem, const std::vector<sample>& samples) {
  constexpr std::int64_t usual = 16, most_products = 1 << 23;
  const auto at = std::ranges::find_if(samples, [](const sample& s) { return s.values.begin()->second >= usual; });
  if (at == samples.end()) return false;
  std::int64_t products = 1;
  for (const dim* d : {&problem.batch, &problem.m, &problem.n, &problem.k}) products *= rows_at(*d, at->values);
  return products <= most_products;
}

// What the code of a version costs on top of `worth_a_version`: the epilogue is written out for each sum of a thread,
// and tiles of the vector unit write out all multiply-adds of a step, up to 120 kB of PTX where those of small tiles
// take 12 kB. Only small products avoid the latter, because others gain much from large tiles.
double code_price(const kernel_emitter& e, const version& v, bool small) {
  constexpr double of_product = 1.0 / 350, of_sum = 0.15 / 64, of_amd_sum = 0.4 / 64, of_long_epilogue = 3;
  const double of_epilogue = has_long_epilogue(e) ? of_long_epilogue : 1;
  if (v.copied) return of_sum * static_cast<double>(v.copied->sums()) * of_epilogue;
  if (!v.staged) return 0;
  const tile_shape& tile = *v.staged;
  double result = 0;
  if (!tile.instruction && small)
    result = of_product * static_cast<double>(tile.part_m * tile.part_n * tile.chunks * 4);
  // Code for NVIDIA is PTX. Down to AMD's machine code, LLVM takes longer for each sum, with all tiles.
  if (e.target.family == target_family::amdgpu)
    result += of_amd_sum * static_cast<double>(tile.m * tile.n / tile.threads(e.target.gpu)) * of_epilogue;
  return result;
}

// The same where most of the code is the epilogue, of many instructions such as a mask's.
double price_of_sums(const kernel_emitter& e, const version& v) {
  constexpr double of_instruction = 0.15 / 64;
  const tile_shape& tile = *v.staged;
  const double instructions = static_cast<double>(std::ranges::distance(e.fusion.instructions()));
  return of_instruction * instructions * static_cast<double>(tile.m * tile.n / tile.threads(e.target.gpu));
}

struct used_version {
  version made;
  const sample* first;  // of the samples that it computes
  dim used;             // 1 at the numbers of rows that it computes, else 0
};

// Rearranges the operands for all versions that read them with the copy engine, and returns the problem that reads the
// results; nullopt if there are no such versions.
std::optional<wgmma_problem> rearrange_once(kernel_emitter& e, const std::vector<used_version>& versions) {
  std::optional<wgmma_problem> result;
  for (const used_version& v : versions) {
    if (!v.made.copied) continue;
    if (result) result->used = result->used + v.used;
    else result = *v.first->copied, result->used = v.used;
  }
  if (result) rearrange_operands(e, *result);
  return result;
}

}  // namespace

dim large_sizes(const contraction_problem& problem) {
  if (only_rows_are_open(problem) || size_of_versions(problem).is_static()) return 0;
  return rows_between(size_of_versions(problem), small_size, std::numeric_limits<std::int64_t>::max());
}

void emit_open_product(kernel_emitter& e, contraction_problem problem, wgmma_finder find) {
  const bool only_rows = only_rows_are_open(problem);
  if (only_rows ? problem.m.is_static() : e.multiples.empty()) return emit_contraction(e, std::move(problem));
  if (!only_rows) find = nullptr;
  std::vector<sample> samples = find_samples(e, problem, find);
  if (samples.empty()) return emit_contraction(e, std::move(problem));
  if (!std::ranges::all_of(samples, [](const sample& s) { return s.copied_tile.has_value(); })) {
    const std::optional<buffer> packed = pack_operand(e, problem);
    const problem_size size = staged_size(e, problem);
    for (sample& s : samples) {
      s.size = size_at(size, problem, s);
      if (only_rows && !s.copied_tile) s.narrow = find_narrow(e, problem, s.rows);
      // All versions read the same copy of the weights.
      const bool same = packed && s.copied && s.copied->b.memory.type == packed->type;
      if (same && (storage_bits(packed->type) == 16 || s.copied->b.divided))
        s.copied->b = in_rows(s.copied->b, *packed), s.copied_size.b_k_inner = true;
    }
  }
  const std::vector<version> versions = find_versions(e, problem, samples);
  std::vector<std::vector<double>> costs;
  for (const version& v : versions) {
    auto& of_version = costs.emplace_back();
    for (const sample& s : samples) of_version.push_back(cycles(e, problem, v, s));
  }
  std::vector<double> worth;
  const bool small = is_small(problem, samples);
  double least = small ? worth_a_version_if_small : worth_a_version;
  if (e.target.family == target_family::amdgpu) least += worth_more_on_amd;
  for (const version& v : versions)
    worth.push_back(least + (only_rows ? code_price(e, v, small) : price_of_sums(e, v)));
  const std::size_t most = only_rows ? most_versions : most_aligned_versions;
  std::vector<used_version> used;
  std::size_t first = 0;
  for (const version_range& range : choose_versions(costs, most, worth)) {
    const bool last = range.last_sample + 1 == samples.size();
    used.push_back({versions[range.version], &samples[first],
                    rows_between(size_of_versions(problem), first == 0 ? 0 : samples[first - 1].rows,
                                 last ? std::numeric_limits<std::int64_t>::max() : samples[range.last_sample].rows)});
    first = range.last_sample + 1;
  }
  const std::optional<wgmma_problem> rearranged = rearrange_once(e, used);
  for (const used_version& u : used) {
    problem.used = u.used;
    if (u.made.staged) {
      tile_shape tile = *u.made.staged;
      if (tile.slots && splits_at(tile, u.first->size) == 1) tile.slots = 0, tile.splits = 1;
      emit_staged(e, problem, tile);
    } else if (u.made.narrow) {
      emit_narrow(e, problem, *u.made.narrow);
    } else {
      wgmma_problem copied = *u.first->copied;
      copied.used = u.used, copied.a = rearranged->a, copied.b = rearranged->b;
      divide_image(e, copied, u.made.copied->m);
      emit_wgmma(e, copied, *u.made.copied);
    }
  }
}

}  // namespace kiln::gpu
