#include "jit/cache/embedded_entries.hpp"

#include <algorithm>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/cache/entry.hpp"

namespace kiln {

std::shared_ptr<const embedded_entries> embedded_entries::read(const std::filesystem::path& file) {
  container_extras extras = read_extras(file);
  if (extras.objects.empty()) return nullptr;
  auto result = std::make_shared<embedded_entries>();
  result->file_ = file;
  for (embedded_object& o : extras.objects)
    result->entries_.insert_or_assign(entry_file_name(o.key, entry_kind::kernel), std::move(o.payload));
  return result;
}

std::optional<std::span<const std::byte>> embedded_entries::find(const std::string& entry_name) const {
  auto found = entries_.find(entry_name);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

embedding embed_entries(const std::filesystem::path& file, std::span<const std::vector<std::byte>> entries) {
  container_extras extras = read_extras(file);
  embedding done;
  for (const auto& entry : entries) {
    entry_head head = verify_entry(entry);
    if (head.kind != entry_kind::kernel)
      throw error(error_kind::unsupported,
                  "packed weights cannot be embedded in a file: they are mapped from the cache");
    embedded_object object{head.key, head.fields, entry};
    auto existing = std::ranges::find(extras.objects, head.key, &embedded_object::key);
    if (existing == extras.objects.end()) {
      extras.objects.push_back(std::move(object));
      ++done.added;
    } else if (existing->payload == entry) {
      ++done.present;
    } else {
      *existing = std::move(object);
      ++done.replaced;
    }
  }
  for (const embedded_object& o : extras.objects) done.bytes += o.payload.size();
  if (done.added + done.replaced > 0) replace_extras(file, file, extras);
  return done;
}

}  // namespace kiln
