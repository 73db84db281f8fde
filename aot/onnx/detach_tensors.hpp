// Cuts the bytes of large tensors out of a serialized model before protobuf parses it. Protobuf copies every byte and
// cannot read messages of more than 2 GiB; the tensors' bytes stay in the mapped file instead.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace kiln::onnx_import {

// The location of external data that means "this model's own file". No file has this name.
inline constexpr char own_file_location[] = "\x01model";

// Returns the serialized ModelProto with the raw_data of each tensor of 64 KiB or more replaced by external data in
// own_file_location at the offset where the bytes are. Everything else is kept as it is. Returns nothing if a field is
// not well-formed, or if more would remain than protobuf reads (2 GiB): parse `model` itself then, which reports it.
std::optional<std::string> detach_tensors(std::span<const std::byte> model);

}  // namespace kiln::onnx_import
