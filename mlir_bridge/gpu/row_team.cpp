#include "mlir_bridge/gpu/row_team.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/contraction/versions.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/streaming_cost.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// Elements of one thread that are kept in registers.
constexpr std::int64_t kept_elements = 64;
// Up to this many vectors per thread, a single wave computes a row.
constexpr std::int64_t wave_vectors = 4;
// Vectors per thread above which more threads are used.
constexpr std::int64_t group_vectors = 2;
constexpr std::int64_t most_column_members = 32;
// Loads in flight in a loop.
constexpr std::int64_t abreast = 4;
// Per compute unit.
constexpr std::int64_t resident_threads = 2048;
constexpr std::int64_t most_splits = 256;
constexpr std::int64_t most_pieces_of_candidates = 4096;

std::int64_t power_above(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}
std::int64_t power_below(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

// Returns what an open number of rows is when its dimensions are small: what is divided then still suits many rows.
std::int64_t few_of(const dim& rows) {
  constexpr std::int64_t few = 2;
  dim_bindings values;
  for (const std::string& symbol : rows.symbols()) values[symbol] = few;
  return std::max<std::int64_t>(1, rows.substitute(values).value());
}

}  // namespace

row_team::row_team(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes, std::int64_t splits)
    : row_team(e, e.configuration, input, axes, splits) {}

row_team::row_team(kernel_emitter& e, const kernel_configuration& configuration, value input,
                   const std::vector<std::int64_t>& axes, std::int64_t splits)
    : space(e, input, axes), e_(e), code_(e.code), splits_(splits) {
  const gpu_row& device = e.target.gpu;
  const std::int64_t resident = resident_threads * device.compute_units;
  std::int64_t widest = access_lanes(input.type().type);
  if (compute_type(input.type().type) == element_type::f64) widest = std::min<std::int64_t>(widest, 4);
  widest = std::min<std::int64_t>(widest, 8);
  lanes_ = common_power(std::clamp<std::int64_t>(choose(configuration, "lanes", widest), 1, widest),
                        {known_factor(space.lane_size)});
  element_bytes_ = std::max<std::int64_t>(1, storage_bits(input.type().type) / 8);
  rows_ = std::accumulate(space.kept_sizes.begin(), space.kept_sizes.end(), dim(1), std::multiplies<>());
  std::int64_t share = 1;
  if (inner()) {
    vectors_ = space.count / lanes_;
    share_ = ceil_div(vectors_, splits_);
    share = usual_share();
    if (share <= device.wave * wave_vectors) team_ = std::min<std::int64_t>(device.wave, power_above(share));
    else
      team_ = std::clamp<std::int64_t>(power_above(ceil_div(share, group_vectors)), device.wave,
                                       splits_ > 1 ? 256 : device.max_threads);
    team_ = std::clamp<std::int64_t>(power_below(choose(configuration, "team", team_)), 1,
                                     std::min<std::int64_t>(device.max_threads, power_above(share)));
    threads_ = std::max(
        team_, std::max<std::int64_t>(
                   device.wave, configured_threads(e.target, configuration,
                                                   spread_threads(e.target, usual_size(rows_) * team_ * splits_))));
    // Several waves combine their results in shared memory, which only one row can use.
    if (team_ > device.wave) threads_ = team_;
    rows_per_group_ = threads_ / team_;
  } else {
    columns_ = space.lane_size / lanes_;
    share_ = ceil_div(space.count, splits_);
    share = usual_share();
    const std::int64_t items = usual_size(rows_ * columns_) * splits_;
    team_ =
        std::clamp<std::int64_t>(power_above(std::max<std::int64_t>(1, resident / std::max<std::int64_t>(1, items))), 1,
                                 std::min(most_column_members, power_below(share)));
    team_ = std::clamp<std::int64_t>(power_below(choose(configuration, "team", team_)), 1,
                                     std::min(most_column_members, power_below(share)));
    columns_per_group_ = std::min(std::max<std::int64_t>(1, configured_threads(e.target, configuration, 256) / team_),
                                  power_above(usual_size(columns_)));
    threads_ = std::max<std::int64_t>(team_ * columns_per_group_, device.wave);
    columns_per_group_ = threads_ / team_;
  }
  pieces_ = ceil_div(share, team_);
}

// For a row of open length, assume a length that keeps a whole wave busy.
std::int64_t row_team::usual_share() const {
  return share_.is_static() ? share_.value() : e_.target.gpu.wave * wave_vectors;
}

Value row_team::count_as(element_type type) const {
  const mlir::Type scalar = code_.scalar_type(type);
  const Value count = e_.size(space.count);
  if (mlir::isa<mlir::FloatType>(scalar)) return code_.make<arith::UIToFPOp>(scalar, count);
  const unsigned bits = scalar.getIntOrFloatBitWidth(), own = count.getType().getIntOrFloatBitWidth();
  if (bits == own) return count;
  return bits > own ? code_.make<arith::ExtUIOp>(scalar, count).getResult()
                    : code_.make<arith::TruncIOp>(scalar, count).getResult();
}

std::int64_t row_team::most_pieces() const { return std::max<std::int64_t>(1, kept_elements / lanes_); }

std::int64_t row_team::wanted_splits() const {
  if (!(share_ * columns_).is_static()) return 1;
  const std::int64_t rows = rows_.is_static() ? rows_.value() : few_of(rows_),
                     busy = inner() ? rows * team_ : rows * ceil_div(columns_, columns_per_group_).value() * threads_;
  std::int64_t resident = resident_threads * e_.target.gpu.compute_units;
  if (busy * 4 > resident || pieces_ < 16) return 1;
  return std::clamp<std::int64_t>(resident / busy, 1, std::min(most_splits, pieces_ / 4));
}

dim row_team::shares_results() const {
  // Vectors of a result from which on a second stage costs less than it saves.
  constexpr std::int64_t least_vectors = 1024, any = std::numeric_limits<std::int64_t>::max();
  const dim elements = inner() ? vectors_ : space.count, groups = inner() ? rows_ : rows_ * ceil_div(columns_, 32);
  const std::int64_t most_groups = e_.target.gpu.compute_units / 2;
  // Rows with more open dims than a batch are many.
  if (elements.is_static() || groups.symbols().size() > 1) return 0;
  // A few results of a whole tensor have one version only: a second one would be more code than the exact kernel's.
  if (groups.is_static()) return groups.value() <= most_groups ? 1 : 0;
  return rows_between(elements, least_vectors, any) * rows_between(groups, 0, most_groups);
}

double row_team::cost(std::int64_t passes) const {
  constexpr double exchange = 30, barrier = 120,
                   join = 4000;  // of a step between lanes; of one between waves; of a second stage
  const std::int64_t groups =
      usual_size(inner() ? ceil_div(rows_, rows_per_group_) : rows_ * ceil_div(columns_, columns_per_group_)) * splits_;
  const auto pieces = static_cast<double>(pieces_);
  const double reads = in_registers() ? 1 : static_cast<double>(passes);
  streaming_work work{.groups = groups, .threads = threads_, .access_bytes = lanes_ * element_bytes_};
  work.bytes = pieces * static_cast<double>(lanes_ * element_bytes_) * (reads + 0.5);
  work.trips = in_registers() ? 1 : reads * pieces / static_cast<double>(abreast);
  const auto steps = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(team_)) - 1);
  work.cycles =
      static_cast<double>(passes) * (inner()     ? steps * exchange + (team_ > e_.target.gpu.wave ? 2 * barrier : 0)
                                     : team_ > 1 ? 3 * barrier
                                                 : 0);
  work.cycles += pieces * static_cast<double>(threads_ * lanes_ * passes) / 128 * 4;
  return streaming_cycles(e_.target.gpu, work) + (splits_ > 1 ? join : 0);
}

std::vector<candidate> row_team_space(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes,
                                      std::int64_t passes, std::span<const std::int64_t> shares) {
  std::vector<candidate> result;
  if (input.type().element_count() == 0) return result;
  std::vector<std::int64_t> splits{1};
  splits.insert(splits.end(), shares.begin(), shares.end());
  for (std::int64_t lanes = row_team(e, {}, input, axes, 1).lanes(); lanes >= 1; lanes /= 2)
    for (std::int64_t team = 1; team <= e.target.gpu.max_threads; team *= 2)
      for (std::int64_t threads : {64, 128, 256, 512})
        for (std::int64_t some : splits) {
          kernel_configuration configuration{{"lanes", lanes}, {"team", team}, {"threads", threads}};
          if (!shares.empty()) configuration["splits"] = some;
          const row_team t(e, configuration, input, axes, some);
          if (t.team() == team && t.pieces() <= most_pieces_of_candidates)
            result.push_back({std::move(configuration), t.cost(passes)});
        }
  return result;
}

void row_team::open(const std::string& name) {
  const dim groups = inner() ? ceil_div(rows_, rows_per_group_) : rows_ * ceil_div(columns_, columns_per_group_);
  if (groups.is_static()) group_.emplace(e_, name, std::array<std::int64_t, 3>{groups.value(), splits_, 1}, threads_);
  else group_.emplace(e_, name, groups * splits_, threads_);
  Value block = group_->block();
  if (groups.is_static() || splits_ == 1) {
    split_ = group_->block(1);
  } else {
    split_ = code_.rem(block, splits_);
    block = code_.div(block, splits_);
  }
  if (inner()) {
    Value row = block;
    if (rows_per_group_ > 1) row = code_.add(code_.mul(row, rows_per_group_), code_.div(group_->thread(), team_));
    member_ = code_.rem(group_->thread(), team_);
    if (!divides(rows_per_group_, rows_)) {
      row_fresh_ = code_.less(row, e_.size(rows_));
      row = e_.min(row, rows_ - 1);
    }
    row_ = e_.delinearize(row, space.kept_sizes);
  } else {
    const dim blocks = ceil_div(columns_, columns_per_group_);
    column_ = code_.add(code_.mul(e_.rem(block, blocks), columns_per_group_),
                        code_.rem(group_->thread(), columns_per_group_));
    member_ = code_.div(group_->thread(), columns_per_group_);
    if (!divides(columns_per_group_, columns_)) {
      row_fresh_ = code_.less(column_, e_.size(columns_));
      column_ = e_.min(column_, columns_ - 1);
    }
    row_ = e_.delinearize(e_.div(block, blocks), space.kept_sizes);
  }
}

position row_team::total_position() const {
  position where = space.start(code_, row_);
  if (!inner())
    where[space.lane_axis] = {
        code_.mul(column_, lanes_), lanes_ > 1 ? 1 : 0, {}, 0, known_bound(space.lane_size), lanes_};
  return where;
}

// Returns the place of the vector (inner) or element (outer) with this index among those that this workgroup combines.
row_team::place row_team::at_piece(Value index, bool always) const {
  place result{total_position(), {}, -1};
  const dim& all = inner() ? vectors_ : space.count;
  Value number = splits_ > 1 ? code_.add(e_.mul(split_, share_), index) : index;
  if (!always) {
    Value own = splits_ > 1 ? e_.min(code_.sub(e_.size(all), e_.mul(split_, share_)), share_) : e_.size(share_);
    result.fresh = code_.less(index, own);
    number = e_.min(number, all - 1);
  }
  if (space.runs.empty()) return result;
  std::vector<dim> dims = space.run_sizes;
  if (inner()) dims.back() = dims.back() / lanes_;
  values digits = e_.delinearize(number, dims);
  for (std::size_t run = 0; run < dims.size(); ++run) {
    bool vector = inner() && run + 1 == dims.size();
    axis_index& index = result.where[space.runs[run].back()];
    index = {vector ? code_.mul(digits[run], lanes_) : digits[run],
             vector && lanes_ > 1 ? 1 : 0,
             {},
             0,
             known_bound(space.run_sizes[run]),
             vector ? lanes_ : 1};
  }
  return result;
}

values row_team::walk_open(values state, const step& visit) const {
  auto piece = [&](Value number, bool always, std::span<const Value> s) {
    return visit(at_piece(code_.add(code_.mul(number, team_), member_), always), s);
  };
  Value full, abreast_end;
  if (splits_ > 1) {
    // The last workgroups may have fewer elements than the others, or none.
    const Value rest = code_.sub(e_.size(inner() ? vectors_ : space.count), e_.mul(split_, share_)),
                own = code_.max(e_.min(rest, share_), code_.constant(0));
    full = code_.div(own, team_);
    abreast_end = code_.mul(code_.div(own, team_ * abreast), abreast);
  } else {
    full = e_.size(share_ / team_), abreast_end = e_.size(share_ / (team_ * abreast) * abreast);
  }
  state = code_.loop(code_.constant(0), abreast_end, abreast, std::move(state), [&](Value p, std::span<const Value> s) {
    values next(s.begin(), s.end());
    for (std::int64_t i = 0; i < abreast; ++i) next = piece(code_.add(p, i), true, next);
    return next;
  });
  state = code_.loop(abreast_end, full, 1, std::move(state),
                     [&](Value p, std::span<const Value> s) { return piece(p, true, s); });
  return splits_ == 1 && divides(team_, share_) ? state : piece(full, false, state);
}

values row_team::walk(values state, const step& visit) const {
  if (!share_.is_static()) return walk_open(std::move(state), visit);
  const std::int64_t all = (inner() ? vectors_ : space.count).value(), share = share_.value();
  bool equal_shares = share * splits_ == all;
  // The number of pieces that every thread has in every split.
  std::int64_t full = equal_shares ? share / team_ : 0;
  auto piece = [&](Value number, bool always, std::int64_t known, std::span<const Value> s) {
    place at = at_piece(code_.add(code_.mul(number, team_), member_), always);
    at.piece = known;
    return visit(at, s);
  };
  if (in_registers()) {
    for (std::int64_t p = 0; p < pieces_; ++p) state = piece(code_.constant(p), p < full, p, state);
    return state;
  }
  std::int64_t looped = full / abreast * abreast;
  if (!equal_shares) looped = pieces_ / abreast * abreast;
  state = code_.loop(0, looped, abreast, state, [&](Value p, std::span<const Value> s) {
    values next(s.begin(), s.end());
    for (std::int64_t i = 0; i < abreast; ++i) next = piece(code_.add(p, i), equal_shares, -1, next);
    return next;
  });
  for (std::int64_t p = looped; p < pieces_; ++p) state = piece(code_.constant(p), p < full, -1, state);
  return state;
}

void row_team::each(const std::function<void(const place&)>& visit) const {
  walk({}, [&](const place& at, std::span<const Value>) {
    visit(at);
    return values{};
  });
}

Value row_team::masked(const place& at, Value v, Value neutral) const {
  return at.fresh ? code_.select(at.fresh, v, neutral) : v;
}

values row_team::total(values state, const combiner& combine) {
  if (inner()) {
    // Combine the lanes pairwise first, then the threads.
    for (std::int64_t n = lanes_; n > 1; n /= 2) {
      values low, high;
      for (Value v : state) {
        values a, b;
        for (std::int64_t i = 0; i < n / 2; ++i) a.push_back(code_.lane(v, i)), b.push_back(code_.lane(v, i + n / 2));
        low.push_back(code_.from_lanes(a)), high.push_back(code_.from_lanes(b));
      }
      state = combine(low, high);
    }
    if (team_ == 1) return state;
    return team_ <= group_->wave_size() ? group_->reduce_wave(std::move(state), combine, team_)
                                        : group_->reduce(std::move(state), combine);
  }
  if (team_ == 1) return state;
  // Members store their vectors side by side to shared memory. Each thread then combines one or a few of the columns
  // and stores the totals in place of the first member's vector.
  std::int64_t before = group_->lds_used(), width = std::max<std::int64_t>(1, lanes_ / team_),
               parts = columns_per_group_ * lanes_ / width;
  values slots, all;
  for (Value v : state) slots.push_back(group_->lds(threads_ * workgroup::lds_bytes_of(v)));
  for (std::size_t i = 0; i < state.size(); ++i) group_->store_raw(slots[i], group_->thread(), state[i]);
  group_->barrier();
  auto combine_part = [&] {
    values part;
    for (std::int64_t m = 0; m < team_; ++m) {
      values other;
      for (std::size_t i = 0; i < state.size(); ++i)
        other.push_back(group_->load_raw(slots[i], code_.add(group_->thread(), m * parts),
                                         code_builder::with_lanes(code_builder::scalar_of(state[i]), width)));
      part = m == 0 ? other : combine(part, other);
    }
    for (std::size_t i = 0; i < state.size(); ++i) group_->store_raw(slots[i], group_->thread(), part[i]);
  };
  if (parts < threads_) code_.when(code_.less(group_->thread(), code_.constant(parts)), combine_part);
  else combine_part();
  group_->barrier();
  Value first = code_.rem(group_->thread(), columns_per_group_);
  for (std::size_t i = 0; i < state.size(); ++i) all.push_back(group_->load_raw(slots[i], first, state[i].getType()));
  group_->barrier();
  group_->release_lds(before);
  return all;
}

Value row_team::total(Value state, const workgroup::combiner& combine) {
  return total({state},
               [&](std::span<const Value> a, std::span<const Value> b) { return values{combine(a[0], b[0])}; })[0];
}

void row_team::when_leader(const std::function<void()>& body) {
  Value leader = team_ > 1 ? code_.equal(member_, code_.constant(0)) : Value();
  if (row_fresh_) leader = leader ? code_.make<arith::AndIOp>(leader, row_fresh_).getResult() : row_fresh_;
  if (leader) code_.when(leader, body);
  else body();
}

void row_team::when_owner(const place& at, const std::function<void()>& body) const {
  Value owner = at.fresh;
  if (row_fresh_) owner = owner ? code_.make<arith::AndIOp>(owner, row_fresh_).getResult() : row_fresh_;
  if (owner) code_.when(owner, body);
  else body();
}

}  // namespace kiln::gpu
