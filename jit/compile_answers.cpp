#include "jit/compile_answers.hpp"

#include <algorithm>
#include <new>

#include "ir/error.hpp"
#include "ir/native_kernel.hpp"
#include "jit/cache/kernel_key.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/compile_messages.hpp"
#include "jit/emit.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/candidates.hpp"

namespace kiln {
namespace {

using namespace compile_messages;

constexpr std::size_t most_kept = 32;

std::vector<shape> read_shapes(const flatbuffers::Vector<flatbuffers::Offset<schema::Shape>>& tables) {
  std::vector<shape> result;
  for (const schema::Shape* table : tables) {
    if (table->type() >= element_type_count)
      throw error(error_kind::internal, "a compile request has an unknown element type");
    shape s{static_cast<element_type>(table->type()), {}};
    if (table->dims())
      for (std::int64_t size : *table->dims()) s.dims.push_back(size);
    if (table->open())
      for (const flatbuffers::String* text : *table->open()) s.dims.push_back(dim::parse(text->str()));
    result.push_back(std::move(s));
  }
  return result;
}

target_row read_target(const schema::Target& stored) {
  target_row row;
  if (stored.family() != static_cast<std::uint8_t>(target_family::cpu)) {
    row = find_target(stored.name()->str());
  } else {
    row.name = stored.name()->str();
    row.triple = stored.triple()->str();
    row.processor = stored.processor()->str();
    row.features = stored.features()->str();
    row.vector_bits = stored.vector_bits();
    row.vector_registers = stored.vector_registers();
    row.l1_bytes = stored.l1_bytes();
    row.l2_bytes = stored.l2_bytes();
  }
  if (describe(row) != stored.description()->str())
    throw error(error_kind::internal,
                "target '" + row.name + "' of a compile request differs from this version's row of that name");
  return row;
}

std::vector<std::byte> error_response(error_kind kind, const char* message) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(
      schema::CreateCompileResponse(builder, 0, 0, 0, static_cast<std::uint8_t>(kind), builder.CreateString(message)));
  return finished(builder);
}

std::vector<std::byte> kernel_response(std::span<const std::byte> kernel) {
  flatbuffers::FlatBufferBuilder builder(kernel.size() + 1024);
  builder.Finish(schema::CreateCompileResponse(builder, write_bytes(builder, kernel)));
  return finished(builder);
}

std::vector<std::byte> candidates_response(const std::vector<kernel_configuration>& candidates) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<schema::Configuration>> list;
  for (const kernel_configuration& c : candidates) list.push_back(write_configuration(builder, c));
  builder.Finish(schema::CreateCompileResponse(builder, 0, builder.CreateVector(list)));
  return finished(builder);
}

std::vector<std::byte> text_response(const std::string& text) {
  flatbuffers::FlatBufferBuilder builder(text.size() + 1024);
  builder.Finish(schema::CreateCompileResponse(builder, 0, 0, builder.CreateString(text)));
  return finished(builder);
}

}  // namespace

portable_kernel compile_answers::clone_of(std::span<const std::byte> payload, const std::vector<shape>& inputs,
                                          const std::vector<shape>& outputs) {
  kernel_key key;
  key.payload = blake3(payload).hex();
  key.inputs = inputs;
  key.outputs = outputs;
  const content_hash identity = key.hash();
  auto found = std::ranges::find(kept_, identity, &kept_kernel::identity);
  if (found == kept_.end()) {
    portable_kernel kernel = portable_kernel::parse(context_, payload);
    kernel.specialize(inputs, outputs);
    kept_.push_front({identity, std::move(kernel)});
    if (kept_.size() > most_kept) kept_.pop_back();
  } else {
    kept_.splice(kept_.begin(), kept_, found);
  }
  return kept_.front().kernel.clone();
}

std::vector<std::byte> compile_answers::answer(std::span<const std::byte> bytes,
                                               const std::function<void()>& accepted) {
  try {
    const auto* request = verified<schema::CompileRequest>(bytes);
    if (!request)
      throw error(error_kind::internal, "the compile worker received something that is not a compile request");
    auto payload = std::as_bytes(std::span(request->payload()->data(), request->payload()->size()));
    const auto inputs = read_shapes(*request->inputs()), outputs = read_shapes(*request->outputs());
    const target_row target = read_target(*request->target());
    const bool spirv = is_spirv_payload(payload);
    if (request->wanted() == schema::Wanted::text) {
      const std::string form = request->form() ? request->form()->str() : "";
      if (form != "mlir" && !spirv) portable_kernel::parse(context_, payload);
      if (form != "mlir") accepted();
      return text_response(emit_code(payload, inputs, target, form));
    }
    if (spirv) {
      accepted();  // our SPIR-V reader verifies its input; the code after it is LLVM
      return kernel_response(serialize(finalize_spirv(payload, inputs, outputs, target)));
    }
    portable_kernel kernel = clone_of(payload, inputs, outputs);
    accepted();
    if (request->wanted() == schema::Wanted::candidates)
      return candidates_response(
          candidate_configurations(kernel, target, static_cast<tuning_effort>(request->effort())));
    return kernel_response(
        compile_specialized(std::move(kernel), target, read_configuration(*request->configuration())));
  } catch (const error& e) {
    return error_response(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    return error_response(error_kind::unsupported, "the compiler's process ran out of memory");
  } catch (const std::exception& e) {
    return error_response(error_kind::internal, e.what());
  }
}

}  // namespace kiln
