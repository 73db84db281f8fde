#include "mlir_bridge/back_ends/nvidia/ptx_info.hpp"

#include <charconv>
#include <utility>

#include "ir/error.hpp"

namespace kiln::gpu {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

// A position in a text. Each function takes what follows, if it is there, and returns whether it was.
struct reader {
  std::string_view rest;
  bool word(std::string_view w) {
    if (!rest.starts_with(w)) return false;
    rest.remove_prefix(w.size());
    return true;
  }
  bool spaces() {
    const std::size_t before = rest.size();
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    return rest.size() != before;
  }
  bool number(std::int64_t& value) {
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end.ec != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(end.ptr - rest.data()));
    return true;
  }
  std::string_view name() {
    std::size_t size = 0;
    while (size < rest.size() && is_name(rest[size])) ++size;
    const std::string_view result = rest.substr(0, size);
    rest.remove_prefix(size);
    return result;
  }
};

// Calls found(reader) with what follows each occurrence of `word`, and its offset.
template <class Found>
void find_all(std::string_view text, std::string_view word, Found&& found) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size()))
    found(reader{text.substr(at + word.size())}, at);
}

// Counts the instructions that begin with `first` and go on as `follows` says.
template <class Follows>
std::int64_t count(std::string_view body, std::string_view first, Follows&& follows) {
  std::int64_t result = 0;
  find_all(body, first, [&](reader after, std::size_t at) {
    const bool begins = at > 0 && (is_space(body[at - 1]) || body[at - 1] == '}');
    if (begins && follows(after)) ++result;
  });
  return result;
}

// mma.sync. and mma.sp.sync., mma.sp::ordered_metadata.sync.
bool is_synchronous(reader after) {
  if (after.word("sp")) {
    if (after.word("::")) after.name();
    if (!after.word(".")) return false;
  }
  return after.word("sync.");
}

// Returns the bytes of a declaration, `.local .align 16 .b8 NAME[256];` or `.local .b32 NAME;`, after its first word.
// Returns 0 for something else.
std::int64_t local_bytes(reader after) {
  std::int64_t ignored = 0, bits = 0, elements = 1;
  if (!after.spaces()) return 0;
  if (after.word(".align") && !(after.spaces() && after.number(ignored) && after.spaces())) return 0;
  if (!after.word(".b") || !after.number(bits) || !after.spaces() || after.name().empty()) return 0;
  if (after.word("[")) after.number(elements);
  return bits / 8 * elements;
}

}  // namespace

std::vector<ptx_entry_info> read_ptx(std::string_view text) {
  if (text.find(".version") == std::string_view::npos)
    throw error(error_kind::corrupted, "damaged PTX: it has no .version");
  // Name of the entry, offset in the text.
  std::vector<std::pair<std::string_view, std::size_t>> entries;
  find_all(text, ".entry", [&](reader after, std::size_t at) {
    if (!after.spaces()) return;
    if (const std::string_view name = after.name(); !name.empty()) entries.emplace_back(name, at);
  });
  std::vector<ptx_entry_info> result;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t stop = i + 1 < entries.size() ? entries[i + 1].second : text.size();
    const std::string_view body = text.substr(entries[i].second, stop - entries[i].second);
    ptx_entry_info info{std::string(entries[i].first), count(body, "mma.", is_synchronous),
                        count(body, "wgmma.mma_async.", [](reader) { return true; }), 0};
    find_all(body, ".local", [&](reader after, std::size_t) { info.local_bytes += local_bytes(after); });
    result.push_back(std::move(info));
  }
  return result;
}

}  // namespace kiln::gpu
