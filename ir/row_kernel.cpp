#include "ir/row_kernel.hpp"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>

#include "ir/aligned_list.hpp"
#include "ir/error.hpp"
#include "ir/row_kernel_generated.h"

namespace kiln {
namespace {

namespace schema = row_kernel_schema;

// Upper bounds. They exceed any real sizes, and sums and products of a few such numbers do not overflow.
constexpr std::int64_t max_part_bytes = std::int64_t{1} << 46, max_block = 1 << 16, max_cost = std::int64_t{1} << 40;
constexpr std::size_t max_versions = 8, max_parts = 1 << 16;

void require(bool condition, const char* what) {
  if (!condition)
    throw error(error_kind::corrupted, std::string("damaged row kernel: ") + what + "; finalize the model again");
}

void require_writable(bool condition, const char* what) {
  if (!condition) throw error(error_kind::internal, std::string("a row kernel cannot be written: ") + what);
}

// Checked both on writing and on reading, as for native kernels.
template <class Require>
void check(const row_kernel& kernel, Require&& require) {
  require(!kernel.outputs.empty(), "it has no outputs");
  for (const auto* parts : {&kernel.inputs, &kernel.outputs})
    for (const row_part& part : *parts)
      require(part.bytes >= 0 && part.bytes <= max_part_bytes, "a tensor has an impossible size");
  require(std::ranges::all_of(kernel.outputs, &row_part::per_row), "an output has no rows");
  require(!kernel.versions.empty() && kernel.versions.size() <= max_versions, "an impossible number of versions");
  std::int64_t above = max_block + 1;
  for (const row_version& version : kernel.versions) {
    require(version.rows >= 1 && version.rows < above, "its versions are not in descending order");
    above = version.rows;
    require(version.cost >= 0 && version.cost <= max_cost, "a version has an impossible cost");
    require(!is_open(version.kernel), "a version is an open kernel");
    for (const launch& l : version.kernel.launches)
      require(l.tensor_maps.empty() && l.grid_y == 1 && l.grid_z == 1, "a launch is not one for a CPU");
  }
  require(above == 1, "it has no version for one row");
}

template <class List>
std::vector<row_part> parts(const List* stored) {
  std::vector<row_part> result;
  require(aligned_count(stored) <= max_parts, "too many tensors");
  if (stored)
    for (const schema::Part* part : *stored) result.push_back({part->bytes(), part->per_row()});
  return result;
}

auto written(flatbuffers::FlatBufferBuilder& builder, const std::vector<row_part>& parts) {
  std::vector<schema::Part> stored;
  for (const row_part& part : parts) stored.emplace_back(part.bytes, part.per_row);
  return builder.CreateVectorOfStructs(stored);
}

}  // namespace

bool is_row_kernel(std::span<const std::byte> bytes) {
  return bytes.size() >= 8 && schema::RowKernelBufferHasIdentifier(bytes.data());
}

std::vector<std::byte> serialize(const row_kernel& kernel) {
  check(kernel, require_writable);
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  std::vector<flatbuffers::Offset<schema::Version>> versions;
  for (const row_version& version : kernel.versions) {
    const auto bytes = serialize(version.kernel);
    builder.ForceVectorAlignment(bytes.size(), 1, 16);
    auto stored = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    versions.push_back(schema::CreateVersion(builder, version.rows, stored, version.cost));
  }
  auto inputs = written(builder, kernel.inputs), outputs = written(builder, kernel.outputs);
  auto version_list = builder.CreateVector(versions);
  schema::FinishRowKernelBuffer(builder, schema::CreateRowKernel(builder, inputs, outputs, version_list));
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

row_kernel deserialize_row_kernel(std::span<const std::byte> bytes) {
  require(bytes.size() >= 8 && bytes.size() < FLATBUFFERS_MAX_BUFFER_SIZE, "its size is out of range");
  // FlatBuffers reads numbers in place, so the buffer must be as aligned as when it was built.
  std::vector<std::byte> aligned;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 != 0) {
    aligned.assign(bytes.begin(), bytes.end());
    bytes = aligned;
  }
  require(is_row_kernel(bytes), "it has the wrong file identifier");
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 16, 1024);
  require(schema::VerifyRowKernelBuffer(verifier), "its structure is broken");
  const schema::RowKernel& stored = *schema::GetRowKernel(bytes.data());
  row_kernel kernel{parts(stored.inputs()), parts(stored.outputs()), {}};
  require(stored.versions() && stored.versions()->size() <= max_versions, "an impossible number of versions");
  for (const schema::Version* version : *stored.versions())
    kernel.versions.push_back({version->rows(),
                               deserialize_native_kernel({reinterpret_cast<const std::byte*>(version->kernel()->data()),
                                                          version->kernel()->size()}),
                               version->cost()});
  check(kernel, require);
  return kernel;
}

}  // namespace kiln
