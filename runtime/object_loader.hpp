// Loads relocatable objects (ELF64 x86-64, as LLVM writes them: position independent, small code model) into this
// process. Several objects share one mapping with three parts: text and call stubs (read, execute), read-only data and
// the global offset table (read), data (read, write). No page is ever writable and executable. Undefined symbols
// resolve through a list of allowed functions only. Objects may come from files: every read is bounds-checked, and an
// object that is damaged throws error{corrupted}, one that needs what this loader lacks throws error{unsupported}
// naming it. Immutable once loaded; find() from any thread. The mapping lives as long as the image.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class code_image {
 public:
  // Address of an external function, null when it is not allowed.
  using external_symbols = std::function<const void*(std::string_view name)>;

  code_image() = default;
  // Objects keep their own symbols: equal names in two objects do not meet. The bytes are not needed afterwards.
  code_image(std::span<const std::span<const std::byte>> objects,
             const external_symbols& externals);  // see find_host_symbol
  ~code_image();
  code_image(code_image&& other) noexcept;
  code_image& operator=(code_image&& other) noexcept;

  // The global function `symbol` of object number `object`; throws error{corrupted} where it has none.
  const void* find(std::size_t object, std::string_view symbol) const;

  std::span<const std::byte> mapping() const { return {mapping_, mapped_bytes_}; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::map<std::string, const void*, std::less<>>> functions_;  // per object
};

}  // namespace kiln
