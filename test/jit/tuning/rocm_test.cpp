// HIP's own finalizer as a candidate of the tuner. The stand-in HIP accepts offload bundles, refuses them, or is too
// old for them.
#include "jit/rocm_candidate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ir/error.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/targets.hpp"
#include "jit/tuning/device_class.hpp"
#include "jit/tuning/tuner.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "test/runtime/gpu/stand_in_driver.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

// One workgroup: the stand-in's kernel writes as many elements as there are work items.
constexpr std::int64_t elements = 256;
constexpr int hip_6_4 = 60443483, hip_7_0 = 70051831, hip_6_3 = 60342134;

// The kernel passes numbers by value, which native launches do not support.
constexpr const char* source = R"(
#include <hip/hip_runtime.h>
extern "C" __global__ void twice(const float* x, float* y, int64_t n, float factor) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
KILN_OPERATOR("test", "Twice")
KILN_OUTPUT(0, float32, same_as(input0))
KILN_LAUNCH(twice, per_element(elements(output0)), input0, output0, elements(output0), 2.0)
)";

program twice_program() {
  static const std::vector<std::byte> payload = serialize(spirv::compile_hip(source, "twice.hip").operators.at(0));
  program p;
  shape type{element_type::f32, {elements}};
  value x = p.main().add_parameter("x", type);
  p.main().set_outputs(
      {p.main().add(code_object::make("twice", code_format::amdgcnspirv, p.add_kernel(payload), "", {type}), {x})},
      {"y"});
  return p;
}

class rocm_test : public ::testing::Test {
 protected:
  void SetUp() override {
    control.reset();
    cache_options c;
    c.folder = folder / "cache";
    cache = kernel_cache::open(c);
    jit.target = find_target("gfx942");
    jit.cache = cache.get();
    options.effort = tuning_effort::quick;
    options.compile = [this](const kernel_group& g, const kernel_configuration& configuration) {
      return configuration.empty() ? ours() : kernel_compiler(source_program, jit).compile(g, configuration);
    };
    open(hip_6_4);
  }
  void TearDown() override {
    device.reset();
    EXPECT_EQ(control.live(), 0u) << control.live_names();
    EXPECT_EQ(control.late_uses(), 0u);
    control.reset();
  }
  // The state of a process that finds this HIP.
  void open(int version) {
    device.reset();
    control.set_version(version);
    device = open_stand_in(stand_ins[0]);
    jit.rocm = rocm_finalizer(device->info().driver_version);
    records = std::make_unique<tuning_records>(
        tuning_records_options{.folder = cache->folder(),
                               .device_class = device_class(device->info(), jit.target),
                               .compiler = this_compiler(target_family::amdgpu)});
  }
  // Returns the object that our finalizer would make, in the stand-in's form, as slow as requested.
  native_bytes ours() const {
    native_kernel kernel = *rocm_candidate(source_program.kernel(content_hash::from_hex(group().portable.payload)),
                                           group().inputs, group().outputs, jit.target);
    kernel.object = module_text();
    kernel.launches.assign(static_cast<std::size_t>(slowness), kernel.launches.front());
    return std::make_shared<const std::vector<std::byte>>(serialize(kernel));
  }
  const kernel_group& group() const { return groups.list.at(0); }
  kernel_tuning tune() { return tuner(source_program, device, jit, records.get(), options).tune(0, INFINITY); }

  kiln::testing::scratch_folder folder;
  const stand_in::control& control = control_of(stand_ins[0]);
  program source_program = twice_program();
  kernel_groups groups = group_code_objects(source_program);
  std::shared_ptr<gpu_device> device;
  std::unique_ptr<kernel_cache> cache;
  std::unique_ptr<tuning_records> records;
  jit_options jit;
  tuner_options options;
  int slowness = 200;
};

const candidate_result* rocm_result(const tuning_session& s) {
  auto found =
      std::ranges::find_if(s.candidates, [](const candidate_result& c) { return chosen_rocm(c.configuration) != 0; });
  return found == s.candidates.end() ? nullptr : &*found;
}

}  // namespace

TEST(rocm_versions, from_6_4_on) {
  EXPECT_EQ(rocm_finalizer("6.4.43483"), 60443483);
  EXPECT_EQ(rocm_finalizer("7.0.51831"), 70051831);
  EXPECT_EQ(rocm_finalizer("6.4.0"), 60400000);
  for (const char* none : {"6.3.42134", "5.7.22804", "12.8", "6.4", "6.4.1.2", "6.4.x", "-6.4.1", "", "6.400000.1"})
    EXPECT_EQ(rocm_finalizer(none), 0) << none;
}

TEST_F(rocm_test, hips_code_wins_and_the_next_process_takes_it_without_compiling) {
  kernel_tuning t = tune();
  ASSERT_EQ(t.outcome, kernel_tuning::state::tuned) << t.reason;
  EXPECT_EQ(t.session.candidates.size(), 2u);
  EXPECT_EQ(t.session.winner, (kernel_configuration{{"rocm", hip_6_4}}))
      << to_text({identify(t.payload, {}, {}, ""), {t.session}});
  EXPECT_EQ(t.session.error, 0);
  EXPECT_EQ(tune().outcome, kernel_tuning::state::known);

  open(hip_6_4);
  jit.records = records.get();
  jit.only_if_cached = true;
  jit_report report;
  program native = compile_bytecode(source_program, jit, &report);
  EXPECT_EQ(report.kernels[0].configuration, t.session.winner);
  EXPECT_EQ(report.misses, 0u);
  std::vector<float> x(elements);
  std::iota(x.begin(), x.end(), 1.0f);
  literal y = load(native, *device).evaluate(std::vector{literal::of(shape{element_type::f32, {elements}}, x)}).at(0);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.as<float>()[i], 2 * x[i]);
}

TEST_F(rocm_test, another_hip_does_not_run_it_and_a_new_one_is_tried) {
  ASSERT_FALSE(tune().session.winner.empty());
  kernel_compiler(source_program, jit).keep(group(), {}, ours());
  open(hip_6_3);
  jit.records = records.get();
  EXPECT_EQ(jit.rocm, 0);
  jit_report report;
  compile_bytecode(source_program, jit, &report);
  EXPECT_TRUE(report.kernels[0].configuration.empty());
  // There is nothing new to choose from.
  EXPECT_EQ(tune().outcome, kernel_tuning::state::known);

  open(hip_7_0);
  jit.records = records.get();
  compile_bytecode(source_program, jit, &report);
  EXPECT_TRUE(report.kernels[1].configuration.empty());
  kernel_tuning again = tune();
  EXPECT_EQ(again.outcome, kernel_tuning::state::tuned);
  EXPECT_EQ(again.session.generation, 2);
  EXPECT_EQ(again.session.winner, (kernel_configuration{{"rocm", hip_7_0}}));
}

TEST_F(rocm_test, a_refusal_is_recorded_with_its_reason_and_the_default_stays) {
  // The first module is that of the default configuration.
  control.fail("hipModuleLoadData", 2, 209);
  kernel_tuning t = tune();
  ASSERT_EQ(t.outcome, kernel_tuning::state::tuned) << t.reason;
  EXPECT_TRUE(t.session.winner.empty());
  EXPECT_FALSE(t.winner);
  const candidate_result* refused = rocm_result(t.session);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->outcome, candidate_outcome::launch_failed);
  EXPECT_THAT(refused->reason, ::testing::HasSubstr("loading a kernel"));
  EXPECT_EQ(tune().outcome, kernel_tuning::state::known);
}

TEST_F(rocm_test, an_older_hip_is_not_asked) {
  open(hip_6_3);
  EXPECT_FALSE(rocm_result(tune().session));
  EXPECT_EQ(control.calls("hipModuleLoadData"), 0u);
}

TEST_F(rocm_test, it_is_timed_and_checked_beside_ours) {
  slowness = 1;
  const candidate_result* timed = nullptr;
  kernel_tuning t = tune();
  ASSERT_TRUE(timed = rocm_result(t.session));
  EXPECT_EQ(timed->outcome, candidate_outcome::measured) << timed->reason;
  EXPECT_GT(timed->samples, 0);
}

TEST_F(rocm_test, a_damaged_bundle_never_reaches_the_driver) {
  native_kernel kernel =
      deserialize_native_kernel(*kernel_compiler(source_program, jit).compile(group(), {{"rocm", hip_6_4}}));
  const std::vector<std::byte> sound = kernel.object;
  auto loaded = [&](const native_kernel& k) { return device->load(std::vector{&k}); };
  EXPECT_TRUE(loaded(kernel)->find(0, "twice").function);
  const std::size_t calls = control.calls("hipModuleLoadData");
  for (std::size_t bytes : {std::size_t{24}, std::size_t{31}, std::size_t{40}, std::size_t{100}, sound.size() - 1}) {
    kernel.object.assign(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_THROW(loaded(kernel), error) << bytes;
  }
  EXPECT_EQ(control.calls("hipModuleLoadData"), calls);
}

TEST_F(rocm_test, without_that_hip_its_configuration_is_refused_by_name) {
  jit.rocm = 0;
  jit.configuration = {{"rocm", hip_6_4}};
  try {
    compile_bytecode(source_program, jit);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("HIP 60443483"));
  }
}
