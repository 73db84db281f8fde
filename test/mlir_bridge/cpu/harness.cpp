#include "harness.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/error.hpp"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_table.hpp"
#include "runtime/host_features.hpp"
#include "runtime/host_kernel.hpp"

namespace kiln::test {

const std::vector<target_row>& runnable_targets() {
  static const std::vector<target_row> rows = [] {
    std::vector<target_row> list;
    for (const cpu_row& row : cpu_rows())
      if (runs_on_host(row)) list.push_back(*find_row(row.name));
    return list;
  }();
  return rows;
}

const target_row& best_target() { return runnable_targets().back(); }

struct loaded_kernel::session {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<host_kernel> functions;
};

namespace {

// Nobody may read or write near this address. It stands for tensors without elements.
void* no_memory() {
  constexpr std::size_t bytes = std::size_t{1} << 30;
  static char* const begin =
      static_cast<char*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return begin + bytes / 2;
}

}  // namespace

struct loaded_kernel::buffers {
  std::vector<std::vector<std::byte>> inputs, outputs, scratch;
  const std::vector<std::int64_t>* sizes = nullptr;
  std::vector<void*> arguments(const launch& l) const {
    std::vector<void*> result;
    for (const launch_argument& a : l.arguments) {
      if (a.kind == buffer_kind::sizes) {
        result.push_back(const_cast<std::int64_t*>(sizes->data()));
        continue;
      }
      const auto& list = a.kind == buffer_kind::input ? inputs : a.kind == buffer_kind::output ? outputs : scratch;
      const auto& memory = list[a.index];
      result.push_back(memory.empty() ? no_memory() : const_cast<std::byte*>(memory.data()));
    }
    return result;
  }
};

namespace {

compiler_context& shared_context() {
  static compiler_context context;
  return context;
}

}  // namespace

loaded_kernel::loaded_kernel(const module& fusion, const target_row& target, const kernel_configuration& configuration,
                             finalize_trace* trace)
    : session_(std::make_unique<session>()) {
  for (value v : fusion.outputs()) open_outputs_.push_back(v.type());
  outputs_ = open_outputs_;
  auto bytes = write_kernel(fusion, "tested");
  native_ = finalize(portable_kernel::parse(shared_context(), bytes), target, configuration, trace);
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    return llvm::InitializeNativeTargetAsmPrinter();
  }();
  (void)initialized;
  session_->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  session_->jit->getMainJITDylib().addGenerator(
      llvm::cantFail(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          session_->jit->getDataLayout().getGlobalPrefix())));
  llvm::StringRef object(reinterpret_cast<const char*>(native_.object.data()), native_.object.size());
  llvm::cantFail(session_->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, "tested")));
  for (const launch& l : native_.launches)
    session_->functions.push_back({llvm::cantFail(session_->jit->lookup(l.symbol)).toPtr<host_kernel::entry>()});
}

loaded_kernel::~loaded_kernel() = default;

void loaded_kernel::set_sizes(const dim_bindings& sizes) {
  sizes_ = at_sizes(native_, sizes);
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = open_outputs_[i].substitute(sizes);
}

void loaded_kernel::execute(const buffers& b, std::int64_t pieces, bool prepare) const {
  for (std::size_t i = 0; i < native_.launches.size(); ++i) {
    const launch& l = native_.launches[i];
    if (l.prepare && !prepare) continue;
    auto arguments = b.arguments(l);
    std::int64_t parts = std::clamp<std::int64_t>(pieces, 1, std::max<std::int64_t>(1, l.grid));
    for (std::int64_t p = parts; p-- > 0;)
      session_->functions[i](arguments.data(), l.grid * p / parts, l.grid * (p + 1) / parts);
  }
}

namespace {

std::vector<std::byte> filled(std::size_t size) {
  return std::vector<std::byte>(std::max<std::size_t>(size, 1), std::byte{0xff});
}

}  // namespace

std::vector<literal> loaded_kernel::run(std::span<const literal> inputs, std::int64_t pieces) const {
  buffers b;
  b.sizes = &sizes_;
  for (const literal& input : inputs) b.inputs.emplace_back(input.bytes().begin(), input.bytes().end());
  for (const shape& s : outputs_) b.outputs.push_back(filled(s.bytes() + 64));
  for (const scratch_buffer& s : native_.scratch) b.scratch.push_back(filled(static_cast<std::size_t>(s.bytes)));
  execute(b, pieces);
  std::vector<literal> results;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    for (std::size_t k = outputs_[i].bytes(); k < b.outputs[i].size(); ++k)
      EXPECT_EQ(b.outputs[i][k], std::byte{0xff}) << "output " << i << " written past its end";
    b.outputs[i].resize(outputs_[i].bytes());
    results.emplace_back(outputs_[i], std::move(b.outputs[i]));
  }
  return results;
}

std::function<void()> loaded_kernel::prepared(std::span<const literal> inputs) const {
  auto b = std::make_shared<buffers>();
  b->sizes = &sizes_;
  for (const literal& input : inputs) b->inputs.emplace_back(input.bytes().begin(), input.bytes().end());
  for (const shape& s : outputs_) b->outputs.push_back(filled(s.bytes()));
  for (const scratch_buffer& s : native_.scratch) b->scratch.push_back(filled(static_cast<std::size_t>(s.bytes)));
  execute(*b, 1);
  return [this, b] { execute(*b, 1, /*prepare=*/false); };
}

tolerance default_tolerance(element_type type) {
  switch (type) {
    case element_type::f64: return {1e-12, 1e-13};
    case element_type::f16: return {4e-3, 2e-3};
    case element_type::bf16: return {3e-2, 2e-2};
    default: return {2e-5, 2e-6};
  }
}

void expect_close(const literal& actual, const literal& expected, tolerance allowed, const std::string& what) {
  ASSERT_EQ(actual.type(), expected.type()) << what;
  std::int64_t count = actual.type().element_count(), wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < count; ++i) {
    bool good;
    if (is_float(actual.type().type)) {
      double a = actual.at(i), e = expected.at(i);
      good = a == e || (std::isnan(a) && std::isnan(e)) ||
             std::abs(a - e) <= allowed.absolute + allowed.relative * std::abs(e);
    } else {
      good = actual.at_int(i) == expected.at_int(i);
    }
    if (!good && wrong++ == 0)
      first = "element " + std::to_string(i) + " is " + std::to_string(actual.at(i)) + ", expected " +
              std::to_string(expected.at(i));
  }
  EXPECT_EQ(wrong, 0) << what << ": " << wrong << " of " << count << " elements differ, " << first;
}

literal random_literal(const shape& s, std::mt19937& random, double scale) {
  std::vector<double> numbers(static_cast<std::size_t>(s.element_count()));
  std::normal_distribution<double> normal(0, scale);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (double& n : numbers) {
    if (is_float(s.type)) n = normal(random);
    else if (s.type == element_type::boolean) n = uniform(random) > 0;
    else
      n = std::floor(is_unsigned_integer(s.type) ? (uniform(random) + 1) * 10 * scale : uniform(random) * 10 * scale);
  }
  return literal::from_doubles(s, numbers);
}

namespace {

// Compares one kernel with the reference, in one call and with its grid split.
void expect_right(const loaded_kernel& kernel, const module& fusion, std::span<const literal> inputs,
                  const std::vector<literal>& expected, std::optional<tolerance> allowed, const std::string& target) {
  auto whole = kernel.run(inputs);
  ASSERT_EQ(whole.size(), expected.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    expect_close(whole[i], expected[i], allowed.value_or(default_tolerance(expected[i].type().type)),
                 target + " output " + std::to_string(i) + "\n" + fusion.str());
  for (std::int64_t pieces : {3, 64}) {
    auto split = kernel.run(inputs, pieces);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(split[i] == whole[i]) << target << ": output " << i << " depends on how the grid is split\n"
                                        << fusion.str();
  }
}

}  // namespace

void check(const module& fusion, std::span<const literal> inputs, std::optional<tolerance> allowed) {
  auto expected = evaluate(fusion, inputs);
  for (const target_row& target : runnable_targets())
    expect_right(loaded_kernel(fusion, target), fusion, inputs, expected, allowed, target.name);
}

namespace {

// `sizes`, and the first and last of them with each dimension and all dimensions 0, where the program allows these.
std::vector<dim_bindings> with_empty(const program& p, const std::vector<dim_bindings>& sizes) {
  std::vector<dim_bindings> result = sizes;
  const auto add = [&](const dim_bindings& at) {
    try {
      p.bind(at);
    } catch (const error&) {
      return;
    }
    result.push_back(at);
  };
  for (const dim_bindings& from : {sizes.front(), sizes.back()}) {
    dim_bindings all = from;
    for (const auto& [symbol, size] : from) {
      dim_bindings one = from;
      one[symbol] = all[symbol] = 0;
      add(one);
    }
    if (from.size() > 1) add(all);
  }
  return result;
}

}  // namespace

void check_open(const std::vector<shape>& inputs,
                const std::function<std::vector<value>(module&, const std::vector<value>&)>& build,
                const std::vector<dim_bindings>& sizes, double scale, std::optional<tolerance> allowed) {
  const auto open = fusion(inputs, build);
  program p;
  std::vector<value> parameters;
  for (const shape& s : inputs)
    parameters.push_back(p.main().add_parameter("input" + std::to_string(parameters.size()), s));
  const auto outputs = build(p.main(), parameters);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("output" + std::to_string(i));
  p.main().set_outputs(outputs, names);
  for (const auto& [symbol, size] : sizes.front()) p.symbols[symbol] = {0, 1 << 20, {}};
  for (const target_row& target : runnable_targets()) {
    loaded_kernel kernel(*open, target);
    for (const dim_bindings& at : with_empty(p, sizes)) {
      const program bound = p.bind(at);
      std::mt19937 random(7);
      std::vector<literal> data;
      for (value v : bound.main().parameters()) data.push_back(random_literal(v.type(), random, scale));
      kernel.set_sizes(at);
      expect_right(kernel, bound.main(), data, evaluate(bound.main(), data), allowed, target.name);
    }
  }
}

void check(const module& fusion, unsigned seed, double scale, std::optional<tolerance> allowed) {
  std::mt19937 random(seed);
  std::vector<literal> inputs;
  for (value p : fusion.parameters()) inputs.push_back(random_literal(p.type(), random, scale));
  check(fusion, inputs, allowed);
}

std::unique_ptr<module> fusion(const std::vector<shape>& inputs,
                               const std::function<std::vector<value>(module&, const std::vector<value>&)>& build) {
  auto m = std::make_unique<module>("tested");
  std::vector<value> parameters;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    parameters.push_back(m->add_parameter("input" + std::to_string(i), inputs[i]));
  auto outputs = build(*m, parameters);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("output" + std::to_string(i));
  m->set_outputs(outputs, names);
  return m;
}

}  // namespace kiln::test
