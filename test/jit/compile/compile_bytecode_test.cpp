// Compiling a program of portable kernels to one of native kernels: grouping, cache, compilation, refusals.
#include "jit/compile_bytecode.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/deadline.hpp"
#include "jit/prepared_cache.hpp"
#include "jit/targets.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "test/support/host_row.hpp"

using namespace kiln;

namespace {

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = normal(engine);
  return literal::from_doubles(type, values);
}

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

value dense(module& m, value x, std::int64_t in, std::int64_t out, unsigned seed) {
  value w = m.add_constant(random(f32({in, out}), seed));
  return m.add(elementwise{scalar_function::tanh}, {m.add(dot{}, {x, w})});
}

// Two equal layers (one kernel), one layer of another shape, and an If whose branches contain kernels.
program model() {
  program p;
  module& yes = p.add_module("then");
  yes.set_outputs({yes.add(softmax{1}, {yes.add_parameter("x", f32({5, 9}))})}, {"y"});
  module& no = p.add_module("else");
  no.set_outputs({no.add(elementwise{scalar_function::exp}, {no.add_parameter("x", f32({5, 9}))})}, {"y"});
  module& m = p.main();
  value x = m.add_parameter("x", f32({5, 33}));
  value flag = m.add_parameter("flag", {element_type::boolean, {}});
  value h = dense(m, dense(m, x, 33, 33, 1), 33, 33, 2);
  m.set_outputs({m.add(if_else{}, {flag, dense(m, h, 33, 9, 3)}, {&yes, &no})}, {"y"});
  p.validate();
  return p;
}

double distance(const literal& a, const literal& b) {
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < a.type().element_count(); ++i) {
    if (!std::isfinite(a.at(i))) return INFINITY;
    error += (a.at(i) - b.at(i)) * (a.at(i) - b.at(i));
    norm += b.at(i) * b.at(i);
  }
  return std::sqrt(error / norm);
}

class compile_bytecode_test : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("kiln_jit_test_" + std::to_string(getpid()) + "_" +
                                                       testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
    cache_options options;
    options.folder = folder;
    cache = kernel_cache::open(options);
    portable = compile(model());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  jit_options options(const target_row& target = find_target(test::host_row)) {
    jit_options o;
    o.target = target;
    o.cache = cache.get();
    return o;
  }

  std::filesystem::path folder;
  std::unique_ptr<kernel_cache> cache;
  program portable;
};

}  // namespace

TEST_F(compile_bytecode_test, every_module_becomes_native) {
  program native = compile_bytecode(portable, options());
  std::size_t found = 0, in_bodies = 0;
  for (const module& m : native.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) {
        EXPECT_EQ(c->format, code_format::native);
        EXPECT_EQ(c->target, test::host_row);
        EXPECT_NO_THROW(native.kernel(content_hash::from_hex(c->payload)));
        ++found;
        in_bodies += &m != &native.main();
      }
  EXPECT_GE(found, 5u);
  EXPECT_GE(in_bodies, 2u);
  // The portable program must not have changed.
  for (const module& m : portable.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) {
        EXPECT_EQ(c->format, code_format::mlir_bytecode);
      }
}

TEST_F(compile_bytecode_test, equal_kernels_are_compiled_once_and_then_cached) {
  jit_report cold, warm;
  program first = compile_bytecode(portable, options(), &cold);
  EXPECT_EQ(cold.hits, 0u);
  EXPECT_EQ(cold.misses, cold.kernels.size());
  int occurrences = 0, most = 0;
  for (const kernel_report& k : cold.kernels) occurrences += k.occurrences, most = std::max(most, k.occurrences);
  EXPECT_GT(occurrences, static_cast<int>(cold.kernels.size()));
  EXPECT_EQ(most, 2);
  program second = compile_bytecode(portable, options(), &warm);
  EXPECT_EQ(warm.misses, 0u);
  EXPECT_EQ(warm.hits, cold.misses);
  EXPECT_EQ(first.str(), second.str());
}

// Kernels of the device's family are used where the cache has none of its own, and never in their place.
TEST_F(compile_bytecode_test, generic_kernels_stand_in_for_missing_ones) {
  auto targets_of = [](const program& p) {
    std::set<std::string> found;
    for (const instruction& i : p.main().instructions())
      if (const auto* c = i.op().get_if<code_object>()) found.insert(c->target);
    return found;
  };
  jit_options exact = options(find_target("gfx1151"));
  exact.family = find_target("gfx11-generic");
  exact.only_if_cached = true;
  EXPECT_THROW(compile_bytecode(portable, exact), error);
  compile_bytecode(portable, options(*exact.family));
  jit_report report;
  EXPECT_EQ(targets_of(compile_bytecode(portable, exact, &report)), std::set<std::string>{"gfx11-generic"});
  EXPECT_EQ(report.misses, 0u);
  compile_bytecode(portable, options(exact.target));
  EXPECT_EQ(targets_of(compile_bytecode(portable, exact, &report)), std::set<std::string>{"gfx1151"});
}

TEST_F(compile_bytecode_test, every_row_that_runs_here_agrees_with_the_reference) {
  program reference = model();
  host_device device;
  for (const target_row& row : targets()) {
    // Every row can be finalized, even if this machine cannot run it.
    program native = compile_bytecode(portable, options(row));
    if (!runs_here(row)) {
      std::printf("%s cannot run on this machine: finalized only\n", row.name.c_str());
      continue;
    }
    executable exe = load(native, device);
    for (bool flag : {false, true}) {
      std::vector<literal> inputs{random(f32({5, 33}), 7), literal::scalar(element_type::boolean, flag)};
      EXPECT_LT(distance(exe.evaluate(inputs)[0], evaluate(reference.main(), inputs)[0]), 1e-5) << row.name;
    }
  }
}

TEST_F(compile_bytecode_test, packed_weights_come_from_the_cache_the_second_time) {
  program p;
  module& m = p.main();
  m.set_outputs({dense(m, m.add_parameter("x", f32({40, 128})), 128, 96, 1)}, {"y"});
  program native = compile_bytecode(compile(p.clone()), options());
  host_device device;
  auto store = make_prepared_store(*cache);
  executable first = load(native, device, {.store = store.get()});
  executable second = load(native, device, {.store = store.get()});
  ASSERT_GT(first.plan().report.prepared_bytes, 0u);
  EXPECT_GT(first.plan().report.prepared_made, 0u);
  EXPECT_EQ(second.plan().report.prepared_made, 0u);
  EXPECT_EQ(second.plan().report.prepared_found, first.plan().report.prepared_made);
  std::vector<literal> inputs{random(f32({40, 128}), 7)};
  EXPECT_EQ(first.evaluate(inputs)[0], second.evaluate(inputs)[0]);
  EXPECT_LT(distance(first.evaluate(inputs)[0], evaluate(p.main(), inputs)[0]), 1e-5);
}

TEST_F(compile_bytecode_test, programs_that_are_loaded_together_map_packed_weights_once) {
  auto store = make_prepared_store(*cache);
  const content_hash key = blake3(std::string_view("key"));
  store->store(key, {std::as_bytes(std::span("packed weights")), nullptr});
  auto first = store->find(key), second = store->find(key);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes.data(), second->bytes.data());
  first.reset();
  EXPECT_EQ(store->find(key)->bytes.data(), second->bytes.data());
  second.reset();
  EXPECT_TRUE(store->find(key)) << "the last user has gone: it is mapped again";
}

TEST_F(compile_bytecode_test, only_if_cached_refuses_to_compile) {
  jit_options o = options();
  o.only_if_cached = true;
  try {
    compile_bytecode(portable, o);
    FAIL() << "compiled";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::not_cached);
  }
  compile_bytecode(portable, options());
  EXPECT_NO_THROW(compile_bytecode(portable, o));
}

TEST_F(compile_bytecode_test, the_key_names_who_assembled) {
  jit_options o = options();
  o.driver = "first", o.second_driver = "second";
  std::string by;
  o.assemble = [&](std::span<const std::byte> object) { return assembled_object{{object.begin(), object.end()}, by}; };
  o.threads = 1;
  jit_report report;
  auto entries_of = [&](const std::string& driver) {
    std::size_t found = 0;
    for (const wanted_kernel& w : wanted_kernels(portable, o.target, driver)) found += cache->find(w.key).has_value();
    return found;
  };
  compile_bytecode(portable, o, &report);  // by nobody who is named: the next process tries again
  const std::size_t kernels = report.misses;
  EXPECT_EQ(report.hits, 0u);
  EXPECT_EQ(entries_of("first") + entries_of("second") + entries_of(""), 0u);
  by = "second";
  compile_bytecode(portable, o, &report);
  EXPECT_EQ(report.misses, kernels);
  EXPECT_EQ(entries_of("first"), 0u);
  EXPECT_EQ(entries_of("second"), kernels);
  compile_bytecode(portable, o, &report);
  EXPECT_EQ(report.hits, kernels) << "what the second driver made is a hit";
  o.second_driver = "another version";
  by = "first";
  compile_bytecode(portable, o, &report);
  EXPECT_EQ(report.misses, kernels);
  EXPECT_EQ(entries_of("first"), kernels);
}

TEST_F(compile_bytecode_test, entries_that_are_no_kernels_are_compiled_again) {
  auto wanted = wanted_kernels(portable, find_target(test::host_row));
  cache->store(wanted.at(0).key, std::vector<std::byte>(100, std::byte{7}));
  jit_report report;
  compile_bytecode(portable, options(), &report);
  EXPECT_EQ(report.misses, report.kernels.size());
  jit_report again;
  compile_bytecode(portable, options(), &again);
  EXPECT_EQ(again.misses, 0u);
}

TEST_F(compile_bytecode_test, open_dimensions_and_missing_payloads_are_refused) {
  program open;
  open.symbols["batch"] = {};
  module& m = open.main();
  m.set_outputs({m.add(elementwise{scalar_function::exp}, {m.add_parameter("x", f32({dim::symbol("batch"), 3}))})},
                {"y"});
  program compiled = compile(std::move(open));
  EXPECT_THROW(compile_bytecode(compiled, options()), error);
  jit_report three, four;
  compile_bytecode(compiled.bind({{"batch", 3}}), options(), &three);
  compile_bytecode(compiled.bind({{"batch", 4}}), options(), &four);
  // The same payload for another shape is another kernel.
  EXPECT_EQ(four.misses, 1u);

  program broken;
  value x = broken.main().add_parameter("x", f32({3}));
  broken.main().set_outputs(
      {broken.main().add(code_object::make("ghost", code_format::mlir_bytecode, blake3("nothing"), "", {f32({3})}),
                         {x})},
      {"y"});
  EXPECT_THROW(compile_bytecode(broken, options()), error);
}

TEST_F(compile_bytecode_test, a_compile_past_its_limit_names_the_kernel) {
  jit_options o = options();
  o.kernel_limit = std::chrono::milliseconds(0);
  o.threads = 1;
  try {
    compile_bytecode(portable, o);
    FAIL() << "finished in no time";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::timed_out);
    EXPECT_NE(std::string(e.what()).find("kernel '"), std::string::npos);
  }
  while (abandoned_calls() > 0)
    // The threads end by themselves; the process must not end before them.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(targets, rows_are_complete_and_distinct) {
  std::set<std::string> names, descriptions;
  for (const target_row& row : targets()) {
    EXPECT_FALSE(row.triple.empty() || row.processor.empty());
    EXPECT_GE(row.vector_bits, 128);
    EXPECT_GE(row.vector_registers, 16);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(descriptions.insert(describe(row)).second);
    EXPECT_EQ(find_target(row.name).processor, row.processor);
  }
  EXPECT_THROW(find_target("z80"), error);
  EXPECT_TRUE(runs_here(native_target()));
}
