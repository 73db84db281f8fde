// Every candidate of every kind of kernel can be finalized, its code differs from that of all others, and on this
// machine its results are correct.
#include "mlir_bridge/candidates.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "../../mlir_bridge/cpu/harness.hpp"
#include "ir/error.hpp"
#include "jit/targets.hpp"
#include "kernels.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

std::string str(const kernel_configuration& configuration) {
  std::string text;
  for (const auto& [name, number] : configuration) text += name + "=" + std::to_string(number) + " ";
  return text.empty() ? "(default)" : text;
}

// The long form: KILN_EFFORT=full or exhaustive in the environment tests all targets (minutes to hours).
tuning_effort wanted_effort() {
  tuning_effort effort = tuning_effort::quick;
  if (const char* text = std::getenv("KILN_EFFORT")) {
    EXPECT_TRUE(parse_enum(text, effort)) << text;
  }
  return effort;
}

portable_kernel portable(const module& fusion) {
  static const compiler_context context;
  return portable_kernel::parse(context, write_kernel(fusion, "kernel"));
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::vector<std::string> gpu_targets{"gfx942", "gfx1100", "gfx1201", "sm_90"};

// Tests each kernel on one of the targets in turn; the long form tests all of them.
TEST(candidates, of_gpus_finalize_and_differ) {
  std::size_t turn = 0;
  for (const named_kernel& kernel : kernels_of_every_kind()) {
    ++turn;
    for (std::size_t i = 0; i < gpu_targets.size(); ++i) {
      if (wanted_effort() == tuning_effort::quick && i != turn % gpu_targets.size()) continue;
      const target_row target = find_target(gpu_targets[i]);
      std::map<std::string, std::string> seen;
      for (const kernel_configuration& configuration :
           candidate_configurations(portable(*kernel.fusion), target, wanted_effort())) {
        SCOPED_TRACE(target.name + ", " + kernel.name + ": " + str(configuration));
        native_kernel native;
        ASSERT_NO_THROW(native = finalize(portable(*kernel.fusion), target, configuration));
        auto [other, fresh] = seen.emplace(text_of(serialize(native)), str(configuration));
        EXPECT_TRUE(fresh) << "the same code as " << other->second;
      }
    }
  }
}

TEST(candidates, of_the_host_differ_and_give_the_right_numbers) {
  for (const named_kernel& kernel : kernels_of_every_kind()) {
    std::mt19937 random(7);
    std::vector<literal> inputs;
    for (value p : kernel.fusion->parameters()) inputs.push_back(random_literal(p.type(), random, 0.5));
    const auto expected = evaluate(*kernel.fusion, inputs);
    std::map<std::string, std::string> seen;
    for (const kernel_configuration& configuration :
         candidate_configurations(portable(*kernel.fusion), native_target(), wanted_effort())) {
      const std::string what = kernel.name + ": " + str(configuration);
      const loaded_kernel loaded(*kernel.fusion, native_target(), configuration);
      auto [other, fresh] = seen.emplace(text_of(serialize(loaded.native())), str(configuration));
      EXPECT_TRUE(fresh) << what << " is the same code as " << other->second;
      for (std::int64_t pieces : {1, 3}) {
        const auto results = loaded.run(inputs, pieces);
        for (std::size_t i = 0; i < results.size(); ++i) {
          tolerance allowed = default_tolerance(expected[i].type().type);
          // Larger tolerances, because sums have hundreds of products.
          allowed.relative *= 4, allowed.absolute *= 50;
          expect_close(results[i], expected[i], allowed, what);
        }
      }
    }
  }
}

TEST(candidates, efforts_are_prefixes_of_each_other) {
  for (const named_kernel& kernel : kernels_of_every_kind()) {
    if (kernel.name != "map f32" && kernel.name != "softmax f16") continue;
    const target_row target = find_target("sm_90");
    std::vector<kernel_configuration> before;
    for (tuning_effort effort :
         {tuning_effort::off, tuning_effort::quick, tuning_effort::full, tuning_effort::exhaustive}) {
      const auto now = candidate_configurations(portable(*kernel.fusion), target, effort);
      ASSERT_FALSE(now.empty());
      EXPECT_TRUE(now[0].empty());
      ASSERT_GE(now.size(), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), now.begin())) << kernel.name;
      if (effort == tuning_effort::off) {
        EXPECT_EQ(now.size(), 1u);
      }
      if (effort == tuning_effort::quick) {
        EXPECT_LE(now.size(), 8u);
      }
      if (effort == tuning_effort::full) {
        EXPECT_LE(now.size(), 64u);
      }
      EXPECT_EQ(now, candidate_configurations(portable(*kernel.fusion), target, effort)) << kernel.name;
      before = now;
    }
    EXPECT_GT(before.size(), 8u) << kernel.name;
  }
}

TEST(candidates, of_what_has_no_code_are_refused_like_it) {
  const shape heads = typed(element_type::f64, {1, 2, 9, 8});
  auto m = fusion({heads, heads, heads},
                  [](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(attention{}, p)}; });
  EXPECT_THROW(candidate_configurations(portable(*m), find_target("sm_90"), tuning_effort::quick), error);
}

}  // namespace
}  // namespace kiln::test
