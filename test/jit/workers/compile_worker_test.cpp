// Compiling in a worker process gives the same bytes, candidates, texts and errors as in this process.
#include "jit/compile_worker.hpp"

#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/emit.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;

class compile_worker : public ::testing::Test {
 protected:
  compile_worker() {
    module fusion("kernel");
    value product = fusion.add(dot{}, {fusion.add_parameter("a", inputs_[0]), fusion.add_parameter("b", inputs_[1])});
    fusion.set_outputs({fusion.add(elementwise{scalar_function::tanh}, {product})}, {"y"});
    payload_ = write_kernel(fusion, "kernel");
  }

  compile_request request(const target_row& target) const { return {payload_, inputs_, outputs_, target}; }

  std::string message_of(const compile_request& r, error_kind kind) {
    try {
      compile_in_worker(workers_, r);
    } catch (const error& e) {
      EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::vector<shape> inputs_{{element_type::f32, {64, 96}}, {element_type::f32, {96, 64}}},
      outputs_{{element_type::f32, {64, 64}}};
  std::vector<std::byte> payload_;
  worker_pool workers_{{.arguments = {KILN_TEST_WORKER, compile_worker_argument}}};
};

TEST_F(compile_worker, gives_the_same_bytes_as_this_process) {
  for (const char* name : {"x86-64-v3", "native", "gfx942", "sm_90"}) {
    const target_row target = find_target(name);
    compiler_context context;
    auto here = compile_kernel(portable_kernel::parse(context, payload_), inputs_, outputs_, target);
    EXPECT_EQ(compile_in_worker(workers_, request(target)), here) << name;
    EXPECT_EQ(compile_in_worker(workers_, request(target)), here) << name << ", from the kernel that the worker kept";
  }
}

TEST_F(compile_worker, a_processor_of_another_machine_travels_whole) {
  target_row other = find_target("x86-64-v3");
  other.name = "native";
  other.processor = "znver3";
  compiler_context context;
  EXPECT_EQ(compile_in_worker(workers_, request(other)),
            compile_kernel(portable_kernel::parse(context, payload_), inputs_, outputs_, other));
}

TEST_F(compile_worker, candidates_are_those_of_this_process) {
  for (const char* name : {"x86-64-v3", "gfx942"}) {
    const target_row target = find_target(name);
    compiler_context context;
    portable_kernel kernel = portable_kernel::parse(context, payload_);
    kernel.specialize(inputs_, outputs_);
    auto here = candidate_configurations(kernel, target, tuning_effort::quick);
    EXPECT_GT(here.size(), 1u);
    EXPECT_EQ(candidates_in_worker(workers_, request(target), tuning_effort::quick), here) << name;
    compile_request last = request(target);
    last.configuration = here.back();
    EXPECT_EQ(compile_in_worker(workers_, last), compile_specialized(kernel.clone(), target, here.back())) << name;
  }
}

TEST_F(compile_worker, texts_are_those_of_this_process) {
  const target_row target = find_target("x86-64-v3");
  for (const char* form : {"mlir", "llvm", "asm"})
    EXPECT_EQ(text_in_worker(workers_, request(target), form), emit_code(payload_, inputs_, target, form)) << form;
  EXPECT_THROW(text_in_worker(workers_, request(target), "spirv"), error);
}

TEST_F(compile_worker, errors_of_the_compiler_are_passed_on) {
  const target_row target = find_target("x86-64-v3");
  payload_.resize(20);
  message_of(request(target), error_kind::corrupted);
  payload_.clear();
  message_of(request(target), error_kind::corrupted);
}

TEST_F(compile_worker, shapes_that_do_not_fit_are_passed_on) {
  const target_row target = find_target("x86-64-v3");
  inputs_[0].dims = {64, 97};
  EXPECT_THAT(message_of(request(target), error_kind::invalid_model), HasSubstr("97"));
}

}  // namespace
}  // namespace kiln::test
