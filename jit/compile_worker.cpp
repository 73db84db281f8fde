#include "jit/compile_worker.hpp"

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>

#include "ir/error.hpp"
#include "ir/native_kernel.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/compile_request_generated.h"
#include "jit/finalize_spirv.hpp"
#include "jit/targets.hpp"

namespace kiln {
namespace {

namespace schema = compile_request_schema;

template <class Table>
const Table* verified(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size(), 16, 65536);
  return bytes.size() > 8 && verifier.VerifyBuffer<Table>(nullptr) ? flatbuffers::GetRoot<Table>(data) : nullptr;
}

std::vector<std::byte> finished(flatbuffers::FlatBufferBuilder& builder) {
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

auto bytes_of(flatbuffers::FlatBufferBuilder& builder, std::span<const std::byte> bytes) { return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); }

auto shapes_of(flatbuffers::FlatBufferBuilder& builder, const std::vector<shape>& shapes) {
  std::vector<flatbuffers::Offset<schema::Shape>> offsets;
  for (const shape& s : shapes) offsets.push_back(schema::CreateShape(builder, static_cast<std::uint8_t>(s.type), builder.CreateVector(s.static_dims())));
  return builder.CreateVector(offsets);
}

std::vector<shape> read_shapes(const flatbuffers::Vector<flatbuffers::Offset<schema::Shape>>& tables) {
  std::vector<shape> result;
  for (const schema::Shape* table : tables) {
    if (table->type() >= element_type_count) throw error(error_kind::corrupted, "a compile request has an impossible element type");
    shape s{static_cast<element_type>(table->type()), {}};
    if (table->dims())
      for (std::int64_t size : *table->dims()) s.dims.push_back(size);
    result.push_back(std::move(s));
  }
  return result;
}

std::vector<std::byte> write_request(const compile_request& request) {
  flatbuffers::FlatBufferBuilder builder;
  auto payload = bytes_of(builder, request.payload);
  auto inputs = shapes_of(builder, request.inputs), outputs = shapes_of(builder, request.outputs);
  auto target = builder.CreateString(request.target);
  std::vector<flatbuffers::Offset<schema::Setting>> settings;
  for (const auto& [name, value] : request.configuration) settings.push_back(schema::CreateSetting(builder, builder.CreateString(name), value));
  builder.Finish(schema::CreateCompileRequest(builder, payload, inputs, outputs, target, builder.CreateVector(settings)));
  return finished(builder);
}

std::vector<std::byte> compile(std::span<const std::byte> bytes) {
  const auto* request = verified<schema::CompileRequest>(bytes);
  if (!request) throw error(error_kind::corrupted, "the compile worker was given no compile request");
  kernel_configuration configuration;
  for (const schema::Setting* setting : *request->configuration()) configuration[setting->name()->str()] = setting->value();
  auto payload = std::as_bytes(std::span(request->payload()->data(), request->payload()->size()));
  if (is_spirv_payload(payload)) return serialize(finalize_spirv(payload, read_shapes(*request->inputs()), read_shapes(*request->outputs()), find_target(request->target()->str())));
  compiler_context context;
  auto kernel = portable_kernel::parse(context, payload);
  return compile_kernel(std::move(kernel), read_shapes(*request->inputs()), read_shapes(*request->outputs()), find_target(request->target()->str()), configuration);
}

std::vector<std::byte> error_response(error_kind kind, const char* message) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateCompileResponse(builder, 0, static_cast<std::uint8_t>(kind), builder.CreateString(message)));
  return finished(builder);
}

}  // namespace

std::vector<std::byte> answer_compile_request(std::span<const std::byte> request) {
  try {
    std::vector<std::byte> kernel = compile(request);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::CreateCompileResponse(builder, bytes_of(builder, kernel)));
    return finished(builder);
  } catch (const error& e) {
    return error_response(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    return error_response(error_kind::compile_failed, "the compiler's process ran out of memory");
  } catch (const std::exception& e) {
    return error_response(error_kind::internal, e.what());
  }
}

std::vector<std::byte> compile_in_worker(const compile_request& request, const child_limits& limits, const std::string& executable) {
  std::vector<std::byte> answer = run_in_child({executable, compile_worker_argument}, write_request(request), limits);
  const auto* response = verified<schema::CompileResponse>(answer);
  if (!response) throw error(error_kind::compile_failed, fmt::format("the compiler's process answered with {} bytes that make no sense", answer.size()));
  if (!response->kernel()) {
    if (response->error_kind() > static_cast<std::uint8_t>(error_kind::internal) || !response->message())
      throw error(error_kind::compile_failed, "the compiler's process answered with an error that makes no sense");
    throw error(static_cast<error_kind>(response->error_kind()), response->message()->str());
  }
  auto kernel = std::as_bytes(std::span(response->kernel()->data(), response->kernel()->size()));
  std::vector<std::byte> result(kernel.begin(), kernel.end());
  try {
    deserialize_native_kernel(result);
  } catch (const error& e) {
    throw error(error_kind::compile_failed, fmt::format("the compiler's process answered with no native kernel: {}", e.what()));
  }
  return result;
}

int run_compile_worker() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for the answer any more
  // Whatever writes to standard output from now on does not get into the response.
  int output = dup(STDOUT_FILENO);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 3;
  std::vector<std::byte> request;
  std::array<std::byte, 1 << 16> part;
  for (ssize_t n; (n = read(STDIN_FILENO, part.data(), part.size())) != 0;) {
    if (n < 0 && errno != EINTR) return 3;
    if (n > 0) request.insert(request.end(), part.begin(), part.begin() + n);
  }
  std::vector<std::byte> response = answer_compile_request(request);
  for (std::span<const std::byte> left(response); !left.empty();) {
    ssize_t n = write(output, left.data(), left.size());
    if (n < 0 && errno != EINTR) return 3;
    if (n > 0) left = left.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace kiln
