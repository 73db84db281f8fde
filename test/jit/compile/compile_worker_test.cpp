// Compiling in a worker: the same bytes as here, the worker's errors as if they were ours, and workers that misbehave.
#include "jit/compile_worker.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kernel_bytecode.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;

compile_request request_for(const std::string& target) {
  shape a{element_type::f32, {5, 9}}, b{element_type::f32, {9, 4}};
  module cluster("kernel");
  value product = cluster.add(dot{}, {cluster.add_parameter("a", a), cluster.add_parameter("b", b)});
  cluster.set_outputs({cluster.add(elementwise{scalar_function::tanh}, {product})}, {"y"});
  return {write_kernel(cluster, "kernel"), {a, b}, {{element_type::f32, {5, 4}}}, target, {}};
}

class compile_worker : public ::testing::Test {
 protected:
  // An executable that ignores its arguments and runs a shell script.
  std::string script(const std::string& body) {
    std::string path = (folder_.path() / "worker").string();
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  std::string message_of(const compile_request& request, error_kind kind, const std::string& executable, const child_limits& limits = {}) {
    try {
      compile_in_worker(request, limits, executable);
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  // The answer that a worker gives to `bytes`, as a worker that gives it.
  std::string worker_that_answers(std::span<const std::byte> answer) {
    std::string file = (folder_.path() / "answer").string();
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(answer.data()), static_cast<std::streamsize>(answer.size()));
    return script("cat >/dev/null; cat " + file);
  }

  // What compile_in_worker sends.
  std::vector<std::byte> bytes_of(const compile_request& request) {
    std::string file = (folder_.path() / "request").string();
    EXPECT_THROW(compile_in_worker(request, {}, script("cat >" + file)), error);
    std::ifstream in(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return {data, data + text.size()};
  }

  testing::scratch_folder folder_;
};

TEST_F(compile_worker, gives_the_same_bytes_as_this_process) {
  for (const char* target : {"x86-64-v3", "native"}) {
    compile_request request = request_for(target);
    compiler_context context;
    auto here = compile_kernel(portable_kernel::parse(context, request.payload), request.inputs, request.outputs, find_target(target));
    EXPECT_EQ(compile_in_worker(request, {}, worker_that_answers(answer_compile_request(bytes_of(request)))), here);
  }
}

TEST_F(compile_worker, errors_of_the_compile_are_passed_on) {
  auto request = request_for("no-such-target");
  EXPECT_THAT(message_of(request, error_kind::usage, worker_that_answers(answer_compile_request(bytes_of(request)))), HasSubstr("no-such-target"));
  request = request_for("native");
  request.payload.resize(20);
  message_of(request, error_kind::corrupted, worker_that_answers(answer_compile_request(bytes_of(request))));
  request = request_for("native");
  request.inputs[0].dims = {5, 10};
  message_of(request, error_kind::invalid_model, worker_that_answers(answer_compile_request(bytes_of(request))));
  message_of(request, error_kind::corrupted, worker_that_answers(answer_compile_request({})));
}

TEST_F(compile_worker, misbehaving_workers_are_typed_errors) {
  auto request = request_for("native");
  EXPECT_THAT(message_of(request, error_kind::compile_failed, script("echo 'LLVM ERROR: Cannot select' >&2; kill -ABRT $$")), HasSubstr("LLVM ERROR: Cannot select"));
  message_of(request, error_kind::timed_out, script("sleep 100"), {.time = std::chrono::milliseconds(200)});
  EXPECT_THAT(message_of(request, error_kind::compile_failed, script("cat >/dev/null; head -c 5000 /dev/urandom")), HasSubstr("no sense"));
  EXPECT_THAT(message_of(request, error_kind::compile_failed, script("cat >/dev/null")), HasSubstr("0 bytes"));
  auto answer = answer_compile_request(bytes_of(request));
  message_of(request, error_kind::compile_failed, worker_that_answers(std::span(answer).first(answer.size() / 2)));
}

TEST_F(compile_worker, requests_that_end_early_are_answered) {
  auto request = bytes_of(request_for("native"));
  for (std::size_t size = 0; size < request.size(); size += 7)
    EXPECT_THAT(message_of(request_for("native"), error_kind::corrupted, worker_that_answers(answer_compile_request(std::span(request).first(size)))), HasSubstr("no compile request"));
}

}  // namespace
}  // namespace kiln::test
