// A mutator for targets that read protobuf. libFuzzer's own changes of bytes mostly break the lengths around them; this
// one changes a message as a tree: fields go, are repeated, exchanged, or get other numbers, texts and tags. It needs
// no schema: a value of bytes that reads as a message is taken for one.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr int most_depth = 10;
enum wire : std::uint8_t { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };

struct field {
  std::uint64_t number = 0;
  std::uint8_t type = varint;
  std::uint64_t value = 0;  // of a varint
  std::string bytes = {};   // of the others, unless it is a message
  std::vector<field> fields = {};
  bool is_message = false;
};
using message = std::vector<field>;

std::optional<std::uint64_t> read_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70 && !text.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(text.front());
    text.remove_prefix(1);
    if (shift < 64) value |= std::uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

std::optional<message> read_message(std::string_view text, int depth = 0) {
  message result;
  while (!text.empty()) {
    const auto tag = read_varint(text);
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    field f{.number = *tag >> 3, .type = static_cast<std::uint8_t>(*tag & 7)};
    std::size_t size = f.type == eight_bytes ? 8 : 4;
    if (f.type == varint || f.type == length) {
      const auto value = read_varint(text);
      if (!value) return std::nullopt;
      f.value = size = *value;
    } else if (f.type != eight_bytes && f.type != four_bytes) {
      return std::nullopt;
    }
    if (f.type != varint) {
      if (size > text.size()) return std::nullopt;
      f.bytes = text.substr(0, size);
      text.remove_prefix(size);
      if (f.type == length && size > 2 && depth < most_depth)
        if (auto inside = read_message(f.bytes, depth + 1)) f.fields = std::move(*inside), f.is_message = true;
    }
    result.push_back(std::move(f));
  }
  return result;
}

void write_varint(std::string& to, std::uint64_t value) {
  for (; value > 127; value >>= 7) to += static_cast<char>((value & 127) | 128);
  to += static_cast<char>(value);
}

std::string write_message(const message& fields) {
  std::string result;
  for (const field& f : fields) {
    write_varint(result, f.number << 3 | f.type);
    std::string bytes = f.is_message ? write_message(f.fields) : f.bytes;
    if (f.type == varint) write_varint(result, f.value);
    else if (f.type == length) write_varint(result, bytes.size());
    else bytes.resize(f.type == eight_bytes ? 8 : 4);
    if (f.type != varint) result += bytes;
  }
  return result;
}

class mutator {
 public:
  explicit mutator(unsigned seed) : random_(seed) {}

  void edit(message& root) {
    std::vector<message*> lists{&root};
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (field& f : *lists[i])
        if (f.is_message) lists.push_back(&f.fields);
    std::erase_if(lists, [](const message* m) { return m->empty(); });
    if (lists.empty()) return;
    message& list = *lists[below(lists.size())];
    const message& others = *lists[below(lists.size())];
    const field other = others[below(others.size())];
    const std::size_t at = below(list.size());
    field& f = list[at];
    switch (below(7)) {
      case 0: list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); return;
      case 1: {
        field copy = f;
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(below(list.size() + 1)), std::move(copy));
        return;
      }
      case 2:  // the value of another field
        f = field{f.number, other.type, other.value, other.bytes, other.fields, other.is_message};
        return;
      case 3: f.number = 1 + below(25); return;
      case 4: list.push_back(other); return;
      default:
        if (f.type == varint) f.value = below(3) ? numbers[below(numbers.size())] : f.value + below(9) - 4;
        else if (!f.is_message) change(f.bytes);
    }
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  static constexpr std::array<std::uint64_t, 20> numbers{
      0,          1,          2,     3,     7,          8,          16,         64,         127,        128,
      1ull << 31, 0x7fffffff, ~0ull, ~1ull, 1ull << 32, 1ull << 40, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull << 31};
  void change(std::string& bytes) {
    std::string grown = bytes;
    grown.resize(bytes.size() + 16);
    grown.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(grown.data()), bytes.size(), grown.size()));
    bytes = std::move(grown);
  }
  std::mt19937 random_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  mutator change(seed);
  auto tree = change.below(5) == 0 ? std::nullopt : read_message({reinterpret_cast<const char*>(data), size});
  if (!tree) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t edits = 1 + change.below(3); edits > 0; --edits) change.edit(*tree);
  const std::string result = write_message(*tree);
  if (result.empty() || result.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
