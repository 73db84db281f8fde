// Encodes and decodes the kernels and objects sections.
#include <algorithm>

#include "ir/container/flat.hpp"
#include "ir/container/sections.hpp"

namespace kiln::container {
namespace {

// Rejects overlapping blobs: each blob is copied, so their total size must not exceed the section's.
class blob_reader {
 public:
  explicit blob_reader(std::size_t section_bytes) : left_(section_bytes) {}
  std::vector<std::byte> read(const flatbuffers::Vector<std::uint8_t>& stored, const content_hash& hash) {
    if (stored.size() > left_) throw error(error_kind::corrupted, "kernels overlap");
    left_ -= stored.size();
    const auto* begin = reinterpret_cast<const std::byte*>(stored.data());
    std::vector<std::byte> bytes(begin, begin + stored.size());
    if (blake3(bytes) != hash) throw error(error_kind::corrupted, "kernel " + hash.hex() + " does not match its hash");
    return bytes;
  }

 private:
  std::size_t left_;
};

flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> write_blob(flatbuffers::FlatBufferBuilder& out,
                                                                  std::span<const std::byte> bytes) {
  out.ForceVectorAlignment(bytes.size(), 1, 16);
  return out.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// FlatBuffers cannot grow beyond 2 GiB and aborts the process if it has to.
void check_total(std::uint64_t bytes) {
  if (bytes > max_raw_bytes / 2)
    throw error(error_kind::unsupported, "the kernels take more than 1 GiB: split the model");
}

}  // namespace

std::vector<std::byte> encode_kernels(const program::kernel_table& kernels) {
  std::uint64_t total = 0;
  for (const auto& [hash, payload] : kernels) total += payload->size() + 128;
  check_total(total);
  flatbuffers::FlatBufferBuilder out;
  std::vector<flatbuffers::Offset<schema::Kernel>> rows;
  for (const auto& [hash, payload] : kernels) {
    if (blake3(*payload) != hash)
      throw error(error_kind::internal, "kernel " + hash.hex() + " was changed after it was added");
    auto bytes = write_blob(out, *payload);
    schema::Hash key = to_flat(hash);
    rows.push_back(schema::CreateKernel(out, &key, bytes));
  }
  auto list = out.CreateVector(rows);
  return finish(out, schema::CreateKernels(out, list), kernels_identifier);
}

program::kernel_table decode_kernels(std::span<const std::byte> section) {
  const auto* stored = verified_root<schema::Kernels>(section, kernels_identifier, "kernels section");
  program::kernel_table kernels;
  blob_reader blobs(section.size());
  if (stored->kernels())
    for (const schema::Kernel* k : *stored->kernels()) {
      content_hash hash = from_flat(*k->hash());
      kernels.insert_or_assign(hash, std::make_shared<const std::vector<std::byte>>(blobs.read(*k->payload(), hash)));
    }
  return kernels;
}

std::vector<std::byte> encode_objects(std::vector<embedded_object> objects) {
  std::ranges::stable_sort(objects, {}, &embedded_object::key);
  auto repeated = std::ranges::unique(objects, {}, &embedded_object::key);
  objects.erase(repeated.begin(), repeated.end());
  std::uint64_t total = 0;
  for (const embedded_object& o : objects) total += o.payload.size() + 1024;
  check_total(total);
  flatbuffers::FlatBufferBuilder out;
  std::vector<flatbuffers::Offset<schema::Object>> rows;
  for (const embedded_object& o : objects) {
    std::vector<flatbuffers::Offset<schema::Entry>> fields;
    for (const auto& [name, value] : o.fields) {
      auto label = out.CreateSharedString(name);
      fields.push_back(schema::CreateEntry(out, label, out.CreateSharedString(value)));
    }
    auto field_list = out.CreateVector(fields);
    auto bytes = write_blob(out, o.payload);
    schema::Hash key = to_flat(o.key), hash = to_flat(blake3(o.payload));
    rows.push_back(schema::CreateObject(out, &key, field_list, &hash, bytes));
  }
  auto list = out.CreateVector(rows);
  return finish(out, schema::CreateObjects(out, list), objects_identifier);
}

std::vector<embedded_object> decode_objects(std::span<const std::byte> section) {
  const auto* stored = verified_root<schema::Objects>(section, objects_identifier, "objects section");
  std::vector<embedded_object> objects;
  blob_reader blobs(section.size());
  decode_budget budget(section.size());
  if (stored->objects())
    for (const schema::Object* o : *stored->objects()) {
      embedded_object object{from_flat(*o->key()), {}, blobs.read(*o->payload(), from_flat(*o->hash()))};
      if (o->fields())
        for (const schema::Entry* e : *o->fields()) {
          budget.take(sizeof(object.fields[0]));
          std::string label = budget.text(e->key());
          object.fields.emplace_back(std::move(label), budget.text(e->value()));
        }
      budget.take(sizeof(object));
      objects.push_back(std::move(object));
    }
  return objects;
}

}  // namespace kiln::container
