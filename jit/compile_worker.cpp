#include "jit/compile_worker.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <filesystem>

#include "ir/error_kinds.hpp"
#include "ir/native_kernel.hpp"
#include "jit/compile_answers.hpp"
#include "jit/compile_messages.hpp"
#include "jit/sandbox.hpp"
#include "jit/targets.hpp"
#include "jit/worker_host.hpp"

namespace kiln {
namespace {

using namespace compile_messages;

constexpr const char* remedy =
    "the file is damaged, or this is a fault of the compiler: fetch the file again, or compile the model again with "
    "this version";

auto write_shapes(flatbuffers::FlatBufferBuilder& builder, std::span<const shape> shapes) {
  std::vector<flatbuffers::Offset<schema::Shape>> offsets;
  for (const shape& s : shapes) {
    const auto type = static_cast<std::uint8_t>(s.type);
    if (s.is_static()) {
      offsets.push_back(schema::CreateShape(builder, type, builder.CreateVector(s.static_dims())));
      continue;
    }
    std::vector<std::string> texts;
    for (const dim& d : s.dims) texts.push_back(d.str());
    offsets.push_back(schema::CreateShape(builder, type, 0, builder.CreateVectorOfStrings(texts)));
  }
  return builder.CreateVector(offsets);
}

auto write_target(flatbuffers::FlatBufferBuilder& builder, const target_row& row) {
  auto name = builder.CreateString(row.name), triple = builder.CreateString(row.triple),
       processor = builder.CreateString(row.processor), features = builder.CreateString(row.features);
  auto description = builder.CreateString(describe(row));
  return schema::CreateTarget(builder, name, static_cast<std::uint8_t>(row.family), triple, processor, features,
                              row.vector_bits, row.vector_registers, row.l1_bytes, row.l2_bytes, description);
}

std::vector<std::byte> write_request(const compile_request& request, schema::Wanted wanted, tuning_effort effort = {},
                                     const std::string& form = "") {
  flatbuffers::FlatBufferBuilder builder(request.payload.size() + 4096);
  auto payload = write_bytes(builder, request.payload);
  auto inputs = write_shapes(builder, request.inputs), outputs = write_shapes(builder, request.outputs);
  auto target = write_target(builder, request.target);
  auto configuration = write_configuration(builder, request.configuration);
  builder.Finish(schema::CreateCompileRequest(builder, wanted, payload, inputs, outputs, target, configuration,
                                              static_cast<std::uint8_t>(effort), builder.CreateString(form)));
  return finished(builder);
}

// The response's bytes, verified; `root` reads them.
struct response {
  std::vector<std::byte> bytes;
  const schema::CompileResponse* root = nullptr;
};

worker_function prepare_answers() {
  return [answers = std::make_shared<compile_answers>()](auto request, const auto& accepted) {
    return answers->answer(request, accepted);
  };
}

// The host of workers that fork_compile_workers() started, until a pool takes it.
std::shared_ptr<forked_host> forked;

// Path of the program that workers execute.
std::string default_worker() {
  Dl_info where{};
  link_map* object = nullptr;
  // The main program's link map has no name.
  if (!dladdr1(reinterpret_cast<void*>(&default_worker), &where, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) ||
      !object || !*object->l_name)
    return "/proc/self/exe";
  if (const char* named = std::getenv("KILN_COMPILE_WORKER"); named && *named) return named;
  return (std::filesystem::path(object->l_name).parent_path() / "kiln-compile-worker").string();
}

[[noreturn]] void throw_nonsense(std::size_t bytes) {
  throw error(error_kind::unsupported,
              fmt::format("the compiler's process answered with {} bytes that make no sense; {}", bytes, remedy));
}

response ask(worker_pool& workers, std::span<const std::byte> request, const worker_limits& limits) {
  response result;
  try {
    result.bytes = workers.ask(request, limits);
  } catch (const error& e) {
    // The error is about the worker's process, not from the compiler: say what the caller can do.
    if (e.kind() == error_kind::corrupted || e.kind() == error_kind::unsupported)
      throw error(e.kind(), fmt::format("{}; {}", e.what(), remedy));
    throw;
  }
  result.root = verified<schema::CompileResponse>(result.bytes);
  if (!result.root) throw_nonsense(result.bytes.size());
  if (const auto* message = result.root->message()) {
    if (result.root->error_kind() >= error_kinds.size()) throw_nonsense(result.bytes.size());
    throw error(static_cast<error_kind>(result.root->error_kind()), message->str());
  }
  return result;
}

}  // namespace

void fork_compile_workers() {
  if (auto host = fork_worker_host(prepare_answers)) forked = std::make_shared<forked_host>(std::move(*host));
}

std::shared_ptr<worker_pool> make_compile_workers(bool isolated, const std::string& executable) {
  worker_options options{.arguments = {executable.empty() ? default_worker() : executable, compile_worker_argument},
                         .forked = executable.empty() ? std::exchange(forked, nullptr) : nullptr};
  if (isolated) options.requests_per_worker = 1;
  if (const sandbox_state sandbox = available_sandbox(); !sandbox.complete())
    spdlog::debug("sandbox of compile workers: {}", sandbox.describe());
  return std::make_shared<worker_pool>(std::move(options));
}

std::vector<std::byte> compile_in_worker(worker_pool& workers, const compile_request& request,
                                         const worker_limits& limits) {
  const response answer = ask(workers, write_request(request, schema::Wanted::native), limits);
  const auto* kernel = answer.root->kernel();
  if (!kernel) throw_nonsense(answer.bytes.size());
  auto bytes = std::as_bytes(std::span(kernel->data(), kernel->size()));
  try {
    deserialize_native_kernel(bytes);
  } catch (const error& e) {
    throw error(error_kind::unsupported,
                fmt::format("the compiler's process answered with no native kernel: {}; {}", e.what(), remedy));
  }
  return {bytes.begin(), bytes.end()};
}

std::vector<kernel_configuration> candidates_in_worker(worker_pool& workers, const compile_request& request,
                                                       tuning_effort effort, const worker_limits& limits) {
  const response answer = ask(workers, write_request(request, schema::Wanted::candidates, effort), limits);
  if (!answer.root->candidates()) throw_nonsense(answer.bytes.size());
  std::vector<kernel_configuration> result;
  for (const schema::Configuration* c : *answer.root->candidates()) result.push_back(read_configuration(*c));
  return result;
}

std::string text_in_worker(worker_pool& workers, const compile_request& request, const std::string& form,
                           const worker_limits& limits) {
  const response answer = ask(workers, write_request(request, schema::Wanted::text, {}, form), limits);
  if (!answer.root->text()) throw_nonsense(answer.bytes.size());
  return answer.root->text()->str();
}

int run_compile_worker() { return run_worker_host(prepare_answers); }

}  // namespace kiln
