// Reads and writes tables of compile_request.fbs that requests and responses share. Internal to compile_worker.cpp and
// compile_answers.cpp.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <span>
#include <vector>

#include "jit/compile_request_generated.h"
#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln::compile_messages {

namespace schema = compile_request_schema;

// The root table, or null if the bytes are not a valid table of this type.
template <class Table>
const Table* verified(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size(), 16, 1 << 20);
  return bytes.size() > 8 && verifier.VerifyBuffer<Table>(nullptr) ? flatbuffers::GetRoot<Table>(data) : nullptr;
}

inline std::vector<std::byte> finished(flatbuffers::FlatBufferBuilder& builder) {
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

inline auto write_bytes(flatbuffers::FlatBufferBuilder& builder, std::span<const std::byte> bytes) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

inline auto write_configuration(flatbuffers::FlatBufferBuilder& builder, const kernel_configuration& configuration) {
  std::vector<flatbuffers::Offset<schema::Setting>> settings;
  for (const auto& [name, value] : configuration)
    settings.push_back(schema::CreateSetting(builder, builder.CreateString(name), value));
  return schema::CreateConfiguration(builder, builder.CreateVector(settings));
}

inline kernel_configuration read_configuration(const schema::Configuration& stored) {
  kernel_configuration result;
  for (const schema::Setting* setting : *stored.settings()) result[setting->name()->str()] = setting->value();
  return result;
}

}  // namespace kiln::compile_messages
