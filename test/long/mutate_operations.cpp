// Random operations: every name that make_operation knows, with random fields, on random inputs, as a hostile file
// could hold them. Shape rules must refuse or give a shape that the validator, the printer and binding accept; small
// ones are evaluated by the reference implementation on hostile values (indices out of range, NaN, extremes), which
// must refuse or give tensors of the shapes that were inferred.
//
//     mutate_operations [--seconds N | --trials N] [--seed N] [--trial N]
//
// Prints one line per operation: how many were accepted, evaluated, refused; exit 1 where something else happened.
// Worth most in a build with sanitizers. --trial N runs the trial of that number alone.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "ir/invalid_shape.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"

namespace {

using namespace kiln;
using clock = std::chrono::steady_clock;

constexpr unsigned most_seconds = 20;         // for one trial
constexpr std::int64_t most_elements = 4096;  // of a tensor that is evaluated
constexpr std::int64_t most_window =
    16;  // of a field that is evaluated: a pooling over 2^40 elements is slow, not wrong
constexpr std::int64_t numbers[] = {-1,
                                    16,
                                    255,
                                    4096,
                                    INT32_MAX,
                                    INT32_MIN,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 1,
                                    std::int64_t{1} << 32,
                                    std::int64_t{1} << 47,
                                    std::int64_t{1} << 62};
constexpr const char* texts[] = {"sum",
                                 "product",
                                 "max",
                                 "min",
                                 "mean",
                                 "average",
                                 "add",
                                 "mul",
                                 "none",
                                 "replace",
                                 "nearest",
                                 "linear",
                                 "cubic",
                                 "half_pixel",
                                 "align_corners",
                                 "asymmetric",
                                 "floor",
                                 "ceil",
                                 "round_prefer_floor",
                                 "constant",
                                 "edge",
                                 "reflect",
                                 "wrap",
                                 "lstm",
                                 "gru",
                                 "rnn",
                                 "pytorch_half_pixel",
                                 "half_pixel_symmetric",
                                 "round_prefer_ceil",
                                 "channels_first",
                                 "channels_last",
                                 "",
                                 "x"};

class chooser {
 public:
  explicit chooser(std::uint64_t seed) : random_(seed), rank_(below(6)) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  // Mostly what a model would have.
  std::int64_t number(bool calm) {
    return calm || !one_in(6) ? static_cast<std::int64_t>(below(5)) : numbers[below(std::size(numbers))];
  }
  element_type type() {
    static constexpr element_type common[] = {element_type::f32, element_type::f32,     element_type::f32,
                                              element_type::i64, element_type::boolean, element_type::f16};
    return one_in(3) ? static_cast<element_type>(below(element_type_count)) : common[below(std::size(common))];
  }
  dim random_dim(bool calm) {
    switch (calm ? 2 : below(16)) {
      case 0: return dim::symbol("n");
      case 1: return 2 * dim::symbol("m") + dim(static_cast<std::int64_t>(below(3)));
      default: return dim(std::max<std::int64_t>(0, number(calm)));  // the container refuses negative ones
    }
  }
  shape random_shape(bool calm, const std::vector<shape>& others) {
    if (!others.empty() && one_in(2)) {  // operations want inputs that resemble each other
      shape s = others[below(others.size())];
      if (!s.dims.empty() && one_in(2)) s.dims[below(s.dims.size())] = random_dim(calm);
      if (one_in(4)) s.type = type();
      return s;
    }
    shape s{type(), {}};
    for (std::size_t rank = one_in(4) ? below(6) : rank_; rank > 0; --rank) s.dims.push_back(random_dim(calm));
    return s;
  }
  void change(attribute& a, bool calm) {
    std::visit([&](auto& field) { change(field, calm); }, a);
  }
  // Values that indices and conditions do not expect.
  literal values(const shape& s, bool calm) {
    constexpr double reals[] = {0,
                                -1,
                                1,
                                2,
                                0.5,
                                -0.0,
                                1e30,
                                -1e30,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
    std::vector<std::byte> bytes(s.bytes());
    std::int64_t count = s.element_count();
    bool real = is_float(s.type);
    for (std::int64_t i = 0; i < count; ++i) {
      if (real)
        store_element(s.type, bytes.data(), i,
                      calm ? static_cast<double>(below(5)) - 1 : reals[below(std::size(reals))]);
      else store_integer(s.type, bytes.data(), i, number(calm));
    }
    return literal(s, std::move(bytes));
  }

 private:
  void change(bool& b, bool) { b = one_in(2); }
  void change(std::int64_t& n, bool calm) { n = number(calm); }
  void change(double& d, bool) { d = one_in(2) ? 1 : static_cast<double>(number(false)); }
  void change(std::string& t, bool) {
    if (!one_in(3)) t = texts[below(std::size(texts))];
  }
  void change(element_type& t, bool) { t = type(); }
  template <class T>
  void change(std::vector<T>& list, bool calm) {
    list.resize(length());
    if constexpr (std::is_same_v<T, std::int64_t>)
      if (one_in(4)) {  // a permutation
        std::iota(list.begin(), list.end(), 0);
        std::shuffle(list.begin(), list.end(), random_);
        return;
      }
    for (auto&& item : list) {
      if constexpr (std::is_same_v<T, dim>) item = random_dim(calm);
      else change(item, calm);
    }
  }
  // Lists and inputs mostly agree on how many axes there are, or on the axes without batch and channels.
  std::size_t length() { return one_in(5) ? below(6) : one_in(2) || rank_ < 2 ? rank_ : rank_ - 2; }
  std::mt19937_64 random_;
  std::size_t rank_;
};

bool is_refusal(error_kind kind) {
  return kind == error_kind::invalid_model || kind == error_kind::unsupported || kind == error_kind::corrupted ||
         kind == invalid_shape;
}

struct tally {
  std::size_t accepted = 0, evaluated = 0, refused = 0;
};

bool small(const shape& s) {
  if (!s.is_static()) return false;
  std::int64_t product = 1;
  for (const dim& d : s.dims)
    if (d.value() < 0 || d.value() > most_elements || (product *= std::max<std::int64_t>(1, d.value())) > most_elements)
      return false;
  return true;
}

bool small(const operation& op) {
  for (const auto& [name, value] : op.attributes()) {
    if (const auto* n = std::get_if<std::int64_t>(&value); n && *n > most_window) return false;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      for (std::int64_t n : *list)
        if (n > most_window && n < INT64_MAX - 1) return false;
  }
  return true;
}

// Forms that random fields and inputs do not hit.
struct example {
  operation op;
  std::vector<shape> inputs;
};

std::vector<example> examples() {
  using list = std::vector<std::int64_t>;
  auto f32 = [](std::vector<dim> dims) { return shape{element_type::f32, std::move(dims)}; };
  auto i64 = [](std::vector<dim> dims) { return shape{element_type::i64, std::move(dims)}; };
  pooling pool{.kind = pooling_kind::max,
               .window = {2, 3},
               .strides = {2, 1},
               .dilations = {1, 2},
               .pads_begin = {1, 0},
               .pads_end = {0, 1},
               .ceil_mode = true};
  pooling mean{.kind = pooling_kind::average,
               .window = {3},
               .strides = {2},
               .dilations = {1},
               .pads_begin = {1},
               .pads_end = {1},
               .layout = tensor_layout::channels_last};
  return {
      {convolution{list{1, 2}, list{1, 1}, list{1, 1}, list{1, 0}, 1, tensor_layout::channels_first},
       {f32({1, 4, 5, 6}), f32({6, 4, 3, 3})}},
      {convolution{list{1}, list{2}, list{1}, list{1}, 2, tensor_layout::channels_last},
       {f32({2, 7, 4}), f32({3, 2, 4})}},
      {transposed_convolution{list{2}, list{1}, list{1}, list{0}, list{1}, 1, tensor_layout::channels_first},
       {f32({1, 3, 5}), f32({3, 2, 3})}},
      {pool, {f32({1, 2, 5, 7})}},
      {mean, {f32({2, 7, 3})}},
      {recurrent{recurrent_cell::lstm, false, false},
       {f32({3, 2, 8}), f32({8, 2}), f32({8}), f32({2, 2}), f32({2, 2})}},
      {recurrent{recurrent_cell::gru, true, true}, {f32({3, 2, 6}), f32({6, 2}), f32({6}), f32({2, 2})}},
      {slice{list{1, 4}, {dim(2), dim(3)}, list{1, -2}}, {f32({3, 5})}},
      {resize{{dim(1), dim(6), dim(3)},
              {1, 2, 0.75},
              resize_mode::linear,
              resize_coordinates::half_pixel,
              resize_nearest::floor,
              -0.75,
              false},
       {f32({1, 3, 4})}},
      {resize{{dim(1), dim(6)},
              {1, 2},
              resize_mode::cubic,
              resize_coordinates::align_corners,
              resize_nearest::ceil,
              -0.75,
              true},
       {f32({1, 3})}},
      {scatter_nd{scatter_reduction::add}, {f32({4, 3}), i64({2, 1}), f32({2, 3})}},
      {scatter_elements{0, scatter_reduction::none}, {f32({4, 3}), i64({2, 3}), f32({2, 3})}},
      {gather_nd{1}, {f32({2, 3, 4}), i64({2, 1})}},
      {gather_elements{1}, {f32({2, 3}), i64({2, 4})}},
      {gather{1}, {f32({2, 3, 4}), i64({2, 2})}},
      {pad{list{1, 0}, list{0, 2}, pad_mode::reflect, 0}, {f32({3, 4})}},
      {top_k{2, 1, true}, {f32({3, 4})}},
      {dot{false, true, element_type::f32}, {f32({2, 3, 4}), f32({2, 5, 4})}},
      {reshape{{dim(4), dim::symbol("n")}}, {f32({2, 2, dim::symbol("n")})}},
      {broadcast{{dim(2), dim(3), dim(4)}}, {f32({3, 1})}},
      {elementwise{scalar_function::where}, {shape{element_type::boolean, {3}}, f32({3}), f32({3})}},
      {elementwise{scalar_function::shift_left}, {shape{element_type::u8, {3}}, shape{element_type::u8, {3}}}},
      {elementwise{scalar_function::div}, {i64({5}), i64({5})}},
      {elementwise{scalar_function::mod}, {i64({5}), i64({5})}},
  };
}

// Nothing to a few things of a good form changed.
void vary(example& e, chooser& choose, bool calm) {
  attribute_list fields = e.op.attributes();
  for (std::size_t changes = choose.below(4); changes > 0; --changes) {
    bool field = !fields.empty() && choose.one_in(2);
    if (field) {
      attribute& a = fields[choose.below(fields.size())].second;
      // One number of a list rather than the list.
      if (auto* list = std::get_if<std::vector<std::int64_t>>(&a); list && !list->empty() && !choose.one_in(4))
        (*list)[choose.below(list->size())] = choose.number(calm);
      else if (auto* dims = std::get_if<std::vector<dim>>(&a); dims && !dims->empty() && !choose.one_in(4))
        (*dims)[choose.below(dims->size())] = choose.random_dim(calm);
      else if (e.op.is<elementwise>()) continue;
      else choose.change(a, calm);
    } else if (!e.inputs.empty()) {
      shape& s = e.inputs[choose.below(e.inputs.size())];
      if (!s.dims.empty() && !choose.one_in(3)) s.dims[choose.below(s.dims.size())] = choose.random_dim(calm);
      else s.type = choose.type();
    }
  }
  e.op = make_operation(e.op.name(), fields);
}

// `counted` leaves its padding away, so its axis may come out shorter.
bool as_inferred(const operation& op, const shape& got, shape inferred) {
  if (const auto* c = op.get_if<bounded>(); c && got.rank() == inferred.rank()) {
    dim& length = inferred.dims.at(static_cast<std::size_t>(c->axis));
    const dim& kept = got.dims.at(static_cast<std::size_t>(c->axis));
    if (kept.value() <= length.value()) length = kept;
  }
  return got == inferred;
}

void try_operation(std::string_view name, chooser& choose, tally& count) {
  static const std::vector<example> known = examples();
  bool calm = choose.one_in(2);
  operation op;
  program p;
  std::vector<shape> inputs;
  std::vector<value> parameters;
  value made;
  try {
    std::vector<example> fitting;
    std::ranges::copy_if(known, std::back_inserter(fitting), [&](const example& e) { return e.op.name() == name; });
    if (!fitting.empty() && !choose.one_in(4)) {
      example& e = fitting[choose.below(fitting.size())];
      vary(e, choose, calm);
      op = e.op;
      inputs = e.inputs;
    } else {
      attribute_list fields = make_operation(name, {}).attributes();
      for (auto& [label, field] : fields)
        if (label != "function" && !choose.one_in(3)) choose.change(field, calm);
      op = make_operation(name, fields);
      for (std::size_t n = choose.below(4) + choose.below(3); n > 0; --n)
        inputs.push_back(choose.random_shape(calm, inputs));
    }
    for (const shape& s : inputs)
      parameters.push_back(p.main().add_parameter("p" + std::to_string(parameters.size()), s));
    made = p.main().add(op, parameters);
  } catch (const error& e) {
    if (!is_refusal(e.kind())) throw;
    ++count.refused;
    return;
  }
  ++count.accepted;
  std::vector<shape> results = made.producer->outputs();
  for (const shape& s : results)
    for (const dim& d : s.dims)
      if (d.is_static() && d.value() < 0) throw std::runtime_error("a negative dimension: " + s.str());
  p.main().set_outputs({made}, {"y"});
  p.symbols["n"] = p.symbols["m"] = {0, INT64_MAX, {}};
  p.validate();
  p.str();
  for (std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{1} << 40}) try {
      p.bind({{"n", size}, {"m", size}}).validate();
    } catch (const error& e) {
      if (!is_refusal(e.kind())) throw;
    }
  if (!small(op) || !std::ranges::all_of(inputs, [](const shape& s) { return small(s); }) ||
      !std::ranges::all_of(results, [](const shape& s) { return small(s); }))
    return;
  std::vector<literal> arguments;
  for (const shape& s : inputs) arguments.push_back(choose.values(s, calm));
  try {
    std::vector<literal> got = op.evaluate(arguments);
    if (got.size() != results.size()) throw std::runtime_error("another number of outputs than inferred");
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!as_inferred(op, got[i].type(), results[i]))
        throw std::runtime_error("evaluated to " + got[i].type().str() + ", inferred " + results[i].str());
    ++count.evaluated;
  } catch (const error& e) {
    if (!is_refusal(e.kind()) && e.kind() != error_kind::usage) throw;
  }
}

// The instructions of control flow need bodies, constants a tensor, parameters a place; code objects a kernel.
bool stands_alone(std::string_view name) {
  constexpr std::string_view others[] = {"constant", "parameter", "if", "loop", "choice", "code_object"};
  return std::ranges::find(others, name) == std::end(others);
}

// What a crash or a hang must still tell.
char last_words[160];
void say_last_words(int) {
  [[maybe_unused]] auto written = ::write(2, last_words, std::strlen(last_words));
  std::_Exit(1);
}

}  // namespace

// Sanitizers end the process with a signal, so that the trial is named.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:handle_abort=0:max_allocation_size_mb=4096";
}
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

int main(int argc, char** argv) {
  CLI::App app{"Random operations, and what infers and evaluates them."};
  int seconds = 60;
  std::uint64_t seed = 1, most = 0, only = 0;
  app.add_option("--seconds", seconds, "How long");
  app.add_option("--trials", most, "So many instead, however long they take");
  app.add_option("--seed", seed, "Seed");
  app.add_option("--trial", only, "Only this trial");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::string_view> names;
  std::array<std::vector<std::string_view>, 2>
      groups;  // the many elementwise functions have a rule in common: a fifth of the trials
  for (std::string_view name : operation_names()) {
    if (!stands_alone(name)) continue;
    names.push_back(name);
    groups[!make_operation(name, {}).is<elementwise>()].push_back(name);
  }
  std::map<std::string_view, tally> counts;
  std::size_t failed = 0, trial = only ? only : 1;
  for (int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGILL}) std::signal(signal, say_last_words);
  auto end = clock::now() + std::chrono::seconds(seconds);
  for (; only ? trial == only : (most ? trial <= most : clock::now() < end) && failed < 20; ++trial) {
    chooser choose(seed * 1'000'003 + trial);
    const auto& group = groups[trial % 5 != 0];
    std::string_view name = group[choose.below(group.size())];
    std::snprintf(last_words, sizeof last_words, "trial %zu (%.*s) of --seed %llu did not end well\n", trial,
                  static_cast<int>(name.size()), name.data(), static_cast<unsigned long long>(seed));
    ::alarm(most_seconds);
    try {
      try_operation(name, choose, counts[name]);
    } catch (const std::exception& e) {
      fmt::print("trial {} ({}): {}\n", trial, name, e.what());
      std::fflush(stdout);
      ++failed;
    }
  }
  ::alarm(0);
  std::size_t never = 0;
  if (!only)
    for (std::string_view name : names) {
      const tally& c = counts[name];
      fmt::print("{:>24} {:7} accepted {:7} evaluated {:7} refused\n", name, c.accepted, c.evaluated, c.refused);
      if (c.accepted == 0) ++never;
    }
  fmt::print("{} passed, {} failed; {} of {} operations never accepted\n", trial - 1 - failed, failed, never,
             names.size());
  return failed > 0;
}
